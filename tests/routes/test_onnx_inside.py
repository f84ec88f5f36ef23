"""Kernels inside onnxruntime: results of every element type, options, and who runs which node."""

import doctest
import random

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx.parser
import onnxruntime

import cases
import fastpool.onnx
from cases import DTYPE_NAMES, FLOAT_NAMES, assert_same
from onnx_models import CPU, inside, model_of, options, plain, random_shape, random_window, run

# What onnxruntime means where the standard is silent (docs/onnx.md), for the functions.
CONVENTIONS = {"pads_with_auto_pad": "ignore"}


@pytest.mark.parametrize("module", ["_backend", "_session"])
def test_docstrings(module):
    module = __import__(f"fastpool.onnx.{module}", fromlist=["x"])
    results = doctest.testmod(module)
    assert results.attempted > 3 and results.failed == 0


@pytest.mark.parametrize("page", ["onnx.md", "coming-from/onnxruntime.md"])
def test_recipes(page):
    cases.check_page(page)


# ---------------------------------------------------------------------------------------- results


@pytest.mark.parametrize("name", DTYPE_NAMES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_maxima_of_every_type(name, n):
    """With indices and without; special values, of which all NaN are one."""
    choose = random.Random(n)
    for seed, kind in enumerate(cases.VALUE_KINDS * 2):
        x = cases.values(random_shape(choose, n), name, kind, seed)
        attributes = random_window(choose, n) | {"storage_order": choose.randint(0, 1)}
        outputs = ["y", "i"][: choose.randint(1, 2)]
        model = model_of("MaxPool", {"x": x}, outputs, **attributes)
        got = run(inside(model, select="all"), {"x": x})
        expected = fastpool.onnx.max_pool(x, n_outputs=len(outputs), **attributes, **CONVENTIONS)
        expected = expected if len(outputs) == 2 else [expected]
        for one, same in zip(got, expected, strict=True):
            assert_same(one, same, f"{kind} {attributes}")


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int8", "uint8"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_maxima_are_those_of_onnxruntime(name, n):
    """Where it has the type. Of finite numbers, with many ties: the first one counts."""
    choose, rng = random.Random(n), np.random.default_rng(n)
    for _ in range(12):
        x = rng.integers(0, 100, random_shape(choose, n)).astype(name)
        attributes = random_window(choose, n) | {"storage_order": choose.randint(0, 1)}
        model = model_of("MaxPool", {"x": x}, ["y", "i"], **attributes)
        expected = plain(model).run(None, {"x": x})
        for select in ("all", "faster"):
            for got, same in zip(
                inside(model, select=select).run(None, {"x": x}), expected, strict=True
            ):
                assert_same(got, same, f"{attributes}")


@pytest.mark.parametrize("name", DTYPE_NAMES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_averages_of_every_type(name, n):
    choose = random.Random(n)
    for seed, kind in enumerate(cases.SUM_KINDS + ["special"]):
        x = cases.summands(random_shape(choose, n), name, kind, seed)
        attributes = random_window(choose, n) | {"count_include_pad": choose.randint(0, 1)}
        numerics = choose.choice(["pairwise", "exact", "sequential"])
        model = model_of("AveragePool", {"x": x}, opset=choose.choice([19, 22]), **attributes)
        (got,) = run(inside(model, select="all", numerics=numerics), {"x": x})
        expected = fastpool.onnx.average_pool(x, numerics=numerics, **attributes, **CONVENTIONS)
        assert_same(got, expected, f"{kind} {numerics} {attributes}")


@pytest.mark.parametrize("name", FLOAT_NAMES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_norms_of_every_type(name, n):
    choose = random.Random(n)
    for seed, kind in enumerate(["normal", "finite", "special"]):
        x = cases.summands(random_shape(choose, n), name, kind, seed)
        attributes = random_window(choose, n) | {"p": choose.choice([1, 2, 3])}
        opset = choose.choice([18, 22])
        (got,) = run(
            inside(model_of("LpPool", {"x": x}, opset=opset, **attributes), select="all"), {"x": x}
        )
        assert_same(got, fastpool.onnx.lp_pool(x, **attributes, **CONVENTIONS), f"{attributes}")
        p = choose.choice([1, 2, 4])
        model = model_of("GlobalLpPool", {"x": x}, opset=choose.choice([2, 22]), p=p)
        (got,) = run(inside(model, select="all"), {"x": x})
        assert_same(got, fastpool.onnx.global_lp_pool(x, p=p), f"{p}")


@pytest.mark.parametrize("name", DTYPE_NAMES)
def test_global_poolings_of_every_type(name):
    choose = random.Random(0)
    for seed, n in enumerate([1, 2, 3, 4, 2, 2]):
        kind = choose.choice(cases.SUM_KINDS)
        x = cases.summands(random_shape(choose, n), name, kind, seed)
        opset = choose.choice([1, 7, 22])
        for op_type, function in (
            ("GlobalAveragePool", fastpool.onnx.global_average_pool),
            ("GlobalMaxPool", fastpool.onnx.global_max_pool),
        ):
            session = inside(model_of(op_type, {"x": x}, opset=opset), select="all")
            assert_same(run(session, {"x": x})[0], function(x), f"{op_type} {kind}")


@pytest.mark.parametrize("name", DTYPE_NAMES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpoolings_of_every_type(name, n):
    """With the inferred shape, and with a larger one, in which the indices count."""
    choose = random.Random(n)
    for seed in range(4):
        x = cases.values(random_shape(choose, n), name, "bits", seed)
        window = {"kernel_shape": [2] * n, "strides": [choose.randint(1, 3) for _ in range(n)]}
        y, i = fastpool.onnx.max_pool(x, n_outputs=2, **window)
        inputs, shape = {"x": y, "i": i}, None
        inferred = (np.array(y.shape[2:]) - 1) * window["strides"] + 2
        if seed % 2 or (inferred != x.shape[2:]).any():
            shape = [*x.shape[:2], *(size + seed for size in x.shape[2:])]
            inputs["shape"] = np.array(shape)
        model = model_of("MaxUnpool", inputs, opset=choose.choice([11, 22]), **window)
        session = inside(model, select="all")
        expected = fastpool.onnx.max_unpool(y, i, shape, index_space="output", **window)
        assert_same(run(session, inputs)[0], expected, f"{window}")


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpoolings_are_those_of_onnxruntime(n):
    choose = random.Random(n)
    for _ in range(8):
        x = np.random.default_rng(n).standard_normal(random_shape(choose, n), np.float32)
        window = {"kernel_shape": [2] * n, "strides": [2] * n}
        inputs = dict(zip("xi", fastpool.onnx.max_pool(x, n_outputs=2, **window), strict=True))
        inputs["shape"] = np.array(x.shape) + [0, 0, *[choose.randint(0, 3)] * n]
        model = model_of("MaxUnpool", inputs, **window)
        (got,), (expected,) = (make(model).run(None, inputs) for make in (inside, plain))
        assert_same(got, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_sequential_means_have_the_bits_of_onnxruntime(n, dtype):
    """From opset 19 on, where its own kernel adds one element after the other."""
    choose, rng = random.Random(n), np.random.default_rng(n)
    for _ in range(12):
        attributes = random_window(choose, n, 4) | {"count_include_pad": choose.randint(0, 1)}
        if "auto_pad" in attributes:
            attributes.pop("dilations", None)
        x = rng.standard_normal(random_shape(choose, n))
        x = {"x": (x * 10 ** rng.uniform(-2, 2, x.shape)).astype(dtype)}
        model = model_of("AveragePool", x, opset=choose.choice([19, 21, 22]), **attributes)
        (got,) = inside(model, numerics="sequential").run(None, x)
        assert_same(got, plain(model).run(None, x)[0], f"{attributes}")


MICROSOFT = "com.microsoft"


@pytest.mark.parametrize("name", ["int8", "uint8"])
def test_microsoft_channels_last(name):
    choose = random.Random(0)
    for seed in range(6):
        x = np.moveaxis(cases.values(random_shape(choose, 2), name, "bits", seed), 1, -1).copy()
        attributes = random_window(choose, 2)
        model = model_of("NhwcMaxPool", {"x": x}, domain=MICROSOFT, **attributes)
        (got,) = inside(model, select="all").run(None, {"x": x})
        expected = fastpool.onnx.max_pool(x, layout="NHWC", **attributes, **CONVENTIONS)
        assert_same(got, expected, f"{attributes}")
        assert_same(got, plain(model).run(None, {"x": x})[0], f"{attributes}")


@pytest.mark.parametrize("name", ["int8", "uint8"])
@pytest.mark.parametrize("channels_last", [0, 1])
def test_quantised_averages(name, channels_last):
    choose, info = random.Random(channels_last), np.iinfo(name)
    for seed in range(8):
        x = cases.values(random_shape(choose, 2), name, "bits", seed)
        attributes = random_window(choose, 2) | {"count_include_pad": choose.randint(0, 1)}
        attributes.pop("dilations", None)
        attributes["channels_last"] = channels_last
        inputs = {
            "x": np.moveaxis(x, 1, -1).copy() if channels_last else x,
            "xs": np.array(choose.choice([1, 0.5, 0.1]), np.float32),
            "xz": np.array(choose.randint(info.min, info.max), name),
            "ys": np.array(choose.choice([1, 0.25, 0.3]), np.float32),
            "yz": np.array(choose.randint(info.min, info.max), name),
        }
        model = model_of("QLinearAveragePool", inputs, domain=MICROSOFT, **attributes)
        session = fastpool.onnx.InferenceSession(model.SerializeToString(), None, CPU)
        (got,) = session.run(None, inputs)
        expected = fastpool.onnx.qlinear_average_pool(
            *inputs.values(), **attributes, **CONVENTIONS, beyond="count"
        )
        assert_same(got, expected, f"{attributes}")
        if not attributes.get("ceil_mode"):
            (theirs,) = plain(model).run(None, inputs)
            assert abs(got.astype(int) - theirs).max() <= 1


# ---------------------------------------------------------------------------------------- options


def test_shapes_of_quantised_averages_are_inferred():
    scale, zero = np.array(1, np.float32), np.array(0, np.uint8)
    x = np.zeros((1, 3, 9, 11), np.uint8)
    inputs = {"x": x, "xs": scale, "xz": zero, "ys": scale, "yz": zero}
    for last in (0, 1):
        shape = [1, 9, 11, 3] if last else [1, 3, 9, 11]
        inputs["x"] = x.reshape(shape)
        attributes = WINDOW | {"channels_last": last}
        model = model_of("QLinearAveragePool", inputs, domain=MICROSOFT, shape=shape, **attributes)
        ours = fastpool.onnx.InferenceSession(model.SerializeToString(), None, CPU)
        assert ours.get_outputs()[0].shape == plain(model).get_outputs()[0].shape
        assert ours.get_outputs()[0].shape == list(ours.run(None, inputs)[0].shape)


@pytest.mark.parametrize("name", ["select", "nan", "numerics", "num_threads", "beyond"])
def test_options_are_no_arguments(name):
    """onnxruntime would ignore them."""
    with pytest.raises(TypeError, match=f"{name}: no argument of sessions"):
        fastpool.onnx.InferenceSession(b"", **{name: "all"})


FUSED = """<ir_version: 8, opset_import: ["": 13]>
fused (float[1, 1, 4, 4] x) => (float[a, b, c, d] y) <float[1, 1, 1, 1] w = {2}> {
    v = Conv (x, w)
    u = Relu (v)
    y = MaxPool <kernel_shape = [2, 2]> (u)
}"""


def test_com_microsoft_is_only_for_models_that_import_it():
    """onnxruntime finds no operator of a domain of ours that a model does not import."""
    x = cases.values((1, 1, 4, 4), "float32", "ties", 0)
    cases.assert_same(inside(FUSED).run(None, {"x": x})[0], plain(FUSED).run(None, {"x": x})[0])
    with pytest.raises(Exception, match=r"com\.microsoft"):
        inside(FUSED, domains="all")
    for domain, fits in (("com.microsoft", True), ("org.com.microsoft", False)):
        model = onnx.parser.parse_model(FUSED)
        model.opset_import.append(onnx.helper.make_opsetid(domain, 1))
        data = model.SerializeToString()
        assert fastpool.onnx._session._imports_microsoft(data) == fits
        session = fastpool.onnx.InferenceSession(data, None, CPU)
        cases.assert_same(session.run(None, {"x": x})[0], plain(FUSED).run(None, {"x": x})[0])


def test_options_of_the_caller_fit_all_models():
    """Only a session's own options say that a model imports com.microsoft."""
    model = onnx.parser.parse_model(FUSED)
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    given = options()
    for each in (model.SerializeToString(), onnx.parser.parse_model(FUSED).SerializeToString()):
        fastpool.onnx.InferenceSession(each, given, CPU)


@pytest.mark.parametrize("more", [{"dilations": [2, 2, 2]}, {"auto_pad": "SAME_UPPER"}])
def test_the_slow_windows_of_onnxruntime_are_not_delegated(more):
    x = cases.values((1, 2, 9, 9, 9), "float32", "ties", 0)
    attributes = {"kernel_shape": [3, 3, 3], "strides": [2, 2, 2]}
    model = model_of("MaxPool", {"x": x}, shape=x.shape, **attributes)
    assert "whose kernel is faster" in fastpool.onnx.explain(model)
    model = model_of("MaxPool", {"x": x}, shape=x.shape, **attributes, **more)
    assert "whose kernel is faster" not in fastpool.onnx.explain(model)


X = np.random.default_rng(0).standard_normal((1, 3, 60, 60), np.float32)
WINDOW = {"kernel_shape": [5, 5]}


def test_numerics():
    """The three differ on these numbers, and global means follow the option too."""
    model, whole = (
        model_of("AveragePool", {"x": X}, **WINDOW),
        model_of("GlobalAveragePool", {"x": X}),
    )
    seen = set()
    for numerics in ("pairwise", "exact", "sequential"):
        (got,) = inside(model, numerics=numerics).run(None, {"x": X})
        assert_same(got, fastpool.onnx.average_pool(X, numerics=numerics, **WINDOW))
        (mean,) = inside(whole, numerics=numerics).run(None, {"x": X})
        assert_same(mean, fastpool.onnx.global_average_pool(X, numerics=numerics))
        seen.add(got.tobytes())
    assert len(seen) == 3
    (got,) = inside(model).run(None, {"x": X})
    assert_same(got, fastpool.onnx.average_pool(X, **WINDOW))


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
def test_nan(op_type):
    function = {
        "MaxPool": fastpool.onnx.max_pool,
        "AveragePool": fastpool.onnx.average_pool,
        "LpPool": fastpool.onnx.lp_pool,
    }[op_type]
    x = X.copy()
    x[:, :, ::7] = np.nan
    for nan in ("propagate", "ignore"):
        (got,) = inside(model_of(op_type, {"x": x}, **WINDOW), nan=nan).run(None, {"x": x})
        assert_same(got, function(x, nan=nan, **WINDOW))
    global_type = f"Global{op_type}"
    (got,) = inside(model_of(global_type, {"x": x}), nan="ignore").run(None, {"x": x})
    whole = {
        "GlobalMaxPool": fastpool.onnx.global_max_pool,
        "GlobalAveragePool": fastpool.onnx.global_average_pool,
        "GlobalLpPool": fastpool.onnx.global_lp_pool,
    }[global_type]
    assert_same(got, whole(x, nan="ignore"))


def bits(session, x):
    return session.run(None, {"x": x})[0].tobytes()


def test_select():
    """A small global mean is one of onnxruntime's own kernel, unless all nodes are selected."""
    x = X[:, :, :7, :7].copy()
    model = model_of("GlobalAveragePool", {"x": x})
    theirs, ours = plain(model), fastpool.onnx.global_average_pool(x).tobytes()
    assert bits(theirs, x) != ours
    assert bits(inside(model, select="all"), x) == ours
    assert bits(inside(model, select="faster"), x) == bits(inside(model), x) == bits(theirs, x)
    assert bits(inside(model, select="none"), x) == bits(theirs, x)
    assert bits(inside(model, numerics="pairwise"), x) == ours  # an option is to be followed
    x = cases.values((1, 16, 50, 50), "float32", "bits", 0)
    wide = model_of("GlobalAveragePool", {"x": x})
    assert bits(inside(wide), x) == fastpool.onnx.global_average_pool(x).tobytes()


def test_delegated_nodes_have_the_bits_of_onnxruntime():
    """Each operator that may be delegated, with all of its attributes absent and with all given."""
    small = X[:, :, :6, :6].copy()
    cube = np.random.default_rng(0).standard_normal((1, 2, 9, 9, 9), np.float32)
    cases_of = [
        ("GlobalAveragePool", small, {}),
        ("GlobalAveragePool", cube, {}),
        ("MaxPool", cube, {"kernel_shape": [3, 3, 3], "strides": [2, 2, 2]}),
        (
            "MaxPool",
            cube,
            {
                "kernel_shape": [3, 3, 3],
                "strides": [2, 2, 2],
                "auto_pad": "SAME_LOWER",
                "ceil_mode": 0,
                "dilations": [1, 1, 1],
                "storage_order": 0,
            },
        ),
        ("LpPool", small, {"kernel_shape": [2, 2]}),
        ("LpPool", small, {"kernel_shape": [2, 2], "p": 1, "pads": [1, 0, 0, 1], "ceil_mode": 1}),
        ("LpPool", small, {"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER", "strides": [2, 1]}),
    ]
    for op_type, x, attributes in cases_of:
        model = model_of(op_type, {"x": x}, **attributes)
        assert_same(inside(model).run(None, {"x": x})[0], plain(model).run(None, {"x": x})[0])


def test_global_norms_run_where_onnxruntime_has_no_kernel():
    """Its kernel is of opset 2 only; ours delegates to it, or runs."""
    x = X[:, :, :6, :6].copy()
    model, old = (model_of("GlobalLpPool", {"x": x}, opset=opset) for opset in (22, 13))
    assert_same(inside(model).run(None, {"x": x})[0], plain(old).run(None, {"x": x})[0])
    with pytest.raises(Exception, match="NOT_IMPLEMENTED"):
        plain(model)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("numerics", "fast", 'expected one of "pairwise", "exact", "sequential", got \'fast\''),
        ("nan", "1", 'expected one of "propagate", "ignore"'),
        ("select", "some", 'expected one of "faster", "all", "none", got \'some\''),
        ("select", "", 'expected one of "faster", "all", "none", got \'\''),
    ],
)
def test_wrong_options(name, value, expected):
    with pytest.raises(Exception, match=rf"fastpool\.{name}: .*{expected}"):
        inside(model_of("MaxPool", {"x": X}, **WINDOW), **{name: value})


def test_options_that_are_too_long():
    with pytest.raises(Exception, match=r"fastpool\.numerics"):
        inside(model_of("MaxPool", {"x": X}, **WINDOW), numerics="x" * 100)


def test_options_of_two_lines():
    with pytest.raises(Exception, match=r"fastpool\.numerics"):
        inside(model_of("MaxPool", {"x": X}, **WINDOW), numerics="exact\nfastpool.select=none")


def test_options_are_those_of_their_session():
    """Two sessions with different options, next to each other."""
    model = model_of("AveragePool", {"x": X}, **WINDOW)
    both = [inside(model, numerics=numerics) for numerics in ("exact", "sequential")]
    for session, numerics in zip(both * 2, ("exact", "sequential") * 2, strict=True):
        expected = fastpool.onnx.average_pool(X, numerics=numerics, **WINDOW)
        assert_same(session.run(None, {"x": X})[0], expected)


# ---------------------------------------------------------------------------------------- explain

# (onnxruntime's optimiser takes means of 16 channels on AVX-512, and of 8 on AVX2.)
NET = """
    <ir_version: 8, opset_import: ["": {opset}]>
    net (float[1, 3, 32, 32] x, bool b)
        => (float[1, 3, 1, 1] z, int64[n, c, h, w] where, float[n, c, h, w] v) {{
        y, where = MaxPool <kernel_shape = [2, 2]> (x)
        a = AveragePool <kernel_shape = [2, 2]> (y)
        z = GlobalAveragePool (a)
        v = If (b) <
            then_branch = yes () => (float[n, c, h, w] t) {{
                t = LpPool <kernel_shape = [2, 2]> (x)
            }},
            else_branch = no () => (float[n, c, h, w] e) {{ e = Neg (x) }}
        >
    }}"""


@pytest.mark.parametrize(("opset", "ours"), [(22, 3), (13, 1), (11, 0)])
def test_explain(opset, ours, tmp_path):
    model = onnx.parser.parse_model(NET.format(opset=opset))
    text = fastpool.onnx.explain(model)
    head, *lines = text.splitlines()
    assert head == f"{ours} of 4 pooling nodes with fastpool" and len(lines) == 4
    since = {"y": 12, "a": 19, "z": 1, "t": 18}
    for line in lines:
        output = line.split("'")[1]
        who = "fastpool"
        if since[output] > opset:
            who = f"onnxruntime, as fastpool's kernels begin with opset {since[output]}"
        elif output == "z":  # a global mean of few elements
            who = "onnxruntime, whose kernel is faster for its shape"
        assert line.endswith(f": {who}")
    onnx.save(model, tmp_path / "model.onnx")
    for given in (model.SerializeToString(), tmp_path / "model.onnx", str(tmp_path / "model.onnx")):
        assert fastpool.onnx.explain(given) == text


def test_explain_names_what_optimisers_take():
    text = """
        <ir_version: 8, opset_import: ["": 13]>
        net (float[1, 16, 32, 32] x) => (float[1, 16, n, n] z) {
            one = Constant <value_float = 1.0> ()
            shape = Constant <value_ints = [16, 16, 1, 1]> ()
            w = Expand (one, shape)
            a = Conv (x, w)
            z = MaxPool <kernel_shape = [2, 2]> (a)
        }"""
    explained = fastpool.onnx.explain(onnx.parser.parse_model(text))
    assert explained.endswith("(MaxPool) of the output 'z': onnxruntime, whose optimiser took it")


def test_explain_says_what_is_delegated():
    """Onnxruntime's own kernel is faster for some shapes, which may not be known."""
    cube = {"kernel_shape": [3, 3, 3], "strides": [2, 2, 2]}
    volume = np.zeros((1, 2, 9, 9, 9), np.float32)
    for op_type, x, shape, attributes, ours, who in (
        (
            "GlobalAveragePool",
            X,
            [1, 3, 7, 7],
            {},
            0,
            "onnxruntime, whose kernel is faster for its shape",
        ),
        ("GlobalAveragePool", X, [1, 10, 60, 60], {}, 1, "fastpool"),
        (
            "GlobalAveragePool",
            X,
            [1, 3, "h", 7],
            {},
            1,
            "fastpool, or onnxruntime for shapes where that is faster",
        ),
        (
            "MaxPool",
            volume,
            [1, 2, 9, 9, 9],
            cube,
            0,
            "onnxruntime, whose kernel is faster for its shape",
        ),
        ("MaxPool", X, [1, 3, "h", 7], WINDOW, 1, "fastpool"),
    ):
        text = fastpool.onnx.explain(model_of(op_type, {"x": x}, shape=shape, **attributes))
        head = f"{ours} of 1 pooling nodes with fastpool"
        if "shapes" in who:
            head = "0 of 1 pooling nodes with fastpool, 1 by their shape"
        assert text == f"{head}\n  node 'n' ({op_type}): {who}"


def test_explain_of_branches_with_outputs_of_one_name():
    branch = "{{ t = MaxPool <kernel_shape = [{}]> (x) }}"
    text = f"""
        <ir_version: 8, opset_import: ["": 13]>
        net (float[1, 1, 8] x, bool b) => (float[1, 1, n] z) {{
            z = If (b) <
                then_branch = yes () => (float[1, 1, n] t) {branch.format(2)},
                else_branch = no () => (float[1, 1, n] t) {branch.format(3)}
            >
        }}"""
    explained = fastpool.onnx.explain(onnx.parser.parse_model(text))
    assert explained.splitlines()[0] == "2 of 2 pooling nodes with fastpool"


def test_explain_counts_nodes_of_functions():
    text = """
        <ir_version: 8, opset_import: ["": 13, "local": 1]>
        net (float[1, 1, 8] x) => (float[1, 1, n] z) { a = local.f (x)  z = local.f (a) }
        <domain: "local", opset_import: ["": 13]>
        f (x) => (z) { y, i = MaxPool <kernel_shape = [2]> (x)  z = Neg (y) }"""
    assert fastpool.onnx.explain(onnx.parser.parse_model(text)) == (
        "2 of 2 pooling nodes with fastpool\n"
        "  MaxPool of a function: fastpool\n"
        "  MaxPool of a function: fastpool"
    )


@pytest.mark.parametrize(
    ("model", "error", "match"),
    [
        (3, TypeError, "^model: expected an onnx.ModelProto, a path or bytes, got 3"),
        (b"nonsense", ValueError, "^model: "),
        (model_of("MaxPool", {"x": X}, kernel_shape=[0, 2]), ValueError, "^model: .*kernel_shape"),
        (model_of("Nonsense", {"x": X}), ValueError, "^model: .*Nonsense"),
    ],
    ids=["type", "bytes", "attributes", "operator"],
)
def test_explain_of_wrong_models(model, error, match):
    with pytest.raises(error, match=match):
        fastpool.onnx.explain(model)


def test_library_is_a_path_for_any_session():
    given = options()
    given.register_custom_ops_library(fastpool.onnx.library())
    x = {"x": cases.values((1, 2, 9, 9), "int32", "bits", 0)}
    model = model_of("MaxPool", x, **WINDOW).SerializeToString()
    session = onnxruntime.InferenceSession(model, given, CPU)
    assert_same(session.run(None, x)[0], fastpool.onnx.max_pool(x["x"], **WINDOW))
