"""fastpool.torch's averages and adaptive pooling give what torch gives, and what fastpool does."""

import copy
import pickle

import numpy as np
import pytest

import fastpool
from fastpool import _reference

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import fastpool.torch as ft  # noqa: E402
from tensors import (  # noqa: E402
    ADAPTIVE_AVERAGES,
    ADAPTIVE_MAXIMA,
    AVERAGES,
    FORMATS,
    arrangements,
    images,
    same,
)

HALVES = [torch.float16, torch.bfloat16]
FLOATS = [*HALVES, torch.float32, torch.float64]
OTHERS = [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32]


def numbers(shape, dtype, rng):
    """A tensor of numbers with fractions, of which sums round; or of integers of both signs."""
    if dtype is torch.bool:
        return torch.from_numpy(rng.random(shape) < 0.6)
    if dtype.is_floating_point:
        return torch.from_numpy(rng.standard_normal(shape)).to(dtype)
    info = torch.iinfo(dtype)
    most = min(info.max, 2**40)
    return torch.from_numpy(rng.integers(max(info.min, -most), most, shape)).to(dtype)


def draw(rng):
    """Return (input of at most 3 x 5 planes, attributes of a window that fits)."""
    rank = int(rng.integers(1, 4))
    kernel_size = tuple(int(k) for k in rng.integers(1, 5 if rank < 3 else 4, rank))
    padding = tuple(int(rng.integers(0, k // 2 + 1)) for k in kernel_size)
    counted = 2 if rank < 3 else 0  # in three dimensions no window exceeds the input itself
    sizes = [
        max(1, k - counted * p) + int(rng.integers(0, 9 - 2 * rank))
        for k, p in zip(kernel_size, padding, strict=True)
    ]
    stride = None if rng.random() < 0.3 else tuple(int(s) for s in rng.integers(1, 4, rank))
    shape = int(rng.integers(1, 4)), int(rng.integers(2, 6)), *sizes
    return shape, (kernel_size, stride, padding, bool(rng.integers(2)), bool(rng.integers(2)))


def twin(x, attributes, divisor=None, numerics=None):
    """The means of the slow twin, by the rules of fastpool.torch."""
    kernel_size, stride, padding, ceil_mode, count_include_pad = attributes
    return tensor(
        _reference.avg_pool(
            array(x),
            kernel_size,
            strides=stride or kernel_size,
            pads=padding,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            divisor=divisor,
            numerics=numerics,
            rounding="half_even" if x.dtype.is_floating_point else "trunc",
        ),
        x.dtype,
    )


def array(x):
    if x.dtype is not torch.bfloat16:
        return x.numpy()
    import ml_dtypes

    return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)


def tensor(array, dtype):
    if dtype is not torch.bfloat16:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(dtype)


# ----------------------------------------------------------------------------------------- means


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64], ids=str)
def test_sequential_means_have_torchs_bits(dtype):
    rng = np.random.default_rng(0)
    for _ in range(30):
        shape, attributes = draw(rng)
        rank = len(shape) - 2
        if rank == 3 and dtype in HALVES:  # torch has no function
            continue
        theirs, ours = AVERAGES[rank]
        divisor = (int(rng.choice([-3, 1, 7])),) if rank > 1 and rng.random() < 0.3 else ()
        for _, x in arrangements(numbers(shape, dtype, rng)):
            expected = theirs(x, *attributes, *divisor)
            y = ours(x, *attributes, *divisor, numerics="sequential")
            same(y, expected)


@pytest.mark.parametrize("numerics", [None, "pairwise", "exact"])
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, *OTHERS, torch.bool], ids=str)
def test_means_are_those_of_the_twin(dtype, numerics):
    more = {} if numerics is None else {"numerics": numerics}
    rng = np.random.default_rng(1)
    for _ in range(15):
        shape, attributes = draw(rng)
        rank = len(shape) - 2
        x = numbers(shape, dtype, rng)
        expected = twin(x, attributes, **more)
        for kind, each in arrangements(x):
            y = AVERAGES[rank][1](each, *attributes, **more)
            same(y, expected[0] if "batch" in kind else expected)
        if rank > 1 and dtype not in OTHERS and dtype is not torch.bool:
            same(AVERAGES[rank][1](x, *attributes, 3, **more), twin(x, attributes, 3, **more))


def test_the_three_numerics_differ():
    x = torch.tensor([[[1.0, 2**-24, 2**-24, 2**-24]]])
    exact, pairwise, sequential = (
        ft.avg_pool1d(x, 4, numerics=numerics) for numerics in ("exact", "pairwise", "sequential")
    )
    assert F.avg_pool1d(x, 4) == sequential < pairwise < exact
    assert ft.avg_pool1d(x, 4) == pairwise
    large = torch.full((1, 1, 4), 3e38)
    same(ft.avg_pool1d(large, 4, numerics="exact"), large[..., :1])
    assert F.avg_pool1d(large, 4).isinf() and ft.avg_pool1d(large, 4).isinf()


def test_sums_of_int64_do_not_wrap():
    x = torch.tensor([[[2**62, 2**62]]])
    same(ft.avg_pool1d(x, 2), torch.tensor([[[2**62]]]))
    same(F.avg_pool1d(x, 2), torch.tensor([[[-(2**62)]]]))
    same(ft.avg_pool2d(x, (1, 2), divisor_override=1), torch.tensor([[[2**63 - 1]]]))  # saturates


def test_windows_larger_than_the_padded_input():
    """Rounded up, one window is left, of which only a part counts."""
    for size, *attributes in (
        (3, 9, 7, 1, True),
        (3, 8, None, 2, True),
        (2, 2**31 - 1, 2**31 - 1, 0, True),
    ):
        x = numbers((1, 2, size), torch.float64, np.random.default_rng(0))
        for include in (True, False):
            y = ft.avg_pool1d(x, *attributes, include, numerics="sequential")
            if attributes[0] < 2**31 - 1:  # torch multiplies it
                same(y, F.avg_pool1d(x, *attributes, include))
            else:
                same(y, x.mean(-1, keepdim=True))


def test_nan_and_infinities_go_through():
    rng = np.random.default_rng(0)
    values = rng.choice(
        [np.nan, np.inf, -np.inf, 0, 1], (2, 3, 8, 9), p=[0.05, 0.1, 0.1, 0.4, 0.35]
    )
    for dtype in FLOATS:
        x = torch.from_numpy(values).to(dtype)
        for numerics in ("exact", "pairwise", "sequential"):
            y = ft.avg_pool2d(x, 2, 1, numerics=numerics)
            same(y, F.avg_pool2d(x, 2, 1))
        y = ft.adaptive_avg_pool2d(x, 5)
        same(y.double(), F.adaptive_avg_pool2d(x.double(), 5), atol=0.01)


# -------------------------------------------------------------------------------------- adaptive

SIZES = {1: [1, 3, (5,), 12], 2: [1, (3, None), 4, (2, 9)], 3: [1, (2, None, 3), 4]}


@pytest.mark.parametrize("dtype", [*FLOATS, torch.uint8, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_adaptive_means(rank, dtype):
    x = numbers((2, 3, 4, 5, 6)[: rank + 2], dtype, np.random.default_rng(rank))
    theirs, ours = ADAPTIVE_AVERAGES[rank]
    for size in SIZES[rank]:
        y = ours(x, size, numerics="exact")
        expected = theirs(x.double(), size)  # which rounds less than a type of 32 bits
        if dtype is torch.float64:
            same(y, expected, rtol=1e-14, atol=1e-16)
        else:
            same(y, (expected.trunc() if dtype is torch.bool else expected).to(dtype))
        rounding = "half_even" if dtype.is_floating_point else "trunc"
        for numerics in ("exact", "pairwise"):
            y = tensor(
                _reference.adaptive_avg_pool(array(x), size, rounding=rounding, numerics=numerics),
                dtype,
            )
            for kind, each in arrangements(x):
                same(ours(each, size, numerics=numerics), y[0] if "batch" in kind else y)
        same(ours(x, size), y)


def test_adaptive_means_of_regular_windows_are_those_of_windows():
    x = numbers((2, 3, 6, 8), torch.float32, np.random.default_rng(0))
    for numerics in ("exact", "pairwise", "sequential"):
        y = ft.adaptive_avg_pool2d(x, (3, 2), numerics=numerics)
        same(y, ft.avg_pool2d(x, (2, 4), numerics=numerics))
    same(y, F.avg_pool2d(x, (2, 4)))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.uint8, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_adaptive_maxima(rank, dtype):
    x = numbers((2, 3, 4, 5, 6)[: rank + 2], dtype, np.random.default_rng(rank))
    theirs, ours = ADAPTIVE_MAXIMA[rank]
    for size in SIZES[rank]:
        expected, places = theirs(x.double(), size, return_indices=True)
        for kind, each in arrangements(x):
            y, indices = ours(each, size, return_indices=True)
            same(y, (expected[0] if "batch" in kind else expected).to(dtype))
            same(indices, places[0] if "batch" in kind else places)
            same(ours(each, size), y)


def test_none_is_the_extent_of_an_axis():
    x = numbers((2, 3, 4, 5), torch.float32, np.random.default_rng(0))
    for pools in (ADAPTIVE_AVERAGES, ADAPTIVE_MAXIMA):
        same(pools[1][1](x[0], (None,)), x[0])
        same(pools[2][1](x, None), x)
        same(pools[2][1](x, [2, None]), pools[2][0](x, (2, 5)))


def test_empty_results():
    x = torch.ones(2, 3, 4, 5)
    for pool in (ft.adaptive_avg_pool2d, ft.adaptive_max_pool2d):
        for size in (0, (0, None), (3, 0)):
            assert pool(x, size).shape == F.adaptive_avg_pool2d(x, size).shape
        for last in (False, True):
            empty = images(2, torch.float32, last)[:0]
            assert pool(empty, 2).shape == (0, 3, 2, 2)
        assert pool(x[:, :0], 2).shape == (2, 0, 2, 2)
        assert pool(x[..., :0], (2, None)).shape == (2, 3, 2, 0)
    assert ft.avg_pool2d(x[:0], 2).shape == (0, 3, 2, 2)
    assert ft.avg_pool2d(x[:, :0], 2).shape == (2, 0, 2, 2)


# --------------------------------------------------------------------------------------- formats


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int16], ids=str)
@pytest.mark.parametrize("rank, last", [(1, False), (2, False), (2, True), (3, False), (3, True)])
def test_results_have_the_inputs_format(rank, last, dtype):
    x = images(rank, dtype, last, size=4)
    format = FORMATS[rank] if last else torch.contiguous_format
    for y in (
        AVERAGES[rank][1](x, 3, 2, 1),
        ADAPTIVE_AVERAGES[rank][1](x, 2),
        ADAPTIVE_AVERAGES[rank][1](x, 1),
        *ADAPTIVE_MAXIMA[rank][1](x, 2, return_indices=True),
    ):
        assert y.is_contiguous(memory_format=format)


def test_formats_of_other_tensors_are_torchs():
    wide = images(2, torch.float32, True, size=8)
    for x in (wide[:, 1:], wide[:, :, ::2], wide[..., ::2], images(2, torch.float32)[:, :, 1:]):
        for name, attributes in (("avg_pool2d", (3, 1, 1)), ("adaptive_avg_pool2d", (2,))):
            y, expected = (getattr(library, name)(x, *attributes) for library in (ft, F))
            assert y.stride() == expected.stride()


# --------------------------------------------------------------------------------------- modules


class Head(nn.Module):
    """All kinds of modules: windows, adaptive means and adaptive maxima."""

    def __init__(self, library=nn):
        super().__init__()
        self.average = library.AvgPool2d(3, 2, padding=1, count_include_pad=False)
        self.mean = library.AdaptiveAvgPool2d((4, None))
        self.most = library.AdaptiveMaxPool2d(2)
        self.indexed = library.AdaptiveMaxPool2d(2, return_indices=True)

    def forward(self, x):
        x = self.mean(self.average(x))
        return self.most(x) + x.mean((2, 3), keepdim=True), self.indexed(x)[1]


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    "kind, attributes",
    [
        ("AvgPool", {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
        ("AvgPool", {"kernel_size": 2, "count_include_pad": False}),
        ("AdaptiveAvgPool", {"output_size": 2}),
        ("AdaptiveMaxPool", {"output_size": 2}),
        ("AdaptiveMaxPool", {"output_size": 3, "return_indices": True}),
    ],
)
def test_modules(kind, attributes, rank):
    x = images(rank, torch.float64, size=4)
    theirs, ours = (getattr(library, f"{kind}{rank}d")(**attributes) for library in (nn, ft))
    assert repr(ours).startswith(repr(theirs)[:-1])
    torch.testing.assert_close(ours(x), theirs(x))
    for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert type(other) is type(ours)
        same(other(x), ours(x))
    report = ft.replace_pooling(theirs, select="all")
    assert report.swapped == {"": repr(ours)} and type(theirs) is type(ours)
    same(theirs(x), ours(x))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_modules_show_what_is_not_default(rank):
    def shown(kind, *arguments, numerics=None, **attributes):
        theirs, ours = (
            getattr(library, f"{kind}{rank}d")(*arguments, **attributes) for library in (nn, ft)
        )
        if numerics is not None:
            ours.numerics = numerics
        return repr(ours).removeprefix(repr(theirs)[:-1])

    assert shown("AvgPool", 2) == shown("AdaptiveAvgPool", 2) == shown("LPPool", 2, 3) == ")"
    assert shown("AvgPool", 2, numerics="sequential") == ", numerics='sequential')"
    assert shown("AdaptiveAvgPool", 2, numerics="sequential") == ", numerics='sequential')"
    assert shown("AvgPool", 2, ceil_mode=True) == ", ceil_mode=True)"
    assert shown("AvgPool", 2, count_include_pad=False) == ", count_include_pad=False)"
    assert shown("MaxPool", 2, ceil_mode=True, return_indices=True) == ", return_indices=True)"
    assert shown("AdaptiveMaxPool", 2, return_indices=True) == ", return_indices=True)"
    if rank > 1:
        assert shown("AvgPool", 2, divisor_override=3) == ", divisor_override=3)"


def test_modules_take_divisor_override_and_numerics():
    x = torch.tensor([[[1.0, 2**-24, 2**-24, 2**-24]]])
    same(ft.AvgPool2d((1, 3), divisor_override=1)(torch.ones(1, 1, 3)), torch.tensor([[[3.0]]]))
    theirs, ours = nn.AvgPool1d(4), ft.AvgPool1d(4)
    ours.numerics = "sequential"
    same(ours(x), theirs(x))
    ft.replace_pooling(theirs, select="all")
    same(theirs(x), ft.avg_pool1d(x, 4))
    assert theirs.numerics == "pairwise"
    theirs.numerics = "exact"
    same(theirs(x), ft.avg_pool1d(x, 4, numerics="exact"))
    assert ft.avg_pool1d(x, 4, numerics="exact") != ft.avg_pool1d(x, 4) != ours(x)


def test_replace_pooling_does_not_find_x_mean():
    model, x = nn.Sequential(nn.Conv2d(3, 4, 3), Head()), torch.rand(2, 3, 14, 13)
    expected = model(x)
    report = ft.replace_pooling(model, select="all")
    assert list(report.swapped) == ["1.average", "1.mean", "1.most", "1.indexed"]
    assert not report.left
    torch.testing.assert_close(model(x), expected)


def test_public_functions_of_numpy_arrays_agree():
    x = numbers((2, 3, 7, 8), torch.float32, np.random.default_rng(0))
    same(
        ft.avg_pool2d(x, 3, 1, 1),
        torch.from_numpy(fastpool.avg_pool(x.numpy(), 3, pads=1, count_include_pad=True)),
    )
    y, indices = fastpool.adaptive_max_pool(x.numpy(), (7, 4), return_indices=True, index_axis=2)
    ours = ft.adaptive_max_pool2d(x, (None, 4), return_indices=True)
    same(ours, (torch.from_numpy(y), torch.from_numpy(indices)))
