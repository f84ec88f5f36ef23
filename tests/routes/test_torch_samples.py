"""fastpool.torch gives what torch gives on the samples by which torch tests its own operators."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")
pytest.importorskip("expecttest")  # what torch's list of operators needs

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import fastpool.torch as ft  # noqa: E402
from tensors import same  # noqa: E402

OPERATORS = {op.name.removeprefix("nn.functional."): op for op in op_db if not op.variant_test_name}
NAMES = [
    f"{kind}{rank}d"
    for kind in ("avg_pool", "adaptive_avg_pool", "adaptive_max_pool", "max_pool", "max_unpool")
    for rank in (1, 2, 3)
]
HALVES = torch.float16, torch.bfloat16
FEW = [torch.bfloat16, torch.float32, torch.int64]
# Of more samples than these, which differ in attributes only, every second or third.
MOST = 150

# Inputs that torch refuses and fastpool.torch takes: (name, shape). A tensor without batch may have
# no channels, as one with a batch may.
TAKEN = {
    ("max_pool1d", (0, 10)),
    ("max_pool3d", (0, 1, 2, 10)),
}

# What differs in results: name -> reason. `test_results` compares these with means of float64.
DIFFERENT = {
    "adaptive_avg_pool1d": "torch adds the elements of one window per plane in another order",
    "adaptive_avg_pool2d": "torch adds the elements of one window per plane in another order",
    "adaptive_avg_pool3d": "torch adds in another order, and float16 and bfloat16 in the type",
}


def types(name):
    """The types of an operator; of max pooling and unpooling, with hundreds of samples, three."""
    dtypes = sorted(OPERATORS[name].dtypes, key=str)
    return [dtype for dtype in dtypes if not name.startswith("max") or dtype in FEW]


def samples(op, dtype, requires_grad):
    torch.manual_seed(0)
    every = list(op.sample_inputs("cpu", dtype, requires_grad=requires_grad))
    return every[:: -(-len(every) // MOST)]


def wide(sample):
    """The sample with an input of float64."""
    return sample.input.detach().double().requires_grad_(sample.input.requires_grad)


def each(results):
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize(
    "name, dtype",
    [(name, dtype) for name in NAMES for dtype in types(name)],
    ids=lambda value: str(value).removeprefix("torch."),
)
def test_results(name, dtype):
    op, function = OPERATORS[name], getattr(ft, name)
    for sample in samples(op, dtype, False):
        x, args, kwargs = sample.input, sample.args, sample.kwargs
        if name in DIFFERENT:
            y = function(x, *args, **kwargs, numerics="exact")
            expected = op.op(wide(sample), *args, **kwargs)
            if dtype is torch.float64:
                same(y, expected, rtol=1e-15, atol=1e-15)
            else:
                same(y, expected.to(dtype))
            continue
        extra = {"numerics": "sequential"} if "avg" in name else {}
        expected = each(op.op(x, *args, **kwargs))
        for got, right in zip(each(function(x, *args, **kwargs, **extra)), expected, strict=True):
            same(got, right)


@pytest.mark.parametrize(
    "name, dtype",
    [(name, dtype) for name in NAMES for dtype in types(name) if dtype is not torch.int64],
    ids=lambda value: str(value).removeprefix("torch."),
)
def test_gradients(name, dtype):
    op, function = OPERATORS[name], getattr(ft, name)
    for sample in samples(op, dtype, True):
        x, args, kwargs = sample.input, sample.args, sample.kwargs
        y = each(function(x, *args, **kwargs))[0]
        weights = torch.rand(y.shape).to(dtype)
        (got,) = torch.autograd.grad(y, x, weights)
        if dtype not in HALVES:
            expected = each(op.op(x, *args, **kwargs))[0]
            (right,) = torch.autograd.grad(expected, x, weights)
            torch.testing.assert_close(got, right)
            continue
        # torch adds gradients in the type itself, fastpool.torch those of averages in float32.
        x = wide(sample)
        expected = each(op.op(x, *args, **kwargs))[0]
        (right,) = torch.autograd.grad(expected, x, weights.double())
        torch.testing.assert_close(got, right.to(dtype))


@pytest.mark.parametrize("name", NAMES)
def test_errors(name):
    op, function = OPERATORS[name], getattr(ft, name)
    for error in op.error_inputs("cpu"):
        sample = error.sample_input
        x, args, kwargs = sample.input, sample.args, sample.kwargs
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            op.op(x, *args, **kwargs)
        if (name, tuple(x.shape)) in TAKEN:
            assert each(function(x, *args, **kwargs))[0].numel() == 0
            continue
        with pytest.raises((TypeError, ValueError), match=r"^[a-z_]+: "):
            function(x, *args, **kwargs)
