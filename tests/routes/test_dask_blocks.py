"""Blocks and pyramids of dask arrays equal those of the array in one piece, whatever its chunks."""

import doctest
import pickle

import numpy as np
import pytest

import fastpool

dask = pytest.importorskip("dask")

import dask.array as da  # noqa: E402

import fastpool.dask  # noqa: E402

FUNCTIONS = "max", "min", "mean", "sum", "mode", "median", "std", "var", "count"
DTYPES = "float16", "float32", "float64", "uint8", "int32", "int64", "uint64", "bool"


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    with dask.config.set(scheduler="sync"):
        yield


def chunked(rng, x):
    chunks = []
    for size in x.shape:
        cuts = np.sort(rng.integers(0, size + 1, rng.integers(0, 4)))
        chunks.append(tuple(np.diff([0, *cuts, size]).tolist()))
    return da.from_array(x, tuple(chunks))


def drawn(rng):
    """Return an array, a block, a statistic and attributes, which need not agree."""
    shape = tuple(rng.integers(rng.random() < 0.95, 14, rng.integers(1, 4)).tolist())
    x = (rng.standard_normal(shape) * 4).astype(rng.choice(DTYPES))
    if x.dtype.kind == "f":
        x[rng.random(shape) < 0.2] = np.nan
    func = str(rng.choice(FUNCTIONS))
    attributes = {"edge": str(rng.choice(["keep", "keep", "trim", "exact"]))}
    for name, value in (
        ("nan", "ignore"),
        ("nodata", int(rng.integers(2))),
        ("where", rng.random(shape[-1:] if rng.random() < 0.5 else shape) < 0.7),
        ("min_count", int(rng.integers(3))),
        ("return_counts", True),
        ("numerics", "exact"),
        ("dtype", "float64"),
    ):
        if rng.random() < 0.25:
            attributes[name] = value
    if func in ("std", "var"):
        attributes["ddof"] = int(rng.integers(2))
    block = rng.integers(1, 7, len(shape)).tolist()
    if rng.random() < 0.1:
        block[0] = 2**62
    return x, block, func, attributes


def assert_equal(lazy, wanted):
    for got, want in zip(lazy, wanted, strict=True):
        assert isinstance(got, da.Array)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_array_equal(got.compute(), want, strict=True)


def outcome(call, *arguments, **attributes):
    try:
        results = call(*arguments, **attributes)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return results if isinstance(results, (tuple, list)) else (results,)


@pytest.mark.parametrize("seed", range(4))
def test_any_chunks_and_attributes(seed):
    """Results are equal, and so are errors, which come before anything is computed."""
    rng = np.random.default_rng(seed)
    equal = 0
    for _ in range(250):
        x, block, func, attributes = drawn(rng)
        lazy = dict(attributes)
        if "where" in lazy and rng.random() < 0.5:
            lazy["where"] = chunked(rng, lazy["where"])
        want = outcome(fastpool.block_reduce, x, block, func, **attributes)
        got = outcome(fastpool.dask.block_reduce, chunked(rng, x), block, func, **lazy)
        if isinstance(want[0], type):
            assert got == want
        else:
            assert_equal(got, want)
            equal += 1
    assert equal > 50


@pytest.mark.parametrize(("func", "dtype"), [("mean", "f4"), ("mode", "u2"), ("std", "i4")])
@pytest.mark.parametrize("edge", ["keep", "trim"])
def test_pyramids(func, dtype, edge):
    rng = np.random.default_rng(0)
    x = (rng.random((37, 50, 3)) * 9).astype(dtype)
    attributes = {"factor": (2, 3, 1), "func": func, "edge": edge}
    if func == "mode":
        attributes |= {"nodata": 0, "where": rng.random(x.shape[1:]) < 0.9}
    want = fastpool.pyramid(x, 5, **attributes)
    assert_equal(fastpool.dask.pyramid(chunked(rng, x), 5, **attributes), want)
    assert_equal(fastpool.pyramid(chunked(rng, x), 5, **attributes), want)


def test_functions_of_arrays_take_dask_arrays():
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    got = fastpool.block_reduce(da.from_array(x, (3, 2)), 2, "sum", return_counts=True)
    assert_equal(got, fastpool.block_reduce(x, 2, "sum", return_counts=True))


def test_chunks_end_with_blocks():
    x = da.zeros((10, 9), chunks=((4, 3, 3), (5, 4)), dtype="f4")
    y = fastpool.dask.block_reduce(x, (3, 1), "max")
    assert y.chunks == ((2, 1, 1), (5, 4))
    assert fastpool.dask.block_reduce(x, 100, "max").chunks == ((1,), (1,))
    assert fastpool.dask.block_reduce(x, (4, 10), "max", edge="trim").shape == (2, 0)


def test_nothing_is_computed_early():
    def refuse(block):
        raise AssertionError("computed")

    x = da.map_blocks(refuse, da.zeros((8, 8), chunks=4, dtype="f4"), meta=np.empty((0, 0), "f4"))
    y, counts = fastpool.dask.block_reduce(x, 3, "mean", where=x.astype(bool), return_counts=True)
    fastpool.dask.pyramid(x, 3)
    assert y.shape == counts.shape == (3, 3)


def test_tasks_can_be_sent():
    x = da.arange(12, chunks=5, dtype="f4")
    y = pickle.loads(pickle.dumps(fastpool.dask.block_reduce(x, 4, "mean")))
    np.testing.assert_array_equal(y.compute(), [1.5, 5.5, 9.5])


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"x": np.zeros(4)}, TypeError, "^x: expected a dask"),
        ({"x": da.zeros(4)[da.zeros(4) > 0]}, ValueError, "^x: sizes of chunks are unknown"),
        ({"x": da.zeros((4, 4), dtype=complex)}, TypeError, "^x: expected one of"),
        ({"block_size": 0}, ValueError, "^block_size"),
        ({"block_size": 2.0}, TypeError, "^block_size"),
        ({"block_size": (2,)}, ValueError, "^block_size"),
        ({"func": max}, TypeError, "^func"),
        ({"edge": "pad"}, ValueError, "^edge"),
        ({"block_size": 3, "edge": "exact"}, ValueError, "^block_size.*exact"),
        ({"where": da.zeros((4, 4))}, TypeError, "^where: expected bool"),
        ({"where": np.ones((3, 1), bool)}, ValueError, "^where: .*broadcasts"),
        ({"min_count": 5}, ValueError, "^min_count"),
        ({"ddof": 1}, ValueError, "^ddof"),
        ({"num_threads": 0}, ValueError, "^num_threads"),
        ({"out": None}, TypeError, "out"),
    ],
)
def test_bad_arguments(change, error, match):
    arguments = {"x": da.zeros((4, 4)), "block_size": 2, "func": "max"} | change
    with pytest.raises(error, match=match):
        fastpool.dask.block_reduce(**arguments)


@pytest.mark.parametrize(
    ("change", "match"),
    [({"levels": 0}, "^levels"), ({"levels": 65}, "^levels"), ({"factor": 1}, "^factor")],
)
def test_bad_pyramids(change, match):
    with pytest.raises(ValueError, match=match):
        fastpool.dask.pyramid(da.zeros(4), **{"levels": 2} | change)


def test_docstrings():
    from fastpool.dask import _reductions

    results = doctest.testmod(_reductions)
    assert results.attempted > 5 and results.failed == 0
