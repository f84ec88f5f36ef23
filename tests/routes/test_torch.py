"""fastpool.torch gives what torch gives: results, memory formats, modules, threads."""

import copy
import doctest
import functools
import importlib
import pathlib
import pickle
import sys

import numpy as np
import pytest

from cases import run_python
from fastpool._running import threads

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.autograd import forward_ad, gradcheck, gradgradcheck  # noqa: E402

import fastpool.torch as ft  # noqa: E402
from fastpool.torch import _ops  # noqa: E402
from tensors import FORMATS, POOLS, UNPOOLS, images, same  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
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


PEAK = """
import re
import torch
import fastpool.torch

def peak():
    with open("/proc/self/status") as f:
        return int(re.search(r"VmHWM:\\s+(\\d+) kB", f.read())[1]) << 10

def pool(shape, dtype, memory_format):
    x = torch.ones(shape, dtype=dtype).to(memory_format=memory_format)
    before = peak()
    fastpool.torch.max_pool2d(x, 8)
    return peak() - before

# Each larger than all before it, in elements and in what its making takes.
for mebi, dtype in ((24, torch.bfloat16), (32, torch.float32)):
    for memory_format in (torch.contiguous_format, torch.channels_last):
        pool((1, 8, 64, 64), dtype, memory_format)
        print(pool((1, 8, 1024 * mebi // 8, 1024), dtype, memory_format))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads memory as Linux does")
def test_no_copy_of_the_input_is_made():
    process = run_python(PEAK)
    assert process.returncode == 0, process.stderr
    grown = list(map(int, process.stdout.split()))
    assert len(grown) == 4 and max(grown) < 8 << 20  # of 48 and 128 MiB


# ------------------------------------------------------------------------------------ derivatives


@pytest.mark.parametrize("rank, last", [(1, False), (2, False), (2, True), (3, True)])
def test_gradients(rank, last):
    x = images(rank, last=last, size=2)[:1, :2].detach().requires_grad_()
    attributes = *([n] * rank for n in (3, 2, 1, 1)), False
    y, indices = POOLS[rank][0](x.detach(), 2, return_indices=True)
    y.requires_grad_()
    for derivative in (gradcheck, gradgradcheck):
        assert derivative(lambda x: POOLS[rank][1](x, 3, 2, 1), x)
        assert derivative(lambda y: UNPOOLS[rank][1](y, indices, 2), y)
        assert derivative(lambda y: _ops.max_unpool(y, indices, list(x.shape[2:])), y)
        for operator in (_ops.max_pool, _ops.max_pool_with_indices):
            assert derivative(lambda x, operator=operator: operator(x, *attributes), x)


@pytest.mark.parametrize("last", [False, True])
def test_gradients_are_torchs(last):
    x = images(2, last=last, requires_grad=True)
    for attributes in ((3, 1, 1), (2, 2, 0, 2), (3, 2, 1, 1, True)):
        y = ft.max_pool2d(x, *attributes)
        weights = torch.rand(y.shape, dtype=y.dtype)
        (got,) = torch.autograd.grad(y, x, weights)
        (expected,) = torch.autograd.grad(F.max_pool2d(x, *attributes), x, weights)
        torch.testing.assert_close(got, expected)
        assert got.stride() == expected.stride()
    y, indices = F.max_pool2d(
        x.detach(), 3, 1, return_indices=True
    )  # some elements are twice there
    y.requires_grad_()
    weights = torch.rand(x.shape, dtype=x.dtype)
    back = (library.max_unpool2d(y, indices, 3, 1) for library in (ft, F))
    same(*(torch.autograd.grad(z, y, weights)[0] for z in back))


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_nothing_flows_to_windows_without_elements():
    x = torch.ones(1, 1, 2, 9, dtype=torch.float64, requires_grad=True)
    attributes = (2, 2), (1, 1), (1, 1), (3, 1)
    for y in (ft.max_pool2d(x, *attributes), _ops.max_pool(x, *map(list, attributes), False)):
        (got,) = torch.autograd.grad(y, x, torch.ones_like(y))
        assert not got.any()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.detach(), torch.ones_like(x))
        assert not forward_ad.unpack_dual(ft.max_pool2d(dual, *attributes)).tangent.any()


def tangent_and_gradients(pool, x):
    yield torch.func.jvp(pool, (x,), (x * x,))
    yield torch.func.grad(lambda x: (pool(x) ** 2).sum())(x)
    yield torch.vmap(torch.func.grad(lambda x: pool(x).sum()))(x)
    yield torch.func.jacrev(pool)(x[:1]), torch.func.jacfwd(pool)(x[:1])
    yield torch.autograd.functional.jacobian(pool, x[:1], vectorize=True)
    yield torch.func.jvp(torch.func.grad(lambda x: (pool(x) ** 3).sum()), (x,), (x * x,))


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_forward_mode_and_function_transforms():
    x = images(2, size=4)
    got, expected = (
        tangent_and_gradients(lambda x, library=library: library.max_pool2d(x, 3, 2, 1), x)
        for library in (ft, F)
    )
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    y, indices = F.max_pool2d(x, 2, return_indices=True)
    got, tangent = torch.func.jvp(lambda y: ft.max_unpool2d(y, indices, 2), (y,), (y * y,))
    same(tangent, got * got)


@pytest.mark.parametrize("axis", [0, 2, -1])
@pytest.mark.parametrize("batched", [False, True])
def test_vmap(batched, axis):
    x = images(3, torch.float32)
    x = x if batched else x[0]
    mapped = torch.vmap(
        lambda x: ft.max_pool2d(x, 2, return_indices=True), in_dims=axis, out_dims=axis
    )
    each = [ft.max_pool2d(part, 2, return_indices=True) for part in x.unbind(axis)]
    y, indices = mapped(x)
    same(y, torch.stack([y for y, _ in each], axis))
    same(indices, torch.stack([indices for _, indices in each], axis))
    same(torch.vmap(lambda x: ft.max_pool2d(x, 2), in_dims=axis, out_dims=axis)(x), y)
    back = torch.vmap(lambda y, i: ft.max_unpool2d(y, i, 2), in_dims=axis)(y, indices)
    same(back, torch.stack([ft.max_unpool2d(*pair, 2) for pair in each]))
    one = indices.select(axis, 0)
    back = torch.vmap(lambda y: ft.max_unpool2d(y, one, 2), in_dims=axis)(y)
    same(back, torch.stack([ft.max_unpool2d(y, one, 2) for y, _ in each]))


# ----------------------------------------------------------------------------------------- graphs


def operator_calls():
    for x in (
        images(1)[0],
        images(2, torch.float32, True, requires_grad=True),
        images(3, torch.float32, requires_grad=True),
    ):
        rank = x.dim() - (2 if x.shape[0] == 2 else 1)  # one has no batch
        attributes = [3] * rank, [2] * rank, [1] * rank, [1] * rank, True
        yield _ops.max_pool, (x, *attributes)
        yield _ops.max_pool_with_indices, (x, *attributes)
        y, indices = POOLS[rank][0](x, 2, return_indices=True)
        y = y.detach().requires_grad_(x.requires_grad)
        yield _ops.max_unpool, (y, indices, [9] * rank)
    yield _ops.max_pool, (torch.ones(0, 3, 8, 8), [2, 2], [2, 2], [0, 0], [1, 1], False)
    yield _ops.max_pool, (torch.ones(2, 3, 8, 8).bfloat16(), [2, 2], [2, 2], [0, 0], [1, 1], False)


@pytest.mark.parametrize("call", list(operator_calls()), ids=lambda call: call[0].name())
def test_operators_keep_torchs_rules(call):
    results = torch.library.opcheck(*call)
    assert set(results.values()) == {"SUCCESS"} and len(results) == 4


def there_and_back(library, x):
    y, indices = library.max_pool2d(x, 2, padding=1, return_indices=True)
    return library.max_unpool2d(y, indices, 2, padding=1, output_size=x.shape)


@pytest.fixture
def compiled():
    yield functools.partial(torch.compile, fullgraph=True, backend="aot_eager")
    torch.compiler.reset()


@pytest.mark.parametrize(
    "function, last",
    [
        (lambda library, x: library.max_pool2d(x, 3, 2, 1), True),
        (lambda library, x: library.max_pool2d(x, (3, 2), stride=2, ceil_mode=True), False),
        (there_and_back, False),
    ],
)
def test_compile_without_graph_breaks(function, last, compiled):
    pool = compiled(functools.partial(function, ft))
    for x in (
        images(2, last=last),
        images(2, last=last, requires_grad=True),
        images(2, last=last, size=10, requires_grad=True),
    ):
        y, expected = pool(x), function(F, x)
        same(y, expected)
        if x.requires_grad:
            weights = torch.rand(y.shape, dtype=y.dtype)
            gradients = (torch.autograd.grad(z, x, weights)[0] for z in (y, expected))
            torch.testing.assert_close(*gradients)


def test_compiled_errors_name_the_argument(compiled):
    pool = compiled(lambda x: ft.max_pool2d(x, 2, padding=2))
    with pytest.raises(Exception, match="padding: expected at most half of kernel_size 2, got 2"):
        pool(torch.ones(1, 1, 4, 4))


class Net(nn.Module):
    """Pools, unpools and pools again, with one module twice."""

    def __init__(self, library=nn):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.down = library.MaxPool2d(2, return_indices=True)
        self.up = library.MaxUnpool2d(2)
        self.blocks = nn.Sequential(nn.ReLU(), library.MaxPool2d(3, 2, 1, ceil_mode=True))
        self.shared = self.blocks[1]

    def forward(self, x):
        x = self.conv(x)
        x = self.up(*self.down(x), output_size=x.shape)
        return self.shared(self.blocks(x))


def test_export(tmp_path):
    x = torch.rand(2, 3, 20, 21)
    model = Net(ft)
    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(model, (x,), dynamic_shapes=({0: batch},))
    called = [node.target for node in exported.graph.nodes if node.op == "call_function"]
    # An inference graph finds indices only where they are asked for.
    assert called.count(_ops.max_pool) == 2 and called.count(_ops.max_pool_with_indices) == 1
    torch.export.save(exported, tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    for inputs in (x, torch.rand(5, 3, 20, 21)):
        same(loaded(inputs), model(inputs))


def test_symbolic_traces_and_subclasses_see_the_function():
    traced = torch.fx.symbolic_trace(nn.Sequential(nn.ReLU(), ft.MaxPool2d(2)))
    assert ft.max_pool2d in [node.target for node in traced.graph.nodes]
    x = images(2, torch.float32)
    same(traced(x), F.max_pool2d(x.relu(), 2))

    class Marked(torch.Tensor):
        pass

    assert type(ft.max_pool2d(x.as_subclass(Marked), 2)) is Marked


def test_modes_see_the_operators():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    with Watch():
        y, indices = ft.max_pool2d(torch.ones(1, 1, 4, 4), 2, return_indices=True)
        ft.max_unpool2d(y, indices, 2)
    assert _ops.max_pool_with_indices in seen and _ops.max_unpool in seen


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
    process = run_python(f"{code}; fastpool.torch")
    last = process.stderr.strip().splitlines()[-1]
    assert last == 'ImportError: fastpool.torch needs torch: pip install "fastpool[torch]"'


@pytest.mark.parametrize("name", ["", "._functions", "._modules", "._replace"])
def test_docstrings(name):
    results = doctest.testmod(importlib.import_module(f"fastpool.torch{name}"))
    assert results.failed == 0


@pytest.mark.parametrize("page", ["torch.md", "coming-from/torch.md"])
def test_recipe_pages(page):
    results = doctest.testfile(str(ROOT / "docs" / page), module_relative=False)
    assert results.attempted > 5 and results.failed == 0
