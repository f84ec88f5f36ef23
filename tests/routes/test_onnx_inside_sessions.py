"""Sessions with fastpool are onnxruntime's own: its whole interface, files, and kinds of models."""

import threading

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx.parser
import onnxruntime

import cases
import fastpool.onnx
from cases import assert_same
from onnx_models import CPU, inside, model_of, options, ort_value, plain, serialized

X = np.random.default_rng(0).standard_normal((2, 3, 12, 16), np.float32)
POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}
Y, WHERE = fastpool.onnx.max_pool(X, n_outputs=2, **POOL)
MAX = model_of("MaxPool", {"x": X}, ["y", "i"], **POOL)


# ------------------------------------------------------------------------------ the ways of running


def test_it_is_a_session_of_onnxruntime(monkeypatch):
    """A program that makes sessions itself takes fastpool's by one assignment."""
    assert isinstance(inside(MAX), onnxruntime.InferenceSession)
    monkeypatch.setattr(onnxruntime, "InferenceSession", fastpool.onnx.InferenceSession)
    x = cases.values((1, 2, 9, 9), "int64", "bits", 0)
    session = onnxruntime.InferenceSession(serialized(model_of("MaxPool", {"x": x}, **POOL)))
    assert_same(session.run(None, {"x": x})[0], fastpool.onnx.max_pool(x, **POOL))


def test_run_with_names_and_values():
    session = inside(MAX)
    assert [value.name for value in session.get_outputs()] == ["y", "i"]
    assert_same(session.run(["i"], {"x": X})[0], WHERE)
    assert_same(session.run(["i", "y"], {"x": X})[1], Y)
    y, i = session.run_with_ort_values(None, {"x": ort_value(X)})
    assert_same(y.numpy(), Y)
    assert_same(i.numpy(), WHERE)
    run_options = onnxruntime.RunOptions()
    run_options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    assert_same(session.run(None, {"x": X}, run_options)[0], Y)


def test_io_binding():
    """Into memory of the caller, and into memory of onnxruntime."""
    session = inside(MAX)
    binding = session.io_binding()
    y, where = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros_like(Y)), np.zeros_like(WHERE)
    for _ in range(2):
        binding.bind_cpu_input("x", X)
        binding.bind_ortvalue_output("y", y)
        binding.bind_output(
            "i", "cpu", 0, np.int64, where.shape, where.__array_interface__["data"][0]
        )
        session.run_with_iobinding(binding)
        assert_same(y.numpy(), Y)
        assert_same(where, WHERE)
    binding.clear_binding_outputs()
    binding.bind_output("i")
    session.run_with_iobinding(binding)
    assert_same(binding.copy_outputs_to_cpu()[0], WHERE)


def test_an_output_of_another_shape_is_refused():
    session = inside(MAX)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    small = np.zeros((2, 3, 6, 7), np.float32)
    binding.bind_ortvalue_output("y", onnxruntime.OrtValue.ortvalue_from_numpy(small))
    binding.bind_output("i")
    with pytest.raises(Exception, match="[Ss]hape"):
        session.run_with_iobinding(binding)


def test_run_async():
    """Plans are made on onnxruntime's threads, for shapes that they see first."""
    given = options()
    given.intra_op_num_threads = 2
    session = inside(MAX, given)
    shapes = [(1, 2, size, 9) for size in range(4, 40)]
    arrays = [cases.values(shape, "float32", "bits", 0) for shape in shapes]
    found = [None] * len(arrays)
    done = threading.Semaphore(0)

    def take(results, place, error):
        found[place] = error or results
        done.release()

    for place, x in enumerate(arrays):
        session.run_async(None, {"x": x}, take, place)
    for _ in arrays:
        assert done.acquire(timeout=300)
    for x, results in zip(arrays, found, strict=True):
        assert not isinstance(results, str), results
        for got, expected in zip(
            results, fastpool.onnx.max_pool(x, n_outputs=2, **POOL), strict=True
        ):
            assert_same(got, expected)


def test_profiling(tmp_path):
    given = options()
    given.enable_profiling = True
    given.profile_file_prefix = str(tmp_path / "profile")
    session = inside(MAX, given)
    session.run(None, {"x": X})
    with open(session.end_profiling()) as f:
        assert '"op_name" : "MaxPool"' in f.read()


def test_metadata_and_descriptions():
    model = onnx.ModelProto()
    model.CopyFrom(MAX)
    model.producer_name, model.doc_string, model.model_version = "me", "what it is", 7
    model.metadata_props.add(key="k", value="v")
    ours, theirs = inside(model), plain(model)
    for name in (
        "producer_name",
        "graph_name",
        "description",
        "domain",
        "version",
        "custom_metadata_map",
    ):
        got, expected = (getattr(s.get_modelmeta(), name) for s in (ours, theirs))
        assert got == expected
    assert ours.get_providers() == theirs.get_providers() == CPU
    assert ours.get_provider_options() == theirs.get_provider_options()
    assert ours.get_session_options() is not None


@pytest.mark.parametrize(
    "shape", [[2, 3, 12, 16], ["n", 3, "h", 16], ["n", "c", "h", "w"], [None, 3, None, 16]]
)
@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool", "GlobalAveragePool"])
def test_inputs_and_outputs_are_described_as_onnxruntime_does(op_type, shape):
    """Extents that it does not know may have a name here, but never -1."""
    attributes = {} if op_type.startswith("Global") else POOL | {"auto_pad": "SAME_UPPER"}
    model = model_of(op_type, {"x": X}, shape=shape, **attributes)
    ours, theirs = inside(model), plain(model)
    for got, expected in zip(
        ours.get_inputs() + ours.get_outputs(),
        theirs.get_inputs() + theirs.get_outputs(),
        strict=True,
    ):
        assert (got.name, got.type) == (expected.name, expected.type)
        assert len(got.shape) == len(expected.shape)
        for extent, same in zip(got.shape, expected.shape, strict=True):
            assert extent == same or (same is None and isinstance(extent, str))


def test_unknown_rank():
    model = onnx.ModelProto()
    model.CopyFrom(MAX)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    session = inside(model)
    assert session.get_outputs()[0].shape == plain(model).get_outputs()[0].shape == []
    assert_same(session.run(None, {"x": X})[0], Y)


def test_symbolic_shapes_meet_again():
    """Names of extents that are not known: two branches with equal windows are added."""
    text = """
        <ir_version: 8, opset_import: ["": 21]>
        net (float[n, c, h, w] x) => (float[n, c, a, b] z) {
            p = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]> (x)
            q = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]> (x)
            z = Add (p, q)
        }"""
    x = {"x": X}
    for h in (12, 11):
        (got,) = inside(text, numerics="sequential").run(None, {"x": X[:, :, :h].copy()})
        assert_same(got, plain(text).run(None, {"x": X[:, :, :h].copy()})[0])
    assert_same(inside(text).run(None, x)[0], inside(text, select="all").run(None, x)[0])


def test_free_dimensions():
    given = options()
    for name, extent in (("n", 2), ("h", 12), ("w", 16)):
        given.add_free_dimension_override_by_name(name, extent)
    session = inside(
        model_of("MaxPool", {"x": X}, ["y", "i"], shape=["n", 3, "h", "w"], **POOL), given
    )
    assert session.get_outputs()[0].shape == [2, 3, 6, 8]
    assert_same(session.run(None, {"x": X})[1], WHERE)


# ----------------------------------------------------------------------------------- registering


def test_registering_twice_and_options_of_two_sessions():
    given = options()
    given.register_custom_ops_library(fastpool.onnx.library())
    given.register_custom_ops_library(fastpool.onnx.library())
    sessions = [inside(MAX, given), inside(MAX, given)]
    sessions.append(onnxruntime.InferenceSession(serialized(MAX), given, CPU))
    del given
    sessions.append(plain(MAX))
    for session in sessions * 2:
        assert_same(session.run(None, {"x": X})[1], WHERE)


def test_providers():
    for providers in (None, CPU, [("CPUExecutionProvider", {})]):
        session = fastpool.onnx.InferenceSession(serialized(MAX), options(), providers)
        assert_same(session.run(None, {"x": X})[0], Y)
    session = fastpool.onnx.InferenceSession(
        serialized(MAX),
        providers=CPU,
        provider_options=[{}],
        disabled_optimizers=["ConstantFolding"],
    )
    assert_same(session.run(None, {"x": X})[0], Y)
    session.set_providers(CPU)
    assert_same(session.run(None, {"x": X})[0], Y)


@pytest.mark.filterwarnings("ignore:Specified provider:UserWarning")
def test_providers_of_other_devices_get_no_kernels(monkeypatch):
    """A warning says so once. Those that onnxruntime has not, it leaves out itself."""
    from fastpool.onnx import _session

    _session._warn_once.cache_clear()
    x = cases.values((1, 2, 9, 9), "int64", "bits", 0)
    only_ours = serialized(model_of("MaxPool", {"x": x}, **POOL))
    both = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    fastpool.onnx.InferenceSession(only_ours, options(), both)  # onnxruntime has no CUDA here
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: both)
    with pytest.warns(UserWarning, match="registers no kernels in sessions with CUDAExecution"):
        session = fastpool.onnx.InferenceSession(serialized(MAX), options(), both)
    assert_same(session.run(None, {"x": X})[0], Y)
    with pytest.raises(Exception, match="INVALID_GRAPH"):
        fastpool.onnx.InferenceSession(only_ours, options(), both)  # (and no warning)


# ---------------------------------------------------------------------------------------- files


def test_external_data(tmp_path):
    weights = np.random.default_rng(0).standard_normal((3, 3, 1, 1)).astype(np.float32)
    text = """
        <ir_version: 8, opset_import: ["": 13]>
        net (float[2, 3, 12, 16] x) => (float[2, 3, 6, 8] y, int64[2, 3, 6, 8] i) {
            a = Mul (x, w)
            y, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a)
        }"""
    model = onnx.parser.parse_model(text.replace("Mul (x, w)", "Conv (x, w)"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="weights")
    assert cases.names(tmp_path) == ["model.onnx", "weights"]
    sessions = [
        make(path, options(), CPU)
        for make in (fastpool.onnx.InferenceSession, onnxruntime.InferenceSession)
    ]
    for got, expected in zip(*(s.run(None, {"x": X}) for s in sessions), strict=True):
        assert_same(got, expected)
    assert "fastpool" in fastpool.onnx.explain(path)


def test_optimised_models_load_without_fastpool(tmp_path):
    path = str(tmp_path / "optimised.onnx")
    given = options()
    given.optimized_model_filepath = path
    inside(MAX, given)
    for make in (fastpool.onnx.InferenceSession, onnxruntime.InferenceSession):
        assert_same(make(path, options(), CPU).run(None, {"x": X})[1], WHERE)


def saved_as_ort(make, path):
    given = options()
    given.optimized_model_filepath = str(path)
    given.add_session_config_entry("session.save_model_format", "ORT")
    make(MAX, given)
    return str(path)


def test_ort_files_with_fastpool(tmp_path):
    """They need the library to load, and onnxruntime says what it lacks without it."""
    path = saved_as_ort(inside, tmp_path / "model.ort")
    session = fastpool.onnx.InferenceSession(path, options(), CPU)
    assert_same(session.run(None, {"x": X})[1], WHERE)
    with pytest.raises(Exception, match="NOT_IMPLEMENTED.*MaxPool"):
        onnxruntime.InferenceSession(path, options(), CPU)


def test_ort_files_of_onnxruntime_alone(tmp_path):
    """They name the types of onnxruntime's own kernels, which the library hides."""
    path = saved_as_ort(plain, tmp_path / "model.ort")
    with pytest.raises(Exception, match="implementation for MaxPool"):
        fastpool.onnx.InferenceSession(path, options(), CPU)
    session = fastpool.onnx.InferenceSession(path, options(select="none"), CPU)
    assert_same(session.run(None, {"x": X})[1], WHERE)


# -------------------------------------------------------------------------------- kinds of models


def check(text, inputs, ours):
    """Compare with onnxruntime, with `ours` pooling nodes of fastpool."""
    explained = fastpool.onnx.explain(onnx.parser.parse_model(text))
    assert explained.startswith(f"{ours} of "), explained
    got, expected = (make(text).run(None, inputs) for make in (inside, plain))
    for one, same in zip(got, expected, strict=True):
        if isinstance(same, list):
            for item, other in zip(one, same, strict=True):
                assert_same(item, other)
        else:
            assert_same(one, same)


@pytest.mark.parametrize("choice", [False, True])
def test_poolings_inside_if(choice):
    text = """
        <ir_version: 8, opset_import: ["": 13]>
        net (float[n, c, h, w] x, bool b) => (float[n, c, k, l] z) {
            y, i = MaxPool <kernel_shape = [2, 2]> (x)
            z = If (b) <
                then_branch = yes () => (float[n, c, k, l] t) {
                    t, it = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (y)
                },
                else_branch = no () => (float[n, c, k, l] e) {
                    e, ie = MaxPool <kernel_shape = [3, 3]> (x)
                }
            >
        }"""
    check(text, {"x": X, "b": np.array(choice)}, 3)


def test_poolings_inside_loop():
    """Each round sees another shape, and the results are scanned or carried."""
    text = """
        <ir_version: 8, opset_import: ["": 13]>
        net (float[n, c, h, w] x, int64 count) => (float[n, c, k, l] z, float[r, s] sums) {
            go = Constant <value = bool {1}> ()
            z, sums = Loop (count, go, x) <
                body = once (int64 round, bool on, float[n, c, h, w] v)
                    => (bool still, float[n, c, k, l] y, float[s] top) {
                    still = Identity (on)
                    y, i = MaxPool <kernel_shape = [2, 2]> (v)
                    t = ReduceMax <axes = [1, 2, 3], keepdims = 0> (y)
                    top = Identity (t)
                }
            >
        }"""
    for count in (1, 5):
        check(text, {"x": X, "count": np.array(count)}, 1)


def test_functions_of_models():
    text = """
        <ir_version: 8, opset_import: ["": 13, "local": 1]>
        net (float[2, 3, h, w] x) => (float[2, 3, k, l] z) {
            a = local.f <size = [3, 3]> (x)
            z = local.f <size = [2, 2]> (a)
        }
        <domain: "local", opset_import: ["": 13]>
        f <size> (x) => (z) { y, i = MaxPool <kernel_shape: ints = @size> (x)  z = Neg (y) }"""
    check(text, {"x": X}, 2)


def test_sequences_and_optional_outputs():
    text = """
        <ir_version: 8, opset_import: ["": 16]>
        net (float[2, 3, 12, 16] x) => (seq(float[2, 3, k, l]) s, float[2, 3, k, l] e) {
            y, i = MaxPool <kernel_shape = [2, 2]> (x)
            v, j = MaxPool <kernel_shape = [3, 2]> (x)
            s = SequenceConstruct (y, v)
            o = Optional (v)
            e = OptionalGetElement (o)
        }"""
    check(text, {"x": X}, 2)


def test_indices_without_a_name():
    """They are not wanted. The values always are: onnxruntime refuses a node without them."""
    (got,) = inside(model_of("MaxPool", {"x": X}, ["y", ""], **POOL)).run(None, {"x": X})
    assert_same(got, Y)
    with pytest.raises(Exception, match="INVALID_GRAPH"):
        inside(model_of("MaxPool", {"x": X}, ["", "i"], **POOL))


def test_constants_and_empty_batches():
    """A pooling of a constant is folded or runs; no elements are no error."""
    text = """
        <ir_version: 8, opset_import: ["": 13]>
        net (float[n, 1, 2] x) => (float[n, 1, 1] z, float[1, 1, 2] c)
        <float[1, 1, 3] f = {1, 3, 2}> {
            c, i = MaxPool <kernel_shape = [2]> (f)
            z, j = MaxPool <kernel_shape = [2]> (x)
        }"""
    z, c = inside(text).run(None, {"x": np.zeros((0, 1, 2), np.float32)})
    assert z.shape == (0, 1, 1) and c.tolist() == [[[3, 3]]]


@pytest.mark.parametrize(
    ("missing", "name", "extra"),
    [
        ("onnx", "Backend", "onnx"),
        ("onnx", "ops", "onnx"),
        ("onnx", "explain", "onnx"),
        ("onnxruntime", "explain", "onnxruntime"),
        ("onnxruntime", "library", "onnxruntime"),
        ("onnxruntime", "InferenceSession", "onnxruntime"),
    ],
)
def test_missing_packages(missing, name, extra):
    code = f"""
import fastpool.onnx
assert fastpool.onnx.max_pool and {name!r} in dir(fastpool.onnx)
fastpool.onnx.{name}
"""
    line = f'fastpool.onnx.{name} needs {missing}: pip install "fastpool[{extra}]"'
    assert cases.error_without(missing, code) == f"ImportError: {line}"
