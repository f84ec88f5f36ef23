"""Averages and adaptive poolings work under torch's derivatives, transforms and compiler."""

import weakref

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch._subclasses import FakeTensorMode  # noqa: E402
from torch.autograd import forward_ad, gradcheck, gradgradcheck  # noqa: E402

import fastpool.torch as ft  # noqa: E402
from tensors import FORMATS, OPS, ignore_torchs_own_cleanup, images, same  # noqa: E402

# By torch itself, as it loads what tangents need.
pytestmark = pytest.mark.filterwarnings(
    "ignore:`torch.jit.script` is deprecated:DeprecationWarning"
)

# name, number of spatial axes, whether channels are last, attributes
CALLS = [
    ("avg_pool1d", 1, False, (3, 2, 1)),
    ("avg_pool2d", 2, False, (3, 2, 1, True, False)),
    ("avg_pool2d", 2, True, ((2, 1), None, (1, 0), False, True, -3)),
    ("avg_pool3d", 3, False, (2, 2, 1, False, False)),
    ("avg_pool3d", 3, True, (2, 2, 0, True)),
    ("adaptive_avg_pool1d", 1, False, (3,)),
    ("adaptive_avg_pool2d", 2, True, ((3, None),)),
    ("adaptive_avg_pool2d", 2, False, (1,)),
    ("adaptive_avg_pool3d", 3, False, ((1, 3, 5),)),
    ("adaptive_max_pool1d", 1, False, (2,)),
    ("adaptive_max_pool2d", 2, False, ((3, None),)),
    ("adaptive_max_pool2d", 2, True, (2,)),
    ("adaptive_max_pool3d", 3, True, ((1, 3, 5),)),
]
each = pytest.mark.parametrize("name, rank, last, attributes", CALLS)


def both(name, attributes):
    """torch's function and fastpool's, of an input."""
    return [
        lambda x, library=library: getattr(library, name)(x, *attributes) for library in (F, ft)
    ]


def small(rank, last=False, dtype=torch.float64):
    """One image of two channels."""
    x = images(rank, dtype, size=4 if rank < 3 else 2)[:1, :2]
    return x.to(memory_format=FORMATS[rank]) if last else x


# ----------------------------------------------------------------------------------- derivatives


@each
def test_gradients(name, rank, last, attributes):
    theirs, ours = both(name, attributes)
    x = small(rank, last).requires_grad_()
    y, expected = ours(x), theirs(x)
    weights = torch.rand(y.shape, dtype=y.dtype)
    got, right = (torch.autograd.grad(z, x, weights, create_graph=True)[0] for z in (y, expected))
    torch.testing.assert_close(got, right)
    if last and rank == 2:
        assert got.is_contiguous(memory_format=FORMATS[rank])
    assert gradcheck(ours, x, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(ours, x, check_fwd_over_rev=True, check_rev_over_rev=True)


@each
def test_gradients_of_operators(name, rank, last, attributes):
    """These are what graphs differentiate, without tangents."""
    x = small(rank, last).requires_grad_()
    operator, arguments = operator_call(name, x, attributes)
    assert gradcheck(lambda x: operator(x, *arguments), x)
    assert gradgradcheck(lambda x: operator(x, *arguments), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_gradients_of_small_types_are_rounded_once(dtype):
    """torch adds in the type itself."""
    for name, rank, last, attributes in CALLS:
        if "avg" in name:
            x = small(rank, last, dtype).requires_grad_()
            y = getattr(ft, name)(x, *attributes)
            weights = torch.rand(y.shape, dtype=dtype)
            (got,) = torch.autograd.grad(y, x, weights)
            wide = x.detach().float().requires_grad_()
            (right,) = torch.autograd.grad(
                getattr(F, name)(wide, *attributes), wide, weights.float()
            )
            same(got, right.to(dtype))


def test_gradients_of_empty_results():
    for shape, size in (((0, 2, 4, 4), 2), ((1, 0, 4, 4), 2), ((1, 2, 4, 4), 0)):
        x = torch.ones(shape, requires_grad=True)
        for pool in (ft.adaptive_avg_pool2d, ft.adaptive_max_pool2d):
            (got,) = torch.autograd.grad(pool(x, size).sum(), x, create_graph=True)
            same(got, torch.zeros(shape))
        if size:
            (got,) = torch.autograd.grad(ft.avg_pool2d(x, size).sum(), x)
            same(got, torch.zeros(shape))


def test_the_input_of_averages_is_not_kept_for_its_gradient():
    for pool in (ft.avg_pool2d, ft.adaptive_avg_pool2d):
        hidden = images(2, torch.float32, size=4, requires_grad=True) * 2
        kept = weakref.ref(hidden)
        y = pool(hidden, 2)
        del hidden
        assert kept() is None and y.requires_grad


def tangent_and_gradients(pool, x):
    yield torch.func.jvp(pool, (x,), (x * x,))
    yield torch.func.grad(lambda x: (pool(x) ** 2).sum())(x)
    yield torch.vmap(torch.func.grad(lambda x: pool(x).sum()))(x)
    yield torch.func.jacrev(pool)(x[:1]), torch.func.jacfwd(pool)(x[:1])
    yield torch.autograd.functional.jacobian(pool, x[:1], vectorize=True)
    yield torch.func.jvp(torch.func.grad(lambda x: (pool(x) ** 3).sum()), (x,), (x * x,))


@each
def test_forward_mode_and_function_transforms(name, rank, last, attributes):
    x = torch.cat([small(rank, last), small(rank, last) + 1])
    expected, got = (tangent_and_gradients(pool, x) for pool in both(name, attributes))
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_tangent_of_means_is_their_mean():
    x = small(2)
    with forward_ad.dual_level():
        y = ft.avg_pool2d(forward_ad.make_dual(x, x + 1), 2)
        same(forward_ad.unpack_dual(y).tangent, ft.avg_pool2d(x + 1, 2))


@each
def test_vmap(name, rank, last, attributes):
    pool = getattr(ft, name)
    options = {"return_indices": True} if "max" in name else {}

    def every(x):
        results = pool(x, *attributes, **options)
        return results if options else (results,)

    for x in (images(rank, torch.float32, last, size=4), small(rank)[0]):
        for axis in (0, 1):
            mapped = torch.vmap(every, in_dims=axis)
            parts = x.unsqueeze(axis).expand(*x.shape[:axis], 2, *x.shape[axis:])
            expected = [
                torch.stack(results)
                for results in zip(*map(every, parts.unbind(axis)), strict=True)
            ]
            for got, right in zip(mapped(parts), expected, strict=True):
                same(got, right)


# ---------------------------------------------------------------------------------------- graphs


def operator_call(name, x, attributes, with_indices=False):
    """Return an operator and its arguments after x, from those of a function."""
    rank = int(name[-2])
    if "adaptive" in name:
        size = attributes[0] if isinstance(attributes[0], tuple) else attributes * rank
        size = [n or extent for n, extent in zip(size, x.shape[-rank:], strict=True)]
        if "avg" in name:
            return OPS.adaptive_avg_pool.default, (size, "pairwise")
        operators = OPS.adaptive_max_pool, OPS.adaptive_max_pool_with_indices
        return operators[with_indices].default, (size,)
    usual = None, None, 0, False, True, None
    kernel, stride, padding, *rules = *attributes, *usual[len(attributes) :]
    windows = [
        list(value) if isinstance(value, tuple) else [value] * rank
        for value in (kernel, stride or kernel, padding)
    ]
    return OPS.avg_pool.default, (*windows, *rules, "pairwise")


@pytest.mark.parametrize("requires_grad", [False, True])
@each
def test_operators_keep_torchs_rules(name, rank, last, attributes, requires_grad):
    x = small(rank, last, torch.float32).requires_grad_(requires_grad)
    for with_indices in {"max" in name, False}:
        operator, arguments = operator_call(name, x, attributes, with_indices)
        results = torch.library.opcheck(operator, (x, *arguments))
        assert set(results.values()) == {"SUCCESS"} and len(results) == 4


def test_fake_tensors_have_the_results_format():
    for name, rank, last, attributes in CALLS:
        x = images(rank, torch.float32, last, size=4)
        for kind in (
            ({}, {"return_indices": True}) if "max" in name else ({}, {"numerics": "exact"})
        ):
            expected = getattr(ft, name)(x, *attributes, **kind)
            meta = getattr(ft, name)(x.to("meta"), *attributes, **kind)
            with FakeTensorMode() as mode:
                fake = getattr(ft, name)(mode.from_tensor(x), *attributes, **kind)
            if not isinstance(expected, tuple):
                expected, meta, fake = (expected,), (meta,), (fake,)
            for right, *results in zip(expected, meta, fake, strict=True):
                for result in results:
                    assert result.shape == right.shape and result.dtype is right.dtype
                    assert result.stride() == right.stride()


class Head(nn.Module):
    """Averages of windows, adaptive means and maxima."""

    def __init__(self, library=nn):
        super().__init__()
        self.average = library.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False)
        self.mean = library.AdaptiveAvgPool2d((6, None))
        self.most = library.AdaptiveMaxPool2d(2)

    def forward(self, x):
        return self.most(self.mean(self.average(x)))


@ignore_torchs_own_cleanup
def test_compile_without_graph_breaks(compiled):
    theirs, ours = Head(), Head(ft)
    ours.average.numerics = "sequential"
    pool = compiled(ours)
    for last in (False, True):
        for size in (12, 16):
            x = images(2, last=last, size=size, requires_grad=True)
            y, expected = pool(x), theirs(x)
            torch.testing.assert_close(y, expected)
            weights = torch.rand(y.shape, dtype=y.dtype)
            gradients = (torch.autograd.grad(z, x, weights)[0] for z in (y, expected))
            torch.testing.assert_close(*gradients)


@ignore_torchs_own_cleanup
@pytest.mark.parametrize(
    "message, function",
    [
        ("padding: expected at most half of", lambda x: ft.avg_pool2d(x, 2, padding=2)),
        ('numerics: expected one of "pairwise"', lambda x: ft.avg_pool2d(x, 2, numerics="fast")),
        ("output_size: expected ints of", lambda x: ft.adaptive_avg_pool2d(x, -1)),
    ],
)
def test_compiled_errors_name_the_argument(message, function, compiled):
    with pytest.raises(Exception, match=message):
        compiled(function)(torch.ones(1, 1, 4, 4))


class Operators(nn.Module):
    """What `Head` does, by operators, which exported programs keep."""

    def forward(self, x):
        window = [3, 3], [2, 2], [1, 1], True, False, None, "pairwise"
        x = OPS.avg_pool(x, *window)
        return OPS.adaptive_max_pool(OPS.adaptive_avg_pool(x, [6, x.shape[-1]], "pairwise"), [2, 2])


def test_export(tmp_path):
    x, model = torch.rand(2, 3, 12, 14), Operators()
    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(model, (x,), dynamic_shapes=({0: batch},))
    called = [node.target for node in exported.graph.nodes if node.op == "call_function"]
    poolings = "avg_pool", "adaptive_avg_pool", "adaptive_max_pool"
    assert [call for call in called if call.namespace == "fastpool"] == [
        getattr(OPS, name).default for name in poolings
    ]
    torch.export.save(exported, tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    for inputs in (x, torch.rand(5, 3, 12, 14)):
        same(loaded(inputs), Head(ft)(inputs))


def test_symbolic_traces_and_subclasses_see_the_function():
    traced = torch.fx.symbolic_trace(Head(ft))
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert targets == [ft.avg_pool2d, ft.adaptive_avg_pool2d, ft.adaptive_max_pool2d]
    x = images(2, torch.float32, size=12)
    same(traced(x), Head(ft)(x))

    class Marked(torch.Tensor):
        pass

    for name, rank, last, attributes in CALLS:
        x = images(rank, torch.float32, last, size=4).as_subclass(Marked)
        assert type(getattr(ft, name)(x, *attributes)) is Marked
