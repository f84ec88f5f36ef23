"""fastpool.ndimage: SciPy's filters, compared with SciPy if it is installed, else with the twin."""

import inspect
import tracemalloc

import numpy as np
import pytest

import fastpool
import fastpool.ndimage as ndi
from fastpool import _reference as reference
from fastpool._planning.dtypes import DTYPES
from fastpool.ndimage import _morphology

try:
    import scipy.ndimage as scipy_ndimage
except ModuleNotFoundError:
    scipy_ndimage = None

needs_scipy = pytest.mark.skipif(scipy_ndimage is None, reason="needs SciPy")
MODES = "reflect", "mirror", "nearest", "wrap", "constant", "grid-mirror", "grid-wrap"
MODES += ("grid-constant",)
LAYOUTS = "W", "HW", "DHW"
MORPHOLOGY = "grey_erosion", "grey_dilation", "grey_opening", "grey_closing"
DIFFERENCES = "white_tophat", "black_tophat", "morphological_gradient"


def random_case(rng, name):
    """Return an array of SciPy's types and arguments of a function, as keywords."""

    def pick(*choices):
        return choices[rng.integers(len(choices))]

    rank = pick(1, 2, 2, 3, 4, 5)
    shape = [pick(1, 2, 3, 5, *[12, 20] * (rank < 4)) for _ in range(rank)]
    dtype = np.dtype(pick(*(t for t in DTYPES if t not in ("float16", "bfloat16"))))
    if dtype.kind == "b" and ("uniform" in name or "gradient" in name):
        dtype = np.dtype("int16")
    x = rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
    if pick(False, False, True):
        x = np.asfortranarray(x)[::-1]
    given = {"cval": pick(0, 1, *[-2.0] * (dtype.kind in "if"))}
    if name.endswith("1d"):
        count, given["axis"] = 1, int(rng.integers(-rank, rank))
    else:
        axes = rng.permutation(rank)[: rng.integers(1, rank + 1)]
        count = len(axes)
        given["axes"] = tuple(axes.tolist())
    size = [pick(1, 2, 3, 4, 7, 25) for _ in range(count)]
    origin = [pick(0, 0, int(rng.integers(-(k // 2), (k - 1) // 2 + 1))) for k in size]
    mode = [pick(*MODES) for _ in range(count)]
    if count == 1:
        size, origin, mode = size[0], origin[0], mode[0]
    return x, {**given, "size": size, "origin": origin, "mode": mode}


@needs_scipy
@pytest.mark.parametrize("name", ndi.__all__)
def test_equals_scipy(name):
    rng = np.random.default_rng(ndi.__all__.index(name))
    for _ in range(250):
        x, given = random_case(rng, name)
        if name == "uniform_filter" and x.dtype.kind != "f":
            x = x.astype(np.float64)
        y, expected = getattr(ndi, name)(x, **given), getattr(scipy_ndimage, name)(x, **given)
        assert y.dtype == expected.dtype
        if "uniform" in name and x.dtype.kind == "f":
            np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-4)
        else:
            np.testing.assert_array_equal(y, expected, err_msg=f"{x.shape} {x.dtype} {given}")


@needs_scipy
@pytest.mark.parametrize("name", ndi.__all__)
def test_signatures_are_those_of_scipy(name):
    ours = inspect.signature(getattr(ndi, name)).parameters
    theirs = inspect.signature(getattr(scipy_ndimage, name)).parameters
    assert [n for n in ours if n != "numerics"] == [*theirs]
    for n, parameter in theirs.items():
        assert (ours[n].default, ours[n].kind) == (parameter.default, parameter.kind)


@pytest.mark.parametrize("dtype", DTYPES)
def test_equals_the_twin(dtype):
    """All types, with windows that SciPy does not take exactly."""
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(1)
    kinds = [("max", ndi.maximum_filter), ("min", ndi.minimum_filter), ("avg", ndi.uniform_filter)]
    for shape in [(7,), (4, 6), (3, 2, 5)]:
        x = rng.integers(0, 2 if dtype.kind == "b" else 90, shape).astype(dtype)
        for border in ("reflect", "mirror", "nearest", "wrap", "constant"):
            for kind, function in kinds:
                k = [4, 3, 6][: x.ndim]
                pads = [n // 2 for n in k] + [(n - 1) // 2 for n in k]
                more = {"rounding": "trunc"} if kind == "avg" and dtype.kind in "iub" else {}
                more |= {"border": border, "layout": LAYOUTS[x.ndim - 1]}
                expected = getattr(reference, f"{kind}_pool")(x, k, pads=pads, **more)
                y = function(x, k, mode=border)
                np.testing.assert_array_equal(y, expected, strict=True)


def test_nan_propagates_and_stays_in_its_windows():
    x = np.array([1, np.nan, 2, 3, 0, np.inf, 5, 4], np.float32)
    for function in (ndi.maximum_filter, ndi.minimum_filter, ndi.uniform_filter):
        for x_ in (x, x[::-1]):
            np.testing.assert_array_equal(
                np.isnan(function(x_, 3)), np.convolve(np.isnan(x_), [1, 1, 1], "same") > 0
            )
    assert np.isfinite(ndi.uniform_filter(x, 3)[[3, 7]]).all()


def test_integers_are_exact():
    big = np.array([2**62 + 1, 2**62, 3])
    assert ndi.maximum_filter(big, 3).tolist() == [2**62 + 1, 2**62 + 1, 2**62]
    assert ndi.maximum_filter(np.array([2**64 - 1, 1], np.uint64), 1).tolist() == [2**64 - 1, 1]
    x = np.random.default_rng(0).integers(0, 256, (40, 40), np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, 1, "symmetric"), (3, 3))
    y = ndi.uniform_filter(x, 3)
    np.testing.assert_array_equal(y, windows.sum((2, 3), dtype=int) // 9)
    assert ndi.uniform_filter(np.array([-1, -1, -3]), 2, mode="nearest").tolist() == [-1, -1, -2]


def test_numerics():
    x = np.random.default_rng(0).normal(size=(30, 30)).astype(np.float32)
    for numerics in ("pairwise", "exact", "sequential"):
        y = ndi.uniform_filter(x, 5, numerics=numerics)
        pool = {"pads": 2, "layout": "HW", "border": "reflect", "numerics": numerics}
        np.testing.assert_array_equal(y, fastpool.avg_pool(x, 5, **pool))


@pytest.mark.parametrize("name", [*MORPHOLOGY, *DIFFERENCES])
def test_boxes(name):
    x = np.random.default_rng(0).integers(0, 9, (6, 7))
    function = getattr(ndi, name)
    expected = function(x, (2, 3))
    footprint, structure = np.ones((2, 3)), np.zeros((2, 3))
    for given in [{"footprint": footprint}, {"structure": structure, "footprint": footprint}]:
        np.testing.assert_array_equal(function(x, 5, **given), expected)
    np.testing.assert_array_equal(function(x, structure=structure), expected)
    with pytest.raises(NotImplementedError, match="structure: .*scipy.ndimage"):
        function(x, structure=footprint)
    with pytest.raises(ValueError, match="structure: expected the shape of footprint"):
        function(x, structure=np.zeros((2, 2)), footprint=footprint)


@pytest.mark.parametrize("name", ndi.__all__)
def test_outputs(name):
    x = np.random.default_rng(0).integers(-100, 100, (5, 6)).astype(np.int8)
    function = getattr(ndi, name)
    expected = function(x, 3)
    for out in (np.empty_like(x), np.empty((5, 12), x.dtype)[:, ::2], x.copy()):
        source = x if out.base is not None or not np.array_equal(out, x) else out
        assert function(source, 3, output=out) is out
        np.testing.assert_array_equal(out, expected)
    wide = function(x, 3, output=np.int16)
    assert wide.dtype == np.int16
    np.testing.assert_array_equal(wide.astype(np.int8), expected)
    swapped = np.empty(x.shape, ">i4")
    np.testing.assert_array_equal(function(x, 3, output=swapped), function(x, 3, output="i4"))
    with pytest.raises((TypeError, ValueError), match="output: "):
        function(x, 3, output=np.uint8)
    with pytest.raises(ValueError, match="output: expected shape"):
        function(x, 3, output=np.empty((5, 5), np.int8))


@pytest.mark.parametrize("name", [*MORPHOLOGY[2:], *DIFFERENCES])
def test_strips(name, monkeypatch):
    """Large arrays are filtered strip by strip, with the results of whole ones."""
    rng, counts, strips = np.random.default_rng(len(name)), [], _morphology._strips

    def counted(*arguments):
        found = strips(*arguments)
        counts.append(len(found))
        return found

    monkeypatch.setattr(_morphology, "_strips", counted)
    for mode in MODES:
        size = (int(rng.integers(1, 6)), 3)
        origin = (int(rng.integers(-(size[0] // 2), (size[0] - 1) // 2 + 1)), 0)
        given = {"size": size, "mode": mode, "origin": origin, "cval": 50}
        x = rng.integers(0, 100, (int(rng.integers(40, 80)), 6)).astype(np.uint8)
        whole = getattr(ndi, name)(x, **given)
        with monkeypatch.context() as small:
            small.setattr(_morphology, "STRIP_BYTES", 40)
            counts.clear()
            np.testing.assert_array_equal(getattr(ndi, name)(x, **given), whole)
            y = np.empty((len(x), 12), np.uint8)[:, ::2]
            np.testing.assert_array_equal(getattr(ndi, name)(x, output=y, **given), whole)
        assert min(counts) > 1 or "wrap" in mode


def test_wide_differences():
    x = np.array([-128, 127, -128], np.int8)
    assert ndi.morphological_gradient(x, 3).tolist() == [-1, -1, -1]
    assert ndi.morphological_gradient(x, 3, output=np.int16).tolist() == [255, 255, 255]
    flags = np.array([True, True, False, True])
    assert ndi.morphological_gradient(flags, 3).tolist() == [False, True, True, True]


def test_other_arrays():
    assert ndi.maximum_filter([1, 5, 2], 3).tolist() == [5, 5, 5]
    assert ndi.maximum_filter(np.zeros((0, 3)), 3).shape == (0, 3)
    assert ndi.uniform_filter(np.zeros((2, 0), np.uint8), 3).shape == (2, 0)
    x = np.arange(6.0).reshape(2, 3)
    y = ndi.minimum_filter(x, 1)
    assert y is not x and np.array_equal(y, x)
    np.testing.assert_array_equal(ndi.grey_erosion(x, 3, axes=()), x)
    for rank in (4, 7):
        x = np.random.default_rng(0).integers(0, 9, (2, 3) * (rank // 2) + (2,) * (rank % 2))
        np.testing.assert_array_equal(ndi.maximum_filter(x, 2, axes=-1), ndi.maximum_filter1d(x, 2))


@pytest.mark.parametrize(
    "error, text, given",
    [
        (ValueError, "size: expected an int or", {}),
        (ValueError, "size: expected an int of at least 1", {"size": 0}),
        (TypeError, "size: expected an int", {"size": 2.5}),
        (ValueError, "size: expected one value or 2", {"size": (1, 2, 3)}),
        (ValueError, "footprint: expected 2 axes", {"footprint": [1, 1]}),
        (ValueError, "footprint: expected some", {"footprint": np.zeros((2, 2))}),
        (ValueError, "footprint: expected some", {"footprint": np.ones((2, 0))}),
        (NotImplementedError, "footprint: .*scipy.ndimage", {"footprint": [[1, 0]]}),
        (ValueError, "footprint: ", {"footprint": [2, [2]]}),
        (ValueError, r"size: .* at most 2\*\*", {"size": 2**40}),
        (TypeError, "output: expected one of", {"size": 2, "output": "NHWC"}),
        (TypeError, "output: expected one of", {"size": 2, "output": (1, 2)}),
        (ValueError, '^mode: expected one of "reflect", .*, got', {"size": 2, "mode": "symmetric"}),
        (TypeError, "mode: expected a str", {"size": 2, "mode": 1}),
        (ValueError, "mode: expected one value or 2", {"size": 2, "mode": ["wrap"]}),
        (ValueError, r"origin: expected an int in \[-1, 0\]", {"size": 2, "origin": 1}),
        (TypeError, "origin: expected an int", {"size": 2, "origin": 0.5}),
        (ValueError, "axes: expected each axis once", {"size": 2, "axes": (0, -2)}),
        (ValueError, "axes: expected ints in", {"size": 2, "axes": 2}),
        (ValueError, "cval: .* that uint8 holds", {"size": 2, "mode": "constant", "cval": -1}),
        (ValueError, "cval: .* that uint8 holds", {"size": 2, "mode": "constant", "cval": 1.5}),
        (TypeError, "unexpected keyword", {"sizes": 2}),
    ],
)
def test_bad_arguments(error, text, given):
    x = np.zeros((3, 4), np.uint8)
    with pytest.raises(error, match=text):
        ndi.maximum_filter(x, **given)
    if "footprint" not in text and "sizes" not in given and given:
        with pytest.raises(error, match=text):
            ndi.uniform_filter(x, **given)


def test_a_mean_of_too_many_taps():
    with pytest.raises(ValueError, match="^size: expected a product of at most"):
        ndi.uniform_filter(np.zeros((3, 4)), 2**30)


def test_bad_inputs():
    assert ndi.minimum_filter(np.zeros((3, 4), np.uint8), 2, cval=-1).shape == (3, 4)
    with pytest.raises(ValueError, match="input: expected at least one axis"):
        ndi.maximum_filter(3.0, 1)
    with pytest.raises(TypeError, match="input: expected one of"):
        ndi.maximum_filter(np.zeros(3, complex), 1)
    with pytest.raises(ValueError, match="axis: expected an int"):
        ndi.maximum_filter1d(np.zeros((2, 2)), 1, axis=2)
    with pytest.raises(AttributeError, match="scipy.ndimage"):
        ndi.gaussian_filter  # noqa: B018


@pytest.mark.parametrize("mode", ["reflect", "wrap", "constant"])
def test_many_axes_of_one_element(mode):
    """Strips at the edges of 24 axes would have 2**24 elements, or 3**24."""
    x = np.full((1,) * 24, 3, np.int32)
    tracemalloc.start()
    try:
        mean = ndi.uniform_filter(x, 3, mode=mode, cval=3 if mode == "constant" else 0)
        least = ndi.minimum_filter(x, 3, mode=mode)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert mean.item() == 3
    assert least.item() == (0 if mode == "constant" else 3)
    assert peak < 2**22
