"""fastpool.torch gives what torch gives: results, memory formats, modules, threads."""

import copy
import doctest
import pickle
import sys

import numpy as np
import pytest

import cases
import limits
from fastpool._running import builds, threads

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import fastpool.torch as ft  # noqa: E402
from fastpool.torch import _ops  # noqa: E402
from tensors import FORMATS, POOLS, UNPOOLS, Net, images, same  # noqa: E402

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]


# ---------------------------------------------------------------------------------------- results


def draw(rng):
    """Return (rank, input in any memory order, attributes)."""
    rank = int(rng.integers(1, 4))
    per_axis = [], [], [], []
    sizes = []
    for _ in range(rank):
        kernel = int(rng.choice([1, 2, 2, 3, 3, 5] if rank < 3 else [1, 2, 3]))
        padding = int(rng.integers(0, kernel // 2 + 1))
        dilation = int(rng.choice([1, 1, 2, 3]))
        reach = (kernel - 1) * dilation + 1 - 2 * padding
        # Now and then too small, or just large enough where extents are rounded up.
        sizes.append(max(1, reach + int(rng.integers(-1, 20 if rank < 3 else 6))))
        for values, value in zip(
            per_axis, (kernel, int(rng.integers(1, 4)), padding, dilation), strict=True
        ):
            values.append(value)
    kernel_size, stride, padding, dilation = map(tuple, per_axis)
    if rng.random() < 0.3:
        stride = None
    outer = (int(rng.integers(0, 4)), int(rng.integers(1, 20))) if rng.random() < 0.8 else (5,)
    dtype = (FLOATS + INTEGERS)[rng.integers(9)]
    numbers = rng.integers(0, 3 if rng.random() < 0.5 else 100, (*outer, *sizes))
    x = torch.from_numpy(numbers).to(dtype)
    order = rng.choice(["contiguous", "last", "sliced", "transposed"])
    if order == "last" and rank > 1 and x.dim() == rank + 2:
        x = x.to(memory_format=FORMATS[rank])
    elif order == "sliced":
        x = torch.cat([x, x], -1)[..., : x.shape[-1]]
    elif order == "transposed":
        x = x.transpose(-1, 1).contiguous().transpose(-1, 1)
    return rank, x, (kernel_size, stride, padding, dilation, bool(rng.integers(2)))


@pytest.mark.parametrize("seed", range(5))
def test_values_and_indices_of_random_configurations_are_torchs(seed):
    rng = np.random.default_rng(seed)
    compared = 0
    while compared < 100:
        rank, x, attributes = draw(rng)
        theirs, ours = POOLS[rank]
        try:  # (contiguous: channels last, it refuses 8-bit planes of more than 127 elements)
            expected = theirs(x.contiguous(), *attributes, return_indices=True)
        except RuntimeError:
            with pytest.raises(ValueError, match="^kernel_size: window"):
                ours(x, *attributes)
            continue
        y, indices = ours(x, *attributes, return_indices=True)
        same(ours(x, *attributes), expected[0])
        same(y, expected[0])
        # Of a window without elements torch names one outside the plane.
        same(indices, torch.where(indices < 0, -1, expected[1]))
        compared += 1


@pytest.mark.parametrize("rank, last", [(1, False), (2, False), (2, True), (3, False), (3, True)])
def test_unpooling_is_torchs(rank, last):
    theirs, ours = UNPOOLS[rank]
    for dtype in (torch.float32, torch.float64):
        x = images(rank, dtype, last)
        for window in ((3, 2, 1), (2, None, 0), ((2,) * rank, (2,) * rank, 0)):
            y, indices = POOLS[rank][0](x, *window, return_indices=True)
            extents = [x.shape, x.shape[2:], list(x.shape[2:])]
            for output_size in extents if window[0] == 3 else [*extents, None]:
                same(
                    ours(y, indices, *window, output_size), theirs(y, indices, *window, output_size)
                )
            one = y[0], indices[0], *window, x.shape[2:]
            same(ours(*one), theirs(*one))
    strays = torch.randint(0, 4, indices.shape)  # of equal ones the last stays
    same(ours(y, strays, 2), theirs(y, strays, 2))


def test_types_that_torch_does_not_pool():
    for dtype in (torch.bool, torch.uint16, torch.uint32, torch.uint64):
        numbers = torch.arange(36).reshape(1, 1, 6, 6) % 2
        y, indices = ft.max_pool2d(numbers.to(dtype), 3, return_indices=True)
        expected = F.max_pool2d(numbers, 3, return_indices=True)
        same(y, expected[0].to(dtype))
        same(indices, expected[1])
        back = ft.max_unpool2d(y, indices, 3)
        same(back.long(), ft.max_unpool2d(*expected, 3))


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_goes_through(dtype):
    rng = np.random.default_rng(0)
    numbers = rng.choice([np.nan, -np.inf, 0, 1], (2, 3, 20, 21), p=[0.05, 0.5, 0.2, 0.25])
    x = torch.from_numpy(numbers).to(dtype)
    y, indices = ft.max_pool2d(x, 3, 2, 1, return_indices=True)
    same(y, F.max_pool2d(x, 3, 2, 1))
    same(x.flatten(2).gather(2, indices.flatten(2)).reshape(y.shape), y)


def test_windows_without_elements():
    x = torch.ones(2, 3, 2, 2)
    y, indices = ft.max_pool2d(x, 2, 1, 1, dilation=3, return_indices=True)
    assert torch.isneginf(y).all() and (indices == -1).all()
    assert F.max_pool2d(x, 2, 1, 1, 3).shape == y.shape


def test_tensors_that_functionalize_wraps():
    """Their own memory holds nothing."""
    x = images(2, torch.float32)
    wrapped = torch._to_functional_tensor(x)
    y, indices = ft.max_pool2d(wrapped, 2, return_indices=True)
    expected = F.max_pool2d(x, 2, return_indices=True)
    for got, right in zip((y, indices), expected, strict=True):
        same(torch._from_functional_tensor(got), right)
    back = ft.max_unpool2d(y, indices, 2)
    same(torch._from_functional_tensor(back), F.max_unpool2d(*expected, 2))


def test_empty_batches():
    for last in (False, True):
        x = images(2, torch.float32, last)[:0]
        y, indices = ft.max_pool2d(x, 2, return_indices=True)
        assert y.shape == indices.shape == F.max_pool2d(x, 2).shape == (0, 3, 3, 4)
        assert ft.max_unpool2d(y, indices, 2).shape == (0, 3, 6, 8)


# ---------------------------------------------------------------------------------------- formats


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int16])
@pytest.mark.parametrize("rank, last", [(1, False), (2, False), (2, True), (3, False), (3, True)])
def test_tensors_are_read_in_place_and_results_have_their_format(rank, last, dtype):
    x = images(rank, dtype, last)
    assert _ops._array(x, "input", last, rank).ctypes.data == x.data_ptr()
    y, indices = POOLS[rank][1](x, 2, return_indices=True)
    expected = POOLS[rank][0](x, 2, return_indices=True)
    assert y.stride() == expected[0].stride() and indices.stride() == expected[1].stride()
    restored = UNPOOLS[rank][1](y, indices, 2)
    assert restored.is_contiguous(memory_format=FORMATS[rank] if last else torch.contiguous_format)


def test_formats_of_other_tensors_are_torchs():
    wide = images(2, torch.float32, True, size=12)
    for x in (
        wide[:, 1:],
        wide[:, :, ::2],
        wide[..., ::2],
        images(2, torch.float32)[:, :, 1:],
        torch.ones(2, 1, 6, 6),
        torch.ones(2, 5, 1, 6).to(memory_format=torch.channels_last),
        torch.ones(2, 5, 6, 1).to(memory_format=torch.channels_last),
        wide[0],
    ):
        y = ft.max_pool2d(x, 3, 1, 1)
        expected = F.max_pool2d(x, 3, 1, 1)
        same(y, expected)
        assert y.stride() == expected.stride()


POOLED = """
import torch
import fastpool.torch

def pool(shape, dtype, memory_format):
    x = torch.ones(shape, dtype=dtype).to(memory_format=memory_format)
    return added(lambda: fastpool.torch.max_pool2d(x, 8))

# Each larger than all before it, in elements and in what its making takes.
for mebi, dtype in ((24, torch.bfloat16), (32, torch.float32)):
    for memory_format in (torch.contiguous_format, torch.channels_last):
        pool((1, 8, 64, 64), dtype, memory_format)
        print(pool((1, 8, 1024 * mebi // 8, 1024), dtype, memory_format))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads memory as Linux does")
def test_no_copy_of_the_input_is_made():
    process = cases.run_python(limits.ADDED + POOLED)
    assert process.returncode == 0, process.stderr
    grown = list(map(int, process.stdout.split()))
    assert len(grown) == 4 and max(grown) < 8 << 20  # of 48 and 128 MiB


# ---------------------------------------------------------------------------------------- modules


def test_modules_are_copied_pickled_and_have_torchs_signatures():
    assert repr(ft.MaxPool2d(3, 2, 1)) == repr(nn.MaxPool2d(3, 2, 1))
    x = images(2, torch.float32)
    model = Net(ft)
    expected = model(x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        same(other(x), expected)
        assert type(other.down) is ft.MaxPool2d
    theirs = Net()
    theirs.load_state_dict(model.state_dict())
    same(theirs(x), expected)
    for rank in (1, 3):
        x = images(rank, torch.float32)
        pool, unpool = getattr(ft, f"MaxPool{rank}d"), getattr(ft, f"MaxUnpool{rank}d")
        y = unpool(2)(*pool(2, return_indices=True)(x))
        same(y, UNPOOLS[rank][0](*POOLS[rank][0](x, 2, return_indices=True), 2))


def test_replace_pooling():
    class Other(nn.MaxPool2d):
        def forward(self, input):
            return -super().forward(-input)

    model = nn.Sequential(Net(), Other(2), nn.MaxPool2d(2), ft.MaxPool2d(2))
    model[2].forward = lambda x: x
    net, calls = model[0], []
    net.down.register_forward_hook(lambda *_: calls.append("down"))
    net.blocks[1].eval()
    x = torch.rand(2, 3, 40, 41)
    expected, down = model(x), net.down
    replaced = ft.replace_pooling(model)
    same(model(x), expected)
    assert calls == ["down", "down"]
    assert net.down is down and type(down) is ft.MaxPool2d
    assert net.shared is net.blocks[1] and not net.shared.training and net.down.training
    assert list(replaced.swapped) == ["0.down", "0.up", "0.blocks.1", "0.shared"]
    assert list(replaced.left) == ["1", "2"]
    assert "Other" in replaced.left["1"] and replaced.left["2"] == "has its own forward"
    assert str(replaced).startswith("4 swapped, 2 left\n  0.down: MaxPool2d(kernel_size=2, ")
    assert not ft.replace_pooling(model).swapped
    alone = nn.MaxUnpool1d(2)
    assert "(model): MaxUnpool1d(" in str(ft.replace_pooling(alone))
    assert type(alone) is ft.MaxUnpool1d
    with pytest.raises(TypeError, match="^model: expected a torch.nn.Module, got function"):
        ft.replace_pooling(ft.max_pool2d)


# ----------------------------------------------------------------------------------------- around


def test_torchs_number_of_threads_limits_the_default():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert threads.effective_threads(None, 1 << 30, lambda: 8) == 1
    finally:
        torch.set_num_threads(before)


def test_torch_is_imported_only_when_asked_for():
    code = "import sys, fastpool; assert 'torch' not in sys.modules; sys.modules['torch'] = None"
    process = cases.run_python(f"{code}; fastpool.torch")
    last = process.stderr.strip().splitlines()[-1]
    assert last == 'AttributeError: fastpool.torch needs torch: pip install "fastpool[torch]"'


def test_docstrings():
    results = doctest.testmod(ft)  # the functions and classes say that they are of this module
    assert results.attempted > 30 and results.failed == 0


@pytest.mark.parametrize("page", ["torch.md", "coming-from/torch.md"])
def test_recipe_pages(page):
    cases.check_page(page)


def views(x):
    """Tensors of one shape, (2, 4, 8, 10), in several arrangements."""
    yield x[:, :, :8, :10].contiguous()
    yield x[:, :, :8, :10]
    yield x[:, :, 1:, 3:13]
    yield x[:, :, ::2, :10].repeat(1, 1, 2, 1)[:, :, :8]
    yield x[:, :, :8, :10].to(memory_format=torch.channels_last)
    yield x.to(memory_format=torch.channels_last)[:, :, :8, 2:12]
    yield x[:, :, :8, :10].mT.contiguous().mT
    yield x[:, :, :8, ::2].repeat_interleave(2, -1)[..., :10]
    yield x[:1, :, :8, :10].expand(2, -1, -1, -1)


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "float16", "uint8", "int64"])
def test_a_second_call_reads_tensors_by_dlpack(name, monkeypatch):
    """The first call of a kind makes its plan, and goes through NumPy."""
    x = (torch.rand(2, 4, 9, 13, generator=torch.manual_seed(0)) * 100).to(getattr(torch, name))
    calls = (
        lambda x: ft.max_pool2d(x, 3, 2, 1),
        lambda x: ft.max_pool2d(x, 2, return_indices=True),
        lambda x: ft.avg_pool2d(x, (3, 2), ceil_mode=True),
        lambda x: ft.adaptive_avg_pool2d(x, (3, 10)),
        lambda x: ft.max_pool1d(x[0, :, :, 3], 3),
    )
    for tensor in views(x):
        for call in calls:
            with monkeypatch.context() as patch:
                patch.setattr(_ops, "_EXCHANGE", None)
                expected = call(tensor)
            for _ in range(3):
                got = call(tensor)
                torch.testing.assert_close(got, expected, rtol=0, atol=0)
                if type(got) is torch.Tensor:
                    assert got.stride() == expected.stride()


def test_tensors_that_dlpack_does_not_read():
    x = torch.arange(32.0).reshape(1, 2, 4, 4)
    negative = torch.complex(x, x).conj().imag
    assert negative.is_neg()
    for _ in range(3):
        assert torch.equal(ft.max_pool2d(negative, 2), -ft.avg_pool2d(x, 2) + 2.5)
        assert ft.max_pool2d(torch.empty(1, 0, 4, 4), 2).shape == (1, 0, 2, 2)
        with pytest.raises(TypeError, match="layout"):
            ft.max_pool2d(x.to_sparse(), 2)
        with pytest.raises(TypeError, match="float16, bfloat16"):
            ft.max_pool2d(x.to(torch.complex64), 2)
    assert not builds.knows_tensors(None) and not builds.knows_tensors(torch.Tensor)


def test_results_keep_their_memory():
    x = torch.rand(1, 1, 64, 64)
    results = [ft.max_pool2d(x + i, 2) for i in range(50)]
    for i, result in enumerate(results):
        assert torch.equal(result, torch.nn.functional.max_pool2d(x + i, 2))
    result.add_(1)
    assert result._version == 1 and not result.requires_grad
