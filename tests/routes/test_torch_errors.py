"""fastpool.torch refuses tensors and lists that it cannot use, in clear words."""

import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

from torch._subclasses import FakeTensorMode  # noqa: E402

import fastpool.torch as ft  # noqa: E402
from fastpool.torch import _poolings  # noqa: E402
from tensors import OPS, POOLS, UNPOOLS  # noqa: E402

X = torch.zeros(1, 1, 6, 6)


@pytest.mark.parametrize(
    "error, message, arguments",
    [
        (TypeError, "input: expected a torch.Tensor, got ndarray", (X.numpy(), 2)),
        (TypeError, "input: expected one of .*, got torch.complex64", (X.to(torch.complex64), 2)),
        (TypeError, "input: expected one of .*, got torch.float8", (X.to(torch.float8_e5m2), 2)),
        (TypeError, "input: expected a strided tensor, got .*sparse_coo", (X.to_sparse(), 2)),
        (ValueError, "input: expected 3 axes, or 4 with a batch, got", (X[0, 0], 2)),
        (ValueError, "input: expected 3 axes, or 4 with a batch, got", (X[None], 2)),
        (ValueError, "input: expected spatial axes with elements", (X[..., :0], 2)),
        (TypeError, r"kernel_size: expected an int or a tuple of ints, got 2\.0", (X, 2.0)),
        (TypeError, "kernel_size: expected .*, got True", (X, True)),
        (TypeError, "kernel_size: expected .*, got None", (X, None)),
        (TypeError, "kernel_size: expected .*, got '2'", (X, (2, "2"))),
        (ValueError, "kernel_size: expected an int or 2 ints, got", (X, (2, 2, 2))),
        (ValueError, "kernel_size: expected ints of at least 1, got 0", (X, 0)),
        (ValueError, r"kernel_size: window \(7 - 1\) \* 1 \+ 1 = 7 exceeds the padded", (X, 7)),
        (ValueError, "stride: expected ints of at least 1, got", (X, 2, (1, 0))),
        (ValueError, "padding: expected ints of at least 0, got -1", (X, 2, 2, -1)),
        (ValueError, "padding: expected at most half of kernel_size 3, got 2", (X, 3, 2, 2)),
        (ValueError, "dilation: expected ints of at least 1, got 0", (X, 2, 2, 0, 0)),
        (TypeError, "ceil_mode: expected a bool, got 1", (X, 2, 2, 0, 1, 1)),
    ],
)
def test_errors_of_pooling(error, message, arguments):
    with pytest.raises(error, match=f"^{message}"):
        ft.max_pool2d(*arguments)
    if isinstance(arguments[0], torch.Tensor) and arguments[0].dtype is torch.float32:
        x = arguments[0].clone().requires_grad_() if not arguments[0].is_sparse else arguments[0]
        with pytest.raises(error, match=f"^{message}"):
            ft.max_pool2d(x, *arguments[1:])


def x_of(dtype):
    return torch.ones(1, 1, 6, 6).to(dtype)


@pytest.mark.parametrize(
    "error, message, pool, arguments",
    [
        (TypeError, "input: expected a torch.Tensor, got NoneType", "avg_pool2d", (None, 2)),
        (
            TypeError,
            "input: expected one of .* torch.complex64",
            "avg_pool2d",
            (x_of(torch.cfloat), 2),
        ),
        (ValueError, "input: expected 4 axes, or 5", "avg_pool3d", (X[0], 2)),
        (ValueError, "input: expected spatial axes with", "avg_pool2d", (X[..., :0], 2)),
        (ValueError, "kernel_size: window .* exceeds", "avg_pool2d", (X, 7)),
        (
            ValueError,
            r"kernel_size: expected at most the extents of input \(1, 6, 6\)",
            "avg_pool3d",
            (X, 2, 1, 1),
        ),
        (TypeError, "stride: expected an int or", "avg_pool1d", (X[0], 2, 1.0)),
        (
            ValueError,
            "padding: expected at most half of kernel_size 3, got 2",
            "avg_pool2d",
            (X, 3, 2, 2),
        ),
        (TypeError, "ceil_mode: expected a bool, got 1", "avg_pool2d", (X, 2, 2, 0, 1)),
        (
            TypeError,
            "count_include_pad: expected a bool, got None",
            "avg_pool2d",
            (X, 2, 2, 0, False, None),
        ),
        (ValueError, "divisor_override: .* got 0", "avg_pool2d", (X, 2, 2, 0, False, True, 0)),
        (
            ValueError,
            "divisor_override: .* got 9223",
            "avg_pool3d",
            (X, 1, 2, 0, False, True, 2**63),
        ),
        (TypeError, "divisor_override: .* got True", "avg_pool2d", (X, 2, 2, 0, False, True, True)),
        (TypeError, r"divisor_override: .* got 2\.0", "avg_pool2d", (X, 2, 2, 0, False, True, 2.0)),
        (
            ValueError,
            "divisor_override: int8 does not hold -512 to 508",
            "avg_pool2d",
            (x_of(torch.int8), 2, 2, 0, False, True, 1),
        ),
        (
            TypeError,
            r"output_size: expected an int or .* got 2\.0",
            "adaptive_avg_pool2d",
            (X, 2.0),
        ),
        (
            TypeError,
            "output_size: expected an int or .* got True",
            "adaptive_max_pool2d",
            (X, (2, True)),
        ),
        (
            ValueError,
            "output_size: expected an int or 2 ints",
            "adaptive_avg_pool2d",
            (X, (2, 2, 2)),
        ),
        (
            ValueError,
            "output_size: expected ints of at least 0, got -1",
            "adaptive_max_pool2d",
            (X, -1),
        ),
        (ValueError, "output_size: expected ints of at most", "adaptive_avg_pool2d", (X, 2**63)),
        (ValueError, "input: expected spatial axes with", "adaptive_avg_pool2d", (X[..., :0], 2)),
        (ValueError, "input: expected 2 axes, or 3", "adaptive_max_pool1d", (X, 2)),
        (
            ValueError,
            "output_size: expected a result of less than 2.59",
            "adaptive_avg_pool2d",
            (X, 2**50),
        ),
    ],
)
def test_errors_of_averages_and_adaptive_pooling(error, message, pool, arguments):
    with pytest.raises(error, match=f"^{message}"):
        getattr(ft, pool)(*arguments)
    x, *attributes = arguments
    if isinstance(x, torch.Tensor) and x.dtype is torch.float32:
        x = x.clone().requires_grad_()
        with pytest.raises(error, match=f"^{message}"):
            getattr(ft, pool)(x, *attributes)


@pytest.mark.parametrize("pool", [ft.avg_pool2d, ft.adaptive_avg_pool2d])
def test_errors_of_numerics(pool):
    for x in (X, X.clone().requires_grad_()):
        with pytest.raises(ValueError, match='^numerics: expected one of "pairwise", "exact"'):
            pool(x, 2, numerics="fast")
        with pytest.raises(TypeError, match="^numerics: expected one of .* got 1"):
            pool(x, 2, numerics=1)
    with pytest.raises(TypeError, match="numerics"):
        ft.adaptive_max_pool2d(X, 2, numerics="exact")


Y, INDICES = torch.ones(1, 1, 2, 2), torch.tensor([[[[0, 3], [8, 11]]]])


@pytest.mark.parametrize(
    "error, message, arguments",
    [
        (TypeError, "indices: expected a torch.Tensor, got list", (Y, [0], 2)),
        (TypeError, "indices: expected dtype torch.int64", (Y, INDICES.int(), 2)),
        (ValueError, r"indices: expected the shape of input \(1, 1, 2, 2\)", (Y, INDICES[0], 2)),
        (ValueError, r"indices\[.*: 11 is outside \[0, 9\)", (Y, INDICES, 2, 2, 0, (3, 3))),
        (ValueError, r"indices\[.*: -1 is outside", (Y, INDICES - 1, 2)),
        (ValueError, "kernel_size: expected ints of at least 1", (Y, INDICES, 0)),
        (ValueError, "padding: expected extents above 0", (Y, INDICES, 1, 1, 1)),
        (TypeError, "output_size: expected a tuple of ints, got 4", (Y, INDICES, 2, 2, 0, 4)),
        (ValueError, "output_size: expected 2 ints, or 4", (Y, INDICES, 2, 2, 0, (1, 4, 4))),
        (
            ValueError,
            "output_size: expected extents within the stride",
            (Y, INDICES, 2, 2, 0, (4, 6)),
        ),
    ],
)
def test_errors_of_unpooling(error, message, arguments):
    with pytest.raises(error, match=f"^{message}"):
        ft.max_unpool2d(*arguments)


def test_other_devices_are_named():
    with FakeTensorMode():
        x = torch.empty(1, 1, 4, 4, device="cuda")
        with pytest.raises(
            TypeError, match="^input: expected a tensor on the CPU, got one on cuda"
        ):
            ft.max_pool2d(x, 2)
    x = torch.empty(2, 3, 8, 8, device="meta")
    y, indices = ft.max_pool2d(x, 2, return_indices=True)
    assert y.is_meta and y.shape == (2, 3, 4, 4) and indices.dtype is torch.int64
    with pytest.raises(TypeError, match="^input: expected a tensor on the CPU, got one on meta"):
        _poolings.max_pool.run(2, x, (2, None, 0, 1, False))


def strange_tensors():
    """Tensors of every rank and of every kind that torch makes, by name."""
    x = torch.ones(1, 2, 4, 4)
    for rank in range(7):
        yield f"rank {rank}", torch.ones((2,) * rank)
    for shape in ((0, 2, 4, 4), (1, 0, 4, 4), (1, 2, 0, 4), (1, 2, 4, 0), (0, 0, 0, 0)):
        yield f"empty {shape}", torch.ones(shape)
    yield "sparse", x.to_sparse()
    yield "compressed rows", torch.ones(4, 4).to_sparse_csr()
    yield "quantized", torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)
    yield "complex", x.to(torch.complex64)
    yield "conjugate", x.to(torch.complex64).conj()
    yield "negated", torch._neg_view(x)
    yield "negated bfloat16", torch._neg_view(x.bfloat16())
    yield "zero", torch._efficientzerotensor(x.shape)
    yield "zero bfloat16", torch._efficientzerotensor(x.shape, dtype=torch.bfloat16)
    yield "float8", x.to(torch.float8_e5m2)
    yield "meta", x.to("meta")
    with FakeTensorMode():
        fake = torch.ones(1, 2, 4, 4)
    yield "fake", fake
    yield "nested", torch.nested.nested_tensor([torch.ones(2, 4, 4), torch.ones(2, 3, 4)])
    ragged = [torch.ones(2, 4, 4), torch.ones(3, 4, 4)]
    yield "ragged", torch.nested.nested_tensor(ragged, layout=torch.jagged)
    yield "with a gradient", x.clone().requires_grad_()
    yield "bfloat16 with a gradient", x.bfloat16().requires_grad_()
    with torch.inference_mode():
        inference = torch.ones(1, 2, 4, 4)
    yield "inference", inference
    yield "expanded", torch.ones(1, 1, 1, 1).expand(1, 2, 4, 4)
    yield "channels last", x.to(memory_format=torch.channels_last)
    yield "int64", x.long()
    yield "functional", torch._to_functional_tensor(x)
    yield "nothing", None
    yield "array", x.numpy()


with warnings.catch_warnings(action="ignore"):  # torch's, of prototypes
    STRANGE = dict(strange_tensors())

LISTS = [[2, 2], [1] * 4, [], [2], [2] * 3, [0, 0], [-1, -1], [2, 1], [2**40] * 2, [2**62] * 2]
LISTS += [[2**63 - 1] * 2, [1] * 200]
MODULES = [ft.MaxPool1d, ft.MaxPool2d, ft.MaxPool3d]
# Modules of one attribute, a window or an output size.
OTHERS = [
    getattr(ft, f"{kind}{rank}d")
    for kind in ("AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool")
    for rank in (1, 2, 3)
]
ADAPTIVE = [
    lambda x, values: OPS.adaptive_avg_pool(x, values, "exact"),
    lambda x, values: OPS.adaptive_avg_pool(x, values, "fast"),
    OPS.adaptive_max_pool,
    OPS.adaptive_max_pool_with_indices,
]


def strange_calls(x):
    """Functions of a tensor, with attributes of every length and size."""
    windows, usual = [[2, 2], [2, 2], [0, 0], [1, 1]], torch.ones(1, 2, 4, 4)
    for values in LISTS:
        n = len(values)
        for operator in (OPS.max_pool.default, OPS.max_pool_with_indices.default):
            for place in range(4):
                attributes = [*windows[:place], values, *windows[place + 1 :], False]
                yield lambda x, f=operator, a=attributes: f(x, *a)
            yield lambda x, f=operator, v=values, n=n: f(x, v, v, [0] * n, [1] * n, True)
        for place in range(3):
            attributes = [*windows[:place], values, *windows[place + 1 : 3], True, False, None]
            yield lambda x, a=attributes: OPS.avg_pool(x, *a, "exact")
        yield lambda x, v=values, n=n: OPS.avg_pool(x, v, v, [0] * n, False, True, n, "sequential")
        yield lambda x, v=values, n=n: OPS.lp_pool(x, v, v, True, float(n))
        for operator in ADAPTIVE:
            yield lambda x, f=operator, v=values: f(x, v)
        yield lambda x, v=values: OPS.max_unpool.default(x, x, v)
        if not getattr(x, "is_quantized", False):  # it has nothing like it of integers
            yield lambda x, v=values: OPS.max_unpool.default(
                x, torch.zeros_like(x, dtype=torch.int64), v
            )
        if not isinstance(x, torch._subclasses.FakeTensor):  # not next to real tensors
            yield lambda x, v=values: OPS.max_unpool.default(usual, x, v)
            yield lambda x, v=values: ft.max_unpool2d(usual, x, v)
        for module in OTHERS:
            yield lambda x, f=module, v=values: f(v)(x)
        for rank in (1, 2, 3):
            for attribute in (values, tuple(values), 2, 2**70):
                yield lambda x, f=POOLS[rank][1], v=attribute: f(x, v)
                yield lambda x, f=UNPOOLS[rank][1], v=attribute: f(x, x, v)
                yield lambda x, f=MODULES[rank - 1], v=attribute: f(v, return_indices=True)(x)


def is_torchs(error):
    """Of a call that torch's dispatcher does not bring to an operator."""
    text = str(error)
    if isinstance(error, NotImplementedError):
        return "Could not run 'fastpool::" in text or text.startswith("fastpool.")
    return "Expected a value of type 'Tensor'" in text


def check_strange_calls(x, mapped):
    for call in strange_calls(x):
        try:
            torch.vmap(call)(x) if mapped else call(x)
        except (TypeError, ValueError) as error:
            assert "file an issue" not in str(error) and len(str(error)) < 2000
        except (NotImplementedError, RuntimeError) as error:
            if not is_torchs(error):
                raise


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's: prototypes, slow ways
@pytest.mark.parametrize("kind", STRANGE)
def test_strange_arguments_are_type_and_value_errors(kind):
    check_strange_calls(STRANGE[kind], mapped=False)


# By torch.
NOT_MAPPED = {"rank 0", "compressed rows", "quantized", "nested", "ragged", "nothing", "array"}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", [kind for kind in STRANGE if kind not in NOT_MAPPED])
def test_strange_arguments_under_vmap(kind):
    x = STRANGE[kind]
    check_strange_calls(x, mapped=True)
    if kind != "sparse":
        check_strange_calls(x[None], mapped=True)


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (
            ValueError,
            r"kernel_size: expected 1 to 3 ints, one per spatial axis, got \[1, 1, 1, 1\]",
            lambda: OPS.max_pool(X, *[[1] * 4] * 2, [0] * 4, [1] * 4, False),
        ),
        (
            ValueError,
            r"output_size: expected 1 to 3 ints, one per spatial axis, got \[\]",
            lambda: OPS.max_unpool(Y, INDICES, []),
        ),
        (
            ValueError,
            r"output_size: expected ints of at least 1, got \[-1, 4\]",
            lambda: OPS.max_unpool(Y, INDICES, [-1, 4]),
        ),
        (
            ValueError,
            r"output_size: expected ints of at least 1, got \[-1, 4\]",
            lambda: OPS.max_unpool(Y.to("meta"), INDICES.to("meta"), [-1, 4]),
        ),
        (
            ValueError,
            r"output_size: expected a result of less than 2.59 elements",
            lambda: OPS.max_unpool(Y.to("meta"), INDICES.to("meta"), [2**40] * 2),
        ),
        (
            TypeError,
            "input: expected a torch.Tensor, got NoneType",
            lambda: OPS.max_unpool(None, INDICES, [4, 4]),
        ),
        (
            TypeError,
            "input: expected a tensor of one shape, got a nested one",
            lambda: ft.max_pool2d(torch.nested.as_nested_tensor([X[0]], layout=torch.jagged), 2),
        ),
        (
            ValueError,
            "input: expected 3 axes, or 4 with a batch, got",
            lambda: torch.vmap(lambda x: ft.max_pool2d(x, 2))(X[0, 0]),
        ),
        (
            TypeError,
            "input: expected a strided tensor, got .*sparse_coo",
            lambda: torch.vmap(lambda x: ft.max_pool2d(x, 2))(X.to_sparse()),
        ),
        (
            ValueError,
            f"kernel_size: expected ints of at most {2**63 - 1}, got {2**70}",
            lambda: ft.max_pool2d(X, 2**70),
        ),
    ],
)
def test_errors_of_operators(error, message, call):
    with pytest.raises(error, match=f"^{message}"):
        call()
