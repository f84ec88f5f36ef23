"""Rounding up gives the windows of onnxruntime, ONNX and torch, on every row of up to 6 elements.

Among them are windows larger than the padded input.
"""

from itertools import product

import numpy as np
import pytest

import cases
import fastpool
from fastpool._plans import make_avg_plan, make_lp_plan, make_plan

SMALL = range(1, 7)
# Attributes of averages and norms that give the same whatever the padding is.
MEANS = [{"count_include_pad": include} for include in (False, True)]


def row(size):
    """Numbers of both signs in no order, as (1, 1, size). Their sums and squares are exact."""
    numbers = np.random.default_rng(size).permutation(np.arange(size) - 2)
    return numbers.astype(np.float32)[None, None]


def has_window(size, kernel, stride, dilation, begin, end):
    """Is less than a stride missing to the extent of the window?"""
    return (kernel - 1) * dilation + 1 - (size + begin + end) < stride


# ------------------------------------------------------------------------------- onnxruntime, ONNX


def onnx_model(opset, size, windows):
    """Return a model with poolings of one row: of every kind, or maxima of a dilated window."""
    helper = pytest.importorskip("onnx.helper")
    nodes = []
    for kernel, stride, dilation, begin, end in windows:
        attributes = {"kernel_shape": [kernel], "strides": [stride], "pads": [begin, end]}
        attributes |= {"ceil_mode": 1}
        kinds = [("MaxPool", {"dilations": [dilation]} if dilation > 1 else {})]
        if dilation == 1:
            kinds += [("AveragePool", means) for means in MEANS]
            kinds += [("LpPool", {})] * (opset >= 18)
        for kind, more in kinds:
            results = [f"y{len(nodes)}", f"i{len(nodes)}"][: 1 + (kind == "MaxPool")]
            nodes.append(helper.make_node(kind, ["x"], results, **attributes, **more))
    results = [name for node in nodes for name in node.output]
    values = [helper.make_tensor_value_info(n, 1 + 6 * n.startswith("i"), None) for n in results]
    x = helper.make_tensor_value_info("x", 1, [1, 1, size])
    graph = helper.make_graph(nodes, "poolings", [x], values)
    return helper.make_model(graph, ir_version=5, opset_imports=[helper.make_opsetid("", opset)])


def by_onnxruntime(model, x):
    """Return the results of a model as a dict, by name."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, {"x": x}), strict=True))


def inferred(model):
    """Return the shapes of the results of a model as a dict, by name."""
    inference = pytest.importorskip("onnx.shape_inference")
    values = inference.infer_shapes(model, strict_mode=True).graph.output
    return {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in values}


def by_plan(node, x):
    """Return the results of a pooling node by native plans."""
    attributes = {a.name: list(a.ints) or a.i for a in node.attribute}
    shape, kernel = x.shape, attributes.pop("kernel_shape")
    if node.op_type == "MaxPool":
        return make_plan(shape, "float32", kernel, **attributes, return_indices=True)(x)
    if node.op_type == "LpPool":
        return (make_lp_plan(shape, "float32", kernel, 2, **attributes)(x),)
    return (make_avg_plan(shape, "float32", kernel, **attributes)(x),)


def assert_like_onnxruntime(model, x):
    theirs, shapes = by_onnxruntime(model, x), inferred(model)
    for node in model.graph.node:
        ours = by_plan(node, x)
        for name, result in zip(node.output, ours, strict=True):
            assert result.shape == shapes[name] == theirs[name].shape, node
            # onnxruntime gives the lowest finite number for a window without elements.
            held = ours[-1] >= 0 if node.op_type == "MaxPool" else np.True_
            np.testing.assert_array_equal(result[held], theirs[name][held], err_msg=str(node))


@pytest.mark.parametrize("size", SMALL)
def test_onnxruntime_on_every_small_row(size):
    windows = [
        (kernel, stride, dilation, begin, end)
        for kernel, stride, dilation in product(SMALL, SMALL, (1, 2))
        # It refuses pads of the kernel's extent. Dilated windows have a few of the pads.
        for begin, end in product(range(kernel), range(0, kernel, 2 * dilation - 1))
        if has_window(size, kernel, stride, dilation, begin, end)
    ]
    assert sum(size + b + e < (k - 1) * d + 1 for k, _, d, b, e in windows) > 30
    assert_like_onnxruntime(onnx_model(22, size, windows), row(size))


@pytest.mark.parametrize("opset", range(10, 23))
def test_onnxruntime_in_every_opset(opset):
    """Windows that exceed the padded input."""
    windows = [
        (kernel, stride, 1, begin, end)
        for kernel, stride in product(range(3, 6), range(1, 5))
        for begin, end in product((0, 1), repeat=2)
        if 2 + begin + end < kernel and has_window(2, kernel, stride, 1, begin, end)
    ]
    assert len(windows) > 10
    assert_like_onnxruntime(onnx_model(opset, 2, windows), row(2))


@pytest.mark.parametrize("opset", range(10, 23))
def test_models_with_small_maps(opset):
    """Windows of 3 x 3 at stride 2 over what is left of a small image, as in classifiers.

    Along an axis of one element without padding, such a window misses the whole stride.
    """
    parser = pytest.importorskip("onnx.parser")
    onnxruntime = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("fastpool.onnx")
    for sizes, pads in (((2, 2), [0, 0, 0, 0]), ((1, 2), [0, 0, 1, 0]), ((1, 1), [1, 0, 0, 1])):
        window = f"kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1, pads = {pads}"
        model = parser.parse_model(
            f"""<ir_version: 5, opset_import: ["" : {opset}]>
            main (float[1, 3, {sizes[0]}, {sizes[1]}] x)
                => (float[1, 3, a, b] y, float[1, 3, a, b] m) {{
                y = MaxPool<{window}>(x)
                m = AveragePool<{window}, count_include_pad = 1>(x)
            }}"""
        )
        x = np.random.default_rng(0).integers(-9, 9, (1, 3, *sizes)).astype(np.float32)
        options = {"providers": ["CPUExecutionProvider"]}
        given = model.SerializeToString()
        expected = onnxruntime.InferenceSession(given, **options).run(None, {"x": x})
        assert expected[0].shape == inferred(model)["y"] == (1, 3, 1, 1)
        entries = onnxruntime.SessionOptions()
        entries.add_session_config_entry("fastpool.select", "all")
        ours = onnx.InferenceSession(given, entries, **options)
        for results in (ours.run(None, {"x": x}), onnx.Backend.prepare(model).run([x])):
            for result, theirs in zip(results, expected, strict=True):
                np.testing.assert_allclose(result, theirs, rtol=1e-6)


# -------------------------------------------------------------------------------------------- torch


def test_torch_on_every_small_row():
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    front = pytest.importorskip("fastpool.torch")

    def answer(function, x, *attributes):
        """The results as arrays; None if it refuses."""
        try:
            results = function(torch.from_numpy(x), *attributes)
        except (RuntimeError, ValueError):
            return None
        return [r.numpy() for r in (results if isinstance(results, tuple) else (results,))]

    seen = dict.fromkeys(("windows", "larger", "refused"), 0)
    for size, kernel, stride in product(SMALL, SMALL, SMALL):
        x = row(size)
        for pad in range(kernel // 2 + 1):  # it refuses larger ones
            native = {"strides": stride, "pads": pad, "ceil_mode": True}
            for dilation in (1, 2):
                attributes = kernel, stride, pad, dilation, True, True
                theirs = answer(functional.max_pool1d, x, *attributes)
                ours = answer(front.max_pool1d, x, *attributes)
                if not has_window(size, kernel, stride, dilation, pad, pad):
                    assert theirs is ours is None
                    with pytest.raises(ValueError, match="^kernel_shape.*by at least the stride"):
                        make_plan(x.shape, "float32", kernel, **native, dilations=dilation)
                    seen["refused"] += 1
                    continue
                held = ours[1] >= 0  # torch's indices of empty windows are outside of the input
                for result, expected in zip(ours, theirs, strict=True):
                    assert result.shape == expected.shape
                    cases.assert_same(result[held], expected[held])
                seen["windows"] += 1
                seen["larger"] += size + 2 * pad < (kernel - 1) * dilation + 1
            for means in MEANS:
                attributes = kernel, stride, pad, True, means["count_include_pad"]
                theirs = answer(functional.avg_pool1d, x, *attributes)
                ours = answer(front.avg_pool1d, x, *attributes)
                if theirs is None:
                    assert ours is None and not has_window(size, kernel, stride, 1, pad, pad)
                    continue
                cases.assert_same(ours[0], theirs[0])
        theirs = answer(functional.lp_pool1d, x, 2.0, kernel, stride, True)
        ours = answer(front.lp_pool1d, x, 2.0, kernel, stride, True)
        if theirs is None:
            assert ours is None
        else:
            np.testing.assert_allclose(ours[0], theirs[0], rtol=3e-7)
    assert min(seen.values()) > 100, seen


# ----------------------------------------------------------------------------------- other routes


# A window that exceeds both axes of X.
WINDOW = {"kernel_shape": (7, 4), "strides": (3, 4), "pads": (1, 0, 0, 0), "ceil_mode": True}
CALLS = [
    ("max_pool", {**WINDOW, "return_indices": True}),
    ("avg_pool", {**WINDOW, "count_include_pad": True, "beyond": "drop"}),
    ("avg_pool", {**WINDOW, "count_include_pad": True, "beyond": "count"}),
    ("lp_pool", {**WINDOW, "p": 2, "partial": "scale"}),
]
X = np.arange(2 * 3 * 4 * 2, dtype=np.float32).reshape(2, 3, 4, 2)


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize(("name", "attributes"), CALLS)
def test_tiles(name, attributes):
    plan = getattr(fastpool, f"plan_{name}")(X.shape, "float32", **attributes)
    whole = as_tuple(plan(X))
    assert plan.output_shape == (2, 3, 1, 1)
    for outputs in (np.s_[:1], np.s_[1:, 1:], np.s_[:, :, :, :], np.s_[:, :, :0]):
        part, read, write = plan.tile(outputs)
        for result, expected in zip(as_tuple(part(X[read])), whole, strict=True):
            cases.assert_same(result, expected[write])


@pytest.mark.parametrize(("name", "attributes"), CALLS)
def test_chunks(name, attributes):
    array = pytest.importorskip("dask.array")
    front = pytest.importorskip("fastpool.dask")
    expected = as_tuple(getattr(fastpool, name)(X, **attributes))
    for chunks in ((1, 2, 1, 1), (2, 3, (1, 3), 2)):
        results = getattr(front, name)(array.from_array(X, chunks), **attributes)
        for result, same in zip(as_tuple(results), expected, strict=True):
            cases.assert_same(result.compute(), same)


@pytest.mark.parametrize(("name", "attributes"), CALLS)
def test_files(name, attributes, tmp_path):
    import fastpool.files

    attributes = dict(attributes)
    expected = as_tuple(getattr(fastpool, name)(X, **attributes))
    files = [tmp_path / f"{i}.npy" for i in range(3)]
    np.save(files[0], X)
    if attributes.pop("return_indices", False):
        attributes["indices"] = files[2]
    getattr(fastpool.files, name)(*files[:2], **attributes, max_bytes=8)
    for file, same in zip(files[1:], expected, strict=False):
        cases.assert_same(np.load(file), same)


@pytest.mark.parametrize(("name", "attributes"), CALLS)
def test_dimensions(name, attributes):
    xarray = pytest.importorskip("xarray")
    front = pytest.importorskip("fastpool.xarray")
    attributes = dict(attributes)
    kernel = dict(zip("hw", attributes.pop("kernel_shape"), strict=True))
    attributes["strides"] = dict(zip("hw", attributes["strides"], strict=True))
    attributes["pads"] = {"h": (1, 0), "w": 0}
    expected = as_tuple(getattr(fastpool, name)(X, **{**attributes, **WINDOW}))
    results = getattr(front, name)(
        xarray.DataArray(X, dims=("n", "c", "h", "w")), kernel, **attributes
    )
    cases.assert_same(as_tuple(results)[0].values, expected[0])
