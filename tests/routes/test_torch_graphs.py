"""fastpool.torch works under torch's derivatives, transforms, compiler, export and tracing."""

import functools

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.autograd import forward_ad, gradcheck, gradgradcheck  # noqa: E402

import fastpool.torch as ft  # noqa: E402
from tensors import (  # noqa: E402
    OPS,
    POOLS,
    UNPOOLS,
    Net,
    ignore_torchs_own_cleanup,
    images,
    same,
)

# ------------------------------------------------------------------------------------ derivatives


@pytest.mark.parametrize("rank, last", [(1, False), (2, False), (2, True), (3, True)])
def test_gradients(rank, last):
    x = images(rank, last=last, size=2)[:1, :2].detach().requires_grad_()
    attributes = *([n] * rank for n in (3, 2, 1, 1)), False
    y, indices = POOLS[rank][0](x.detach(), 2, return_indices=True)
    y.requires_grad_()
    for derivative in (gradcheck, gradgradcheck):
        for window in ((3, 2, 1), (2,)):
            assert derivative(lambda x, window=window: POOLS[rank][1](x, *window), x)
        assert derivative(lambda y: UNPOOLS[rank][1](y, indices, 2), y)
        assert derivative(lambda y: OPS.max_unpool.default(y, indices, list(x.shape[2:])), y)
        for operator in (OPS.max_pool.default, OPS.max_pool_with_indices.default):
            assert derivative(lambda x, operator=operator: operator(x, *attributes), x)


@pytest.mark.parametrize("last", [False, True])
def test_gradients_are_torchs(last):
    x = images(2, last=last, requires_grad=True)
    for attributes in ((3, 1, 1), (2, 2, 0, 2), (3, 2, 1, 1, True), (2,), (2, 3, 1)):
        y = ft.max_pool2d(x, *attributes)
        one = torch.ones((), dtype=y.dtype)
        for weights in (torch.rand(y.shape, dtype=y.dtype), one.expand(y.shape)):
            (got,) = torch.autograd.grad(y, x, weights, retain_graph=True)
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


@pytest.mark.parametrize("pool", [F.max_pool2d, F.avg_pool2d])
def test_tensors_that_a_transform_has_left(pool):
    left = []
    torch.func.grad(lambda x: left.append(x) or x.sum())(images(2))
    y = getattr(ft, pool.__name__)(left[0], 2)
    same(y, pool(left[0], 2))
    assert y.requires_grad == pool(left[0], 2).requires_grad


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_nothing_flows_to_windows_without_elements():
    x = torch.ones(1, 1, 2, 9, dtype=torch.float64, requires_grad=True)
    attributes = (2, 2), (1, 1), (1, 1), (3, 1)
    for y in (
        ft.max_pool2d(x, *attributes),
        OPS.max_pool.default(x, *map(list, attributes), False),
    ):
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
        yield OPS.max_pool.default, (x, *attributes)
        yield OPS.max_pool_with_indices.default, (x, *attributes)
        y, indices = POOLS[rank][0](x, 2, return_indices=True)
        y = y.detach().requires_grad_(x.requires_grad)
        yield OPS.max_unpool.default, (y, indices, [9] * rank)
    yield OPS.max_pool.default, (torch.ones(0, 3, 8, 8), [2, 2], [2, 2], [0, 0], [1, 1], False)
    yield (
        OPS.max_pool.default,
        (torch.ones(2, 3, 8, 8).bfloat16(), [2, 2], [2, 2], [0, 0], [1, 1], False),
    )


@pytest.mark.parametrize("call", list(operator_calls()), ids=lambda call: call[0].name())
def test_operators_keep_torchs_rules(call):
    results = torch.library.opcheck(*call)
    assert set(results.values()) == {"SUCCESS"} and len(results) == 4


def there_and_back(library, x):
    y, indices = library.max_pool2d(x, 2, padding=1, return_indices=True)
    return library.max_unpool2d(y, indices, 2, padding=1, output_size=x.shape)


@ignore_torchs_own_cleanup
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


@ignore_torchs_own_cleanup
def test_compiled_errors_name_the_argument(compiled):
    pool = compiled(lambda x: ft.max_pool2d(x, 2, padding=2))
    with pytest.raises(Exception, match="padding: expected at most half of kernel_size 2, got 2"):
        pool(torch.ones(1, 1, 4, 4))


class Operators(nn.Module):
    """What `Net` does, by operators, which exported programs keep."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        x = self.conv(x)
        y, indices = OPS.max_pool_with_indices(x, [2, 2], [2, 2], [0, 0], [1, 1], False)
        x = OPS.max_unpool(y, indices, x.shape[2:]).relu()
        for _ in range(2):
            x = OPS.max_pool(x, [3, 3], [2, 2], [1, 1], [1, 1], True)
        return x


def test_export(tmp_path):
    x = torch.rand(2, 3, 20, 21)
    net, model = Net(ft), Operators()
    model.load_state_dict(net.state_dict())
    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(model, (x,), dynamic_shapes=({0: batch},))
    called = [node.target for node in exported.graph.nodes if node.op == "call_function"]
    for operator, count in (
        (OPS.max_pool.default, 2),
        (OPS.max_pool_with_indices.default, 1),
        (OPS.max_unpool.default, 1),
    ):
        assert called.count(operator) == count
    torch.export.save(exported, tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    for inputs in (x, torch.rand(5, 3, 20, 21)):
        same(loaded(inputs), model(inputs))
        same(loaded(inputs), net(inputs))


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
    assert OPS.max_pool_with_indices.default in seen and OPS.max_unpool.default in seen
