"""Pooling a dask array equals pooling the array in one piece, whatever its chunks."""

import doctest
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import fastpool
from configurations.strategies import examples, hostile_pools, pools, unpools
from fastpool.dask import _chunks

dask = pytest.importorskip("dask")

import dask.array as da  # noqa: E402

import fastpool.dask  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    with dask.config.set(scheduler="sync"):
        yield


@st.composite
def chunks(draw, shape, most=3):
    """Ragged chunks, empty ones among them."""
    cuts = [sorted(draw(st.lists(st.integers(0, size), max_size=most))) for size in shape]
    edges = [[0, *line, size] for line, size in zip(cuts, shape, strict=True)]
    return tuple(tuple(np.diff(line).tolist()) for line in edges)


@st.composite
def chunked_pools(draw):
    case = draw(st.one_of(pools(), hostile_pools()))
    return case, draw(chunks(case.shape))


@examples(80)
@given(chunked_pools(), st.sampled_from(["max_pool", "min_pool"]))
def test_any_chunks_and_geometry(chunked, op):
    case, sizes = chunked
    x = case.x()
    expected = getattr(fastpool, op)(x, case.kernel_shape, return_indices=True, **case.attributes)
    lazy = getattr(fastpool.dask, op)(
        da.from_array(x, sizes), case.kernel_shape, return_indices=True, **case.attributes
    )
    for result, got, want in zip(lazy, dask.compute(*lazy), expected, strict=True):
        assert result.shape == want.shape and result.dtype == want.dtype
        cases.assert_same(got, want)


# What the attributes of a max pooling lack.
MEANS = st.fixed_dictionaries(
    {
        "count_include_pad": st.booleans(),
        "beyond": st.sampled_from(["drop", "count"]),
        "numerics": st.sampled_from(["exact", "sequential", "pairwise"]),
        "nan": st.sampled_from(["propagate", "ignore"]),
        "dtype": st.sampled_from([None, "float64"]),
    }
)
OF_WINDOWS = ("strides", "pads", "dilations", "auto_pad", "ceil_mode", "ceil_rule", "layout")


@examples(60)
@given(chunked_pools(), MEANS)
def test_means_of_any_chunks_and_geometry(chunked, attributes):
    case, sizes = chunked
    windows = {k: v for k, v in case.attributes.items() if k in OF_WINDOWS}
    attributes = {**windows, **attributes}
    x = case.x()
    lazy = fastpool.dask.avg_pool(da.from_array(x, sizes), case.kernel_shape, **attributes)
    want = fastpool.avg_pool(x, case.kernel_shape, **attributes)
    assert lazy.shape == want.shape and lazy.dtype == want.dtype
    cases.assert_same(lazy.compute(), want)


@st.composite
def chunked_arrays(draw):
    """An array, its layout, and chunks."""
    layout = draw(st.sampled_from(cases.layouts(draw(st.integers(1, 3)))))
    sizes = draw(st.tuples(*[st.integers(1, 9)] * len(layout.strip("NC"))))
    shape = cases.array_shape(layout, 2, 3, sizes)
    x = cases.values(shape, draw(st.sampled_from(["float32", "int16"])), "bits", 1)
    return da.from_array(x, draw(chunks(shape))), x, layout


@examples(60)
@given(chunked_arrays(), st.booleans())
def test_all_elements(chunked, keepdims):
    """One plane is in many chunks, and its mean is rounded once all the same."""
    lazy, x, layout = chunked
    same = {"layout": layout, "keepdims": keepdims}
    got = fastpool.dask.global_avg_pool(lazy, **same)
    want = fastpool.global_avg_pool(x, **same)
    assert got.shape == want.shape and got.dtype == want.dtype
    cases.assert_same(got.compute(), want)
    for name in ("global_max_pool", "global_min_pool"):
        got = getattr(fastpool.dask, name)(lazy, **same, return_indices=True)
        want = getattr(fastpool, name)(x, **same, return_indices=True)
        for one, other in zip(got, want, strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype
            cases.assert_same(one.compute(), other)


@examples(60)
@given(chunked_arrays(), st.data())
def test_adaptive_windows(chunked, data):
    lazy, x, layout = chunked
    sizes = [data.draw(st.sampled_from([None, *range(12)])) for _ in layout.strip("NC")]
    got = fastpool.dask.adaptive_avg_pool(lazy, sizes, layout=layout)
    want = fastpool.adaptive_avg_pool(x, sizes, layout=layout)
    assert got.shape == want.shape and got.dtype == want.dtype
    cases.assert_same(got.compute(), want)
    attributes = {"layout": layout, "return_indices": True}
    for name in ("adaptive_max_pool", "adaptive_min_pool"):
        got = getattr(fastpool.dask, name)(lazy, sizes, **attributes)
        want = getattr(fastpool, name)(x, sizes, **attributes)
        for one, other in zip(got, want, strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype
            cases.assert_same(one.compute(), other)


@examples(60)
@given(st.data())
def test_unpooling_where_pooling_took_from(data):
    """Windows may overlap: then a place occurs more than once, in several chunks too."""
    rank = data.draw(st.integers(1, 3))
    layout = data.draw(st.sampled_from(cases.layouts(rank)))
    sizes = data.draw(st.tuples(*[st.integers(3, 14 if rank < 3 else 7)] * rank))
    kernel, stride, pad = (data.draw(st.integers(*ends)) for ends in ((1, 5), (1, 4), (0, 2)))
    shape = cases.array_shape(layout, 2, 3, sizes)
    index_layouts = ["NCHW", "NHWC"] if layout.endswith("C") else ["NCHW"]
    common = {"layout": layout, "index_layout": data.draw(st.sampled_from(index_layouts))}
    outer = cases.first_spatial_axis(layout) - (common["index_layout"] == "NHWC")
    common["index_axis"] = data.draw(st.integers(0, outer))
    window = {"kernel_shape": kernel, "strides": stride, "pads": min(pad, kernel - 1)}
    if any(size + 2 * window["pads"] < kernel for size in sizes):
        return
    kind = data.draw(st.sampled_from(["ties", "bits"]))
    x = cases.values(shape, data.draw(st.sampled_from(["float32", "uint8"])), kind, 1)
    y, indices = fastpool.max_pool(x, **window, **common, return_indices=True)
    expected = fastpool.max_unpool(y, indices, **window, **common, output_shape=shape)
    lazy = fastpool.dask.max_unpool(
        da.from_array(y, data.draw(chunks(y.shape))),
        da.from_array(indices, data.draw(chunks(y.shape))),
        **window,
        **common,
        output_shape=shape,
    )
    cases.assert_same(lazy.compute(), expected)


@examples(80)
@given(unpools(), st.data())
def test_unpooling_is_right_or_refused(case, data):
    """Indices that no pooling gave: only along axes in one chunk may they be anywhere."""
    x, indices = case.x(), case.indices()
    expected = fastpool.max_unpool(x, indices, case.kernel_shape, **case.attributes)
    split = data.draw(st.sampled_from([None, *range(x.ndim)]))
    sizes = data.draw(chunks(x.shape))
    sizes = tuple(sizes[i] if i == split else (size,) for i, size in enumerate(x.shape))
    lazy = fastpool.dask.max_unpool(
        da.from_array(x, sizes), indices, case.kernel_shape, **case.attributes
    )
    try:
        got = lazy.compute()
    except ValueError as error:
        assert split is not None and "not in the window of its value" in str(error)
    else:
        cases.assert_same(got, expected)


# -------------------------------------------------------------------------------------- the graph


def pooling_layer(y):
    (name,) = (name for name in y.dask.layers if name.startswith("max_pool"))
    return y.dask.layers[name]


def test_windows_that_end_with_their_chunks_take_a_task_each():
    y = fastpool.dask.max_pool(da.zeros((64, 96), chunks=8), 2, strides=2, layout="HW")
    assert len(pooling_layer(y)) == y.npartitions == 8 * 12


def test_only_strips_after_a_chunk_are_cut():
    """Right, below, and the corner: four tasks a block, and none of them takes from before."""
    y = fastpool.dask.max_pool(da.zeros((64, 96), chunks=8), 3, layout="HW")
    layer = pooling_layer(y)
    assert len(layer) < 4 * y.npartitions
    strips = [task for task in layer.values() if task.func is _chunks.cut_out]
    assert len(strips) == len(layer) - y.npartitions
    for strip in strips:
        source, cut = strip.args
        after = [b > own for b, own in zip(source.key[1:], strip.key[1:3], strict=True)]
        assert any(after)
        assert all(c == slice(0, 2 if b else 8) for c, b in zip(cut, after, strict=True))


def test_chunks_smaller_than_a_window_are_merged():
    """The graph does not grow with all pairs of chunks that a window covers."""
    y = fastpool.dask.max_pool(da.zeros((300, 300), chunks=3), 50, layout="HW")
    assert all(size >= 49 for line in y.chunks for size in line[:-1])
    assert len(pooling_layer(y)) <= 4 * y.npartitions


def test_what_lies_in_a_chunk_is_pooled_in_place(monkeypatch):
    """Only strips at its end are copied: all of them are smaller than two windows."""
    copied = []
    block = np.block
    monkeypatch.setattr(
        _chunks.np, "block", lambda parts: copied.append(block(parts)) or copied[-1]
    )
    x = cases.values((64, 64), "float32", "ties", 0)
    y = fastpool.dask.max_pool(da.from_array(x, 32), 5, strides=2, layout="HW")
    cases.assert_same(y.compute(), fastpool.max_pool(x, 5, strides=2, layout="HW"))
    assert copied and all(min(strip.shape) <= 2 * 5 for strip in copied)


def test_names_follow_the_work():
    x = da.ones((8, 8), chunks=4)
    names = [
        fastpool.dask.max_pool(array, kernel, layout="HW").name
        for array, kernel in ((x, 2), (x, 2), (x, 3), (x + 1, 2))
    ]
    assert names[0] == names[1] and len(set(names)) == 3


def test_names_of_means_follow_their_attributes():
    x = da.ones((8, 8), chunks=4)
    changes = {}, {}, {"divisor": 2}, {"nan": "ignore"}, {"numerics": "sequential"}, {"pads": 1}
    names = [fastpool.dask.avg_pool(x, 3, layout="HW", **change).name for change in changes]
    assert names[0] == names[1] and len(set(names)) == 5


@pytest.mark.parametrize("size", [3, 4])
def test_graphs_of_means_travel(size):
    y = fastpool.dask.adaptive_avg_pool(da.arange(100, chunks=7), size, layout="W")
    assert set(pickle.loads(pickle.dumps(dict(y.dask)))) == set(y.dask)


def test_the_graph_travels():
    _, indices = fastpool.dask.max_pool(
        da.arange(100, chunks=7), 3, strides=2, layout="W", return_indices=True
    )
    got = pickle.loads(pickle.dumps(dict(indices.dask)))
    assert set(got) == set(indices.dask)


def test_a_part_computes_only_its_blocks():
    seen = []

    def record(block, block_info=None):
        seen.append(block_info[0]["chunk-location"])
        return block

    x = da.zeros((40, 40), chunks=10).map_blocks(record, meta=np.zeros((0, 0)))
    fastpool.dask.max_pool(x, 3, strides=2, layout="HW")[:5, :5].compute()
    assert set(seen) == {(0, 0), (0, 1), (1, 0), (1, 1)}


@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_schedulers(scheduler):
    x = cases.values((2, 3, 90, 80), "float32", "ties", 0)
    attributes = {"kernel_shape": 3, "strides": 2, "pads": 1, "return_indices": True}
    lazy = fastpool.dask.max_pool(da.from_array(x, (1, 2, 25, 33)), **attributes)
    expected = fastpool.max_pool(x, **attributes)
    for got, want in zip(dask.compute(*lazy, scheduler=scheduler), expected, strict=True):
        cases.assert_same(got, want)


def test_fastpools_own_functions_take_them():
    x = cases.values((1, 2, 30, 20), "float32", "ties", 0)
    lazy = da.from_array(x, (1, 1, 7, 9))
    y, indices = fastpool.max_pool(lazy, 2, strides=2, return_indices=True)
    restored = fastpool.max_unpool(y, indices, 2, strides=2, output_shape=x.shape)
    assert all(isinstance(array, da.Array) for array in (y, indices, restored))
    expected = fastpool.max_pool(x, 2, strides=2, return_indices=True)
    for got, want in zip((y, indices), expected, strict=True):
        cases.assert_same(got.compute(), want)
    expected = fastpool.max_unpool(*expected, 2, strides=2, output_shape=x.shape)
    cases.assert_same(restored.compute(), expected)


def test_fastpools_own_means_take_them():
    x = cases.values((1, 2, 9, 8), "float32", "bits", 0)
    lazy = da.from_array(x, (1, 1, 4, 5))
    for function, *window in (
        (fastpool.avg_pool, 3),
        (fastpool.global_avg_pool,),
        (fastpool.adaptive_avg_pool, (3, None)),
        (fastpool.global_max_pool,),
        (fastpool.adaptive_max_pool, (3, 4)),
    ):
        y = function(lazy, *window, layout="NCHW")
        assert isinstance(y, da.Array) and y.name.startswith(function.__name__)
        cases.assert_same(y.compute(), function(x, *window))
        with pytest.raises(
            TypeError, match="out: expected None if x is a dask.array.Array, got ndarray"
        ):
            function(lazy, *window, out=x)


@pytest.mark.parametrize("result", ["int16", "float32", None])
def test_types_of_means(result):
    x = np.arange(-50, 50, dtype=np.dtype("int16").newbyteorder()).reshape(10, 10)
    y = fastpool.dask.avg_pool(da.from_array(x, 4), 3, layout="HW", dtype=result)
    assert y.dtype == np.dtype(result or "int16") and y.dtype.isnative
    cases.assert_same(y.compute(), fastpool.avg_pool(x, 3, layout="HW", dtype=result))


def test_byte_order_and_activation():
    x = np.arange(-50, 50, dtype=np.dtype("int32").newbyteorder()).reshape(10, 10)
    y = fastpool.dask.max_pool(da.from_array(x, 4), 3, layout="HW", activation="Relu")
    assert y.dtype == np.dtype("int32") and y.dtype.isnative
    cases.assert_same(y.compute(), fastpool.max_pool(x, 3, layout="HW", activation="Relu"))


# ------------------------------------------------------------------------------------- bad inputs

X = da.zeros((8, 8), chunks=4)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: fastpool.dask.max_pool(np.zeros((8, 8)), 2),
            TypeError,
            "x: expected a dask.array",
        ),
        (
            lambda: fastpool.dask.max_pool(X[X[:, 0] > 0], 2, layout="HW"),
            ValueError,
            r"x: sizes of chunks are unknown, .*compute_chunk_sizes",
        ),
        (
            lambda: fastpool.dask.max_pool(X, 9, layout="HW"),
            ValueError,
            r"kernel_shape\[0\]: window .* exceeds",
        ),
        (lambda: fastpool.dask.max_pool(X, 2, layout="HW", out=0), TypeError, "argument 'out'"),
        (lambda: fastpool.dask.avg_pool(X, 2, layout="HW", out=0), TypeError, "argument 'out'"),
        (
            lambda: fastpool.dask.avg_pool(np.zeros((8, 8)), 2),
            TypeError,
            "x: expected a dask.array",
        ),
        (
            lambda: fastpool.dask.avg_pool(X, 2, layout="HW", dtype="float32"),
            TypeError,
            "^dtype: expected float64 for elements of type float64, got 'float32'",
        ),
        (
            lambda: fastpool.dask.avg_pool(X, 2, layout="HW", result_dtype="f8"),
            TypeError,
            r"^avg_pool\(\) .* argument 'result_dtype'; write dtype for result_dtype$",
        ),
        (
            lambda: fastpool.dask.max_pool(X, 2, layout="HW", stride=2),
            TypeError,
            r"^max_pool\(\) .* argument 'stride'; write strides for stride$",
        ),
        (
            lambda: fastpool.dask.adaptive_avg_pool(X, -1, layout="HW"),
            ValueError,
            "output_size: expected an int of at least 0, got -1",
        ),
        (
            lambda: fastpool.dask.global_max_pool(X, layout="HW", keepdims=2),
            ValueError,
            "keepdims: expected 0 or 1, got 2",
        ),
        (
            lambda: fastpool.dask.max_pool(X.astype(complex), 2, layout="HW"),
            TypeError,
            "got dtype complex128",
        ),
        (
            lambda: fastpool.dask.max_unpool(X, X, 2, layout="HW"),
            TypeError,
            "indices: expected dtype int64 or int32, got float64",
        ),
        (
            lambda: fastpool.dask.max_unpool(X, X[:4].astype(int), 2, layout="HW"),
            ValueError,
            r"indices: expected x's shape \(8, 8\), got \(4, 8\)",
        ),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("index", [-1, 256, 2**62])
def test_indices_outside_are_named_as_in_one_array(index):
    x = np.ones((8, 8), np.float32)
    indices = np.arange(64).reshape(8, 8) // 8 * 32 + np.arange(8) * 2
    indices[6, 5] = index
    with pytest.raises(ValueError) as expected:
        fastpool.max_unpool(x, indices, 2, strides=2, layout="HW")
    lazy = fastpool.dask.max_unpool(da.from_array(x, 3), indices, 2, strides=2, layout="HW")
    with pytest.raises(ValueError) as got:
        lazy.compute()
    assert str(got.value) == str(expected.value)


def test_indices_outside_of_their_windows_are_named():
    x = np.ones((8, 8), np.float32)
    indices = np.arange(64).reshape(8, 8) // 8 * 32 + np.arange(8) * 2
    indices[6, 5] = 3
    lazy = fastpool.dask.max_unpool(da.from_array(x, 3), indices, 2, strides=2, layout="HW")
    with pytest.raises(ValueError, match=r"^indices\[6, 5\]: 3 is not in the window of its value"):
        lazy.compute()


def test_the_extra_that_is_missing():
    line = 'AttributeError: fastpool.dask needs dask: pip install "fastpool[dask]"'
    assert cases.error_without("dask", "import fastpool; fastpool.dask") == line


def test_importing_fastpool_leaves_dask_alone():
    code = "import fastpool, sys; sys.exit('dask' in sys.modules)"
    assert cases.run_python(code).returncode == 0


def test_documentation():
    assert doctest.testmod(sys.modules["fastpool.dask"]).failed == 0
    cases.check_page("dask.md")


def test_strides_of_the_window():
    x = cases.values((10, 9), "int16", "bits", 0)
    chunked = da.from_array(x, chunks=(4, 5))
    expected = fastpool.max_pool(x, (2, 3), strides=(2, 3), layout="HW", return_indices=True)
    got = fastpool.max_pool(chunked, (2, 3), strides="window", layout="HW", return_indices=True)
    for result, wanted in zip(got, expected, strict=True):
        cases.assert_same(result.compute(), wanted)
    back = fastpool.max_unpool(*got, (2, 3), strides="window", layout="HW")
    expected = fastpool.max_unpool(*expected, (2, 3), strides=(2, 3), layout="HW")
    cases.assert_same(back.compute(), expected)


def test_none_for_indices():
    x = da.zeros((1, 1, 4, 4), chunks=2)
    for function in (fastpool.max_unpool, fastpool.dask.max_unpool):
        with pytest.raises(TypeError, match="^indices: expected an array, got None$"):
            function(x, None, 2)
