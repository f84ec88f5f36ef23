"""fastpool.torch's Lp pooling: norms as fastpool's, derivatives as torch's, in graphs too."""

import math

import numpy as np
import pytest

import fastpool

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

from torch import nn  # noqa: E402

import fastpool.torch as ft  # noqa: E402
from tensors import OPS, arrangements, ignore_torchs_own_cleanup, pairs, same  # noqa: E402

LP = pairs("lp_pool")
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
ORDERS = [1.0, 2.0, 3.0, 1.5, math.inf]


def numbers(rank, dtype=torch.float64, low=-1.0):
    """Numbers above `low` and below 1.1, in 2 x 3 planes of odd and even extents."""
    x = torch.rand(2, 3, *(7, 6, 5)[:rank], generator=torch.Generator().manual_seed(0))
    return (x * (1.1 - low) + low).to(dtype)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("rank", LP)
def test_norms_of_positive_numbers_are_those_of_torch(rank, ceil_mode):
    theirs, ours = LP[rank]
    for p in [*ORDERS, 2, 0.5]:
        x = numbers(rank, low=0.1)
        torch.testing.assert_close(ours(x, p, 3, 2, ceil_mode), theirs(x, p, 3, 2, ceil_mode))
        torch.testing.assert_close(ours(x, p, 2), theirs(x, p, 2))
    for p in (2, math.inf):  # of any sign
        x = numbers(rank)
        torch.testing.assert_close(ours(x, p, 3, 2, ceil_mode), theirs(x, p, 3, 2, ceil_mode))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rank", LP)
def test_norms_are_those_of_fastpool(rank, dtype):
    _, ours = LP[rank]
    layout = "NC" + "DHW"[3 - rank :]
    for p in ORDERS:
        for how, x in arrangements(numbers(rank, dtype)):
            y = ours(x, p, 3, 2, True)
            attributes = {"strides": 2, "ceil_mode": True, "partial": "scale"}
            attributes["layout"] = layout[how == "without a batch" :]
            expected = torch.empty(y.shape, dtype=dtype)
            fastpool.lp_pool(x.contiguous(), 3, p, out=expected, **attributes)
            same(y, expected.reshape(y.shape))
            if how == "channels last":
                assert y.stride(1) == 1


def test_windows_larger_than_the_input():
    theirs, ours = LP[1]
    x = torch.ones(1, 2)
    for p in ORDERS:
        torch.testing.assert_close(ours(x, p, 3, 2, True), theirs(x, p, 3, 2, True))
    with pytest.raises(ValueError, match="^kernel_size: expected at most the extents"):
        ft.lp_pool3d(torch.ones(1, 2, 2, 2), 2, 3, 2, True)


def test_signs_and_large_numbers():
    """What differs from torch."""
    x = torch.tensor([[-3.0, 4, -1e20, 1e20]])
    assert ft.lp_pool1d(x, 1, 2).tolist() == [[7, np.float32(2e20)]]
    assert ft.lp_pool1d(x[:, :2], 3, 2).tolist() == [[np.float32(91 ** (1 / 3))]]
    assert ft.lp_pool1d(x[:, 2:], 2, 2).tolist() == [[np.float32(2**0.5 * 1e20)]]


# ------------------------------------------------------------------------------------ derivatives


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("rank", LP)
def test_derivatives_are_those_of_torch(rank, p):
    theirs, ours = LP[rank]
    for window in ((3, 2, True), (2, None, False)):
        x = numbers(rank, low=0.1).requires_grad_()
        y, expected = (pool(x, p, *window) for pool in (ours, theirs))
        weights = torch.rand_like(y)
        first = [torch.autograd.grad(z, x, weights, create_graph=True)[0] for z in (y, expected)]
        torch.testing.assert_close(*first)
        if 1 < p < math.inf:
            second = [torch.autograd.grad(z, x, torch.ones_like(x))[0] for z in first]
            torch.testing.assert_close(*second)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_derivatives_and_tangents_are_those_of_the_norm():
    x = numbers(2)[:1, :1].requires_grad_()
    for p in (1.0, 2.0, 3.0, 1.5, math.inf):

        def pool(x, p=p):
            return ft.lp_pool2d(x, p, (3, 2), 2, True)

        assert torch.autograd.gradcheck(pool, x, check_forward_ad=True)
        if p < math.inf:
            assert torch.autograd.gradgradcheck(pool, x)


def test_derivatives_at_zero_are_zero():
    for p in ORDERS:
        x = torch.tensor([[0.0, 0, 0, 2]], requires_grad=True)
        ft.lp_pool1d(x, p, 2).sum().backward()
        assert x.grad.tolist() == [[0, 0, 0, 1]]


def test_derivatives_of_narrow_types():
    """Powers that these types do not hold."""
    for dtype, big in ((torch.float16, 6e4), (torch.float32, 1e30)):
        x = torch.tensor([[big, big / 4]], dtype=dtype, requires_grad=True)
        ft.lp_pool1d(x, 3, 2).sum().backward()
        expected = torch.tensor([[1.0, 1 / 16]]) * (65 / 64) ** (-2 / 3)
        torch.testing.assert_close(x.grad, expected.to(dtype))


# ----------------------------------------------------------------------------------------- graphs


@ignore_torchs_own_cleanup
def test_compiled_and_exported():
    torch.compiler.reset()
    x = numbers(2, torch.float32)
    for p in (1, 2.5):

        def pool(x, p=p):
            return ft.lp_pool2d(x, p, 3, 2, True)

        expected, got = (x.clone().requires_grad_() for _ in range(2))
        y, z = pool(expected), torch.compile(pool, fullgraph=True, backend="aot_eager")(got)
        same(z, y)
        y.sum().backward()
        z.sum().backward()
        torch.testing.assert_close(got.grad, expected.grad)

    class Operator(torch.nn.Module):
        def forward(self, x):
            return OPS.lp_pool(x, [2, 2], [2, 2], False, 2.0)

    exported = torch.export.export(Operator(), (x,))
    nodes = exported.graph.find_nodes(op="call_function", target=OPS.lp_pool.default)
    assert len(nodes) == 1
    same(exported.module()(x), ft.lp_pool2d(x, 2, 2))
    exported = torch.export.export(ft.LPPool2d(2, 2), (x,))
    assert "fastpool" not in str(exported.graph)
    same(exported.module()(x), torch.nn.LPPool2d(2, 2)(x))


def test_the_operator():
    x = numbers(2, torch.float32)
    arguments = [3, 2], [2, 2], True, 2.5
    torch.library.opcheck(OPS.lp_pool.default, (x.requires_grad_(), *arguments))
    same(OPS.lp_pool(x, *arguments), ft.lp_pool2d(x, 2.5, (3, 2), 2, True))
    same(torch.vmap(lambda x: ft.lp_pool2d(x, 2, 2))(x), ft.lp_pool2d(x, 2, 2))
    jacobian = torch.func.jacrev(lambda x: ft.lp_pool2d(x, 2, 5))(x[0, :1])
    assert jacobian.shape == (1, 1, 1, 1, 7, 6)


# ------------------------------------------------------------------------------- modules and errors


def test_modules():
    model = nn.Sequential(nn.LPPool1d(2, 3), nn.LPPool1d(1.5, 2, stride=1, ceil_mode=True))
    twice = nn.ModuleList([nn.LPPool2d(2, 2), nn.LPPool3d(3, (1, 2, 2))])
    x, shown = numbers(1, low=0.1), repr(model)
    expected = model(x)
    for some in (model, twice):
        assert len(ft.replace_pooling(some, select="all").swapped) == 2
    assert type(model[1]) is ft.LPPool1d and repr(model) == shown
    assert type(twice[0]) is ft.LPPool2d and type(twice[1]) is ft.LPPool3d
    torch.testing.assert_close(model(x), expected)


@pytest.mark.parametrize(
    ("error", "match", "arguments"),
    [
        (TypeError, "input: expected one of float16, .*, got torch.int64", (torch.int64, 2, 2)),
        (
            TypeError,
            "input: expected one of float16, .*, got torch.bool",
            (torch.bool, math.inf, 2),
        ),
        (ValueError, "norm_type: expected a number above 0, got 0", (torch.float32, 0, 2)),
        (ValueError, "norm_type: expected a number above 0", (torch.float32, -math.inf, 2)),
        (ValueError, "norm_type: expected a number, got nan", (torch.float32, math.nan, 2)),
        (TypeError, "norm_type: expected a number, got True", (torch.float32, True, 2)),
        (TypeError, "norm_type: expected a number, got '2'", (torch.float32, "2", 2)),
        (ValueError, "kernel_size: window .* exceeds", (torch.float32, 2, 9)),
        (TypeError, "ceil_mode: expected a bool", (torch.float32, 2, 2, None, 1)),
        (TypeError, "stride: expected an int or", (torch.float32, 2, 2, 1.5)),
    ],
)
def test_errors(error, match, arguments):
    dtype, *arguments = arguments
    with pytest.raises(error, match=f"^{match}"):
        ft.lp_pool2d(numbers(2, low=0.0).to(dtype), *arguments)
    with pytest.raises(TypeError, match="^input: expected a torch.Tensor"):
        ft.lp_pool2d(None, 2, 2)
