"""fastpool.torch in graphs, of every kind that torch makes, and in modules."""

import copy
import functools
import pickle

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import fastpool.torch as ft  # noqa: E402
from fastpool.torch import _ops  # noqa: E402
from tensors import POOLS, UNPOOLS, images, same  # noqa: E402


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
