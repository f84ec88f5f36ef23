"""Define torch operators: kernels on CPU tensors, fake kernels and vmap.

`Pooling` makes those of a pooling, of which _poolings.py has the table. Unpooling takes two tensors
and has functions of its own. All use `torch.library.define`, not `custom_op`, which adds a quarter
to the time of a call through the dispatcher. Attributes have one value per spatial axis.
"""

import math

import torch
from torch.autograd import forward_ad

from .._planning import arguments
from .._planning.values import shown
from .._plans import make_unpool_plan
from .._running import threads
from .._running.interop import bfloat16
from .._running.plan_cache import MOST_CALLS, PlanCache, knows_tensors, tensor_key
from ._windows import (
    check_kind,
    check_rank,
    is_channels_last,
    memory_format,
    per_axis,
    spatial_rank,
)

_TAGS = (torch.Tag.pt2_compliant_tag,)

torch.library.define(
    "fastpool::max_unpool",
    "(Tensor input, Tensor indices, SymInt[] output_size) -> Tensor",
    tags=_TAGS,
)
max_unpool = torch.ops.fastpool.max_unpool.default

_DTYPES = frozenset(getattr(torch, name) for name in arguments.DTYPES)
_OF_NUMPY = _DTYPES - {torch.bfloat16}
_MOST_ELEMENTS = 2**59

# What torch says of itself and of tensors. Looking up their names takes a tenth of a small pooling.
_is_compiling = torch.compiler.is_compiling
is_tracing = torch._C._is_tracing
_count_modes = torch._C._len_torch_dispatch_stack
_is_transforming = torch._C._are_functorch_transforms_active
_is_functional = torch._is_functional_tensor
_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
# torch's functions for other libraries, from torch 2.13 on; else NumPy's views are read.
_EXCHANGE = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
if not knows_tensors(_EXCHANGE):
    _EXCHANGE = None
_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
_TO_LAST = {2: (0, 2, 3, 1), 3: (0, 2, 3, 4, 1)}
_TO_FIRST = {2: (0, 3, 1, 2), 3: (0, 4, 1, 2, 3)}

# torch.set_num_threads limits the default, also if torch uses another OpenMP library.
threads.limits.append(torch.get_num_threads)


# -------------------------------------------------------------------------------------- tensors


def _check_tensor(tensor, name, devices=("cpu",)):
    check_kind(tensor, name)
    if tensor.device.type not in devices:
        raise TypeError(f"{name}: expected a tensor on the CPU, got one on {tensor.device}")
    if tensor.dtype not in _DTYPES:
        names = ", ".join(arguments.DTYPES)
        raise TypeError(f"{name}: expected one of {names}, got {tensor.dtype}")
    if tensor.layout is not torch.strided:
        raise TypeError(f"{name}: expected a strided tensor, got layout {tensor.layout}")


def _check_indices(input, indices):
    if indices.dtype is not torch.int64:
        raise TypeError(f"indices: expected dtype torch.int64, got {indices.dtype}")
    if indices.shape != input.shape:
        raise ValueError(
            f"indices: expected the shape of input {tuple(input.shape)}, got {tuple(indices.shape)}"
        )


def is_eager(*tensors):
    """Would the dispatcher only call a kernel, after autograd, with no mode, trace or transform?

    Skipping the dispatcher saves several times the time of a small pooling.
    """
    if is_traced() or _count_modes() or _is_transforming() or forward_ad._current_level >= 0:
        return False
    for tensor in tensors:
        if type(tensor) is not torch.Tensor or not tensor.is_cpu or tensor.is_nested:
            return False
        # Tensors of functionalize, and those that a transform has left, have no memory.
        if _is_functional(tensor) or _is_wrapped(tensor):
            return False
    return True


def needs_grad(tensor):
    """Must autograd record what is done with an eager tensor?"""
    return tensor.requires_grad and torch.is_grad_enabled()


def is_traced():
    """Is torch tracing a graph of operators, without computing?"""
    return _is_compiling() or is_tracing()


def _array(tensor, name, channels_last, rank):
    """Return an array over a tensor's memory, with channels last if they are last in memory."""
    array = None
    if tensor.dtype in _OF_NUMPY and not tensor.requires_grad:
        try:
            array = tensor.numpy()
        except (RuntimeError, TypeError):  # flagged as negative or zero, or sparse
            pass
    if array is None:
        _check_tensor(tensor, name)
        if tensor.dtype is torch.bfloat16:
            bits = tensor.detach().resolve_neg().view(torch.int16)
            array = bits.numpy(force=True).view(bfloat16(name))
        else:
            array = tensor.numpy(force=True)
    return array.transpose(_TO_LAST[rank]) if channels_last else array


def _tensor(array, channels_last, rank):
    """Return the array as a tensor, channels first."""
    if channels_last:
        array = array.transpose(_TO_FIRST[rank])
    if array.dtype.kind == "V":  # bfloat16, for NumPy a type of raw bytes
        tensor = torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    else:
        tensor = torch.from_numpy(array)
    if array.size == 0:  # NumPy's strides are 0 then
        return torch.empty_like(tensor, memory_format=memory_format(channels_last, rank))
    return tensor


def _channels_first(results, rank):
    """Return a tensor whose channels are last, or each of two, with axes in torch's order."""
    # (The function takes a microsecond less than the method.)
    if type(results) is tuple:
        return tuple(torch.permute(result, _TO_FIRST[rank]) for result in results)
    return torch.permute(results, _TO_FIRST[rank])


def _layout(shape, rank, channels_last):
    batch = "N" * (len(shape) == rank + 2)
    return batch + (_SPATIAL[rank] + "C" if channels_last else "C" + _SPATIAL[rank])


# ------------------------------------------------------------------------------------- poolings


class Pooling:
    """A pooling, and its operators ``fastpool::NAME`` and ``fastpool::NAME_with_indices``.

    Parameters
    ----------
    name : str
    attributes : str
        The operators' arguments after the input. The first has one value per spatial axis.
    resolve : callable
        ``resolve(sizes, *attributes)`` returns attributes with one value per axis and the spatial
        extents of the result, from attributes in any of torch's forms.
    make_plan : callable
        ``make_plan(shape, dtype, layout, sizes, outputs, attributes, return_indices)`` returns the
        plan of an array. `outputs` and `attributes` are what `resolve` returns.
    has_indices : bool
        Whether there is an operator with indices.
    types : tuple of str
        The element types that it takes.

    Attributes
    ----------
    values, with_indices : torch._ops.OpOverload
        The operators. `with_indices` is None if there is none.
    resolve : callable
    """

    def __init__(
        self, name, attributes, resolve, make_plan, has_indices=False, types=arguments.DTYPES
    ):
        self.resolve = resolve
        self._types = types
        self._make_plan = make_plan
        self._calls = {}  # key of a call -> function, whether channels are last, what the key names
        self._plans = PlanCache(self._plan, shortcuts=self._calls)
        self._first = attributes.split(",")[0].split()[-1]
        self.values = self._define(name, attributes, False)
        self.with_indices = None
        if has_indices:
            self.with_indices = self._define(f"{name}_with_indices", attributes, True)

    def run(self, rank, input, attributes, return_indices=False):
        """Pool a CPU tensor. Attributes may have any of torch's forms."""
        if type(attributes[0]) is torch.Size:  # by `x.shape[2:]`; plans are kept for exact tuples
            attributes = tuple(attributes[0]), *attributes[1:]
        key = None
        if _EXCHANGE is not None and not input.is_neg():
            key = tensor_key(_EXCHANGE, input, (rank, return_indices, *attributes))
            call = self._calls.get(key)
            if call is not None:
                run, last, *_ = call
                results = run(_EXCHANGE, input, last)
                if results is not None:
                    return _channels_first(results, rank) if last else results
        last = is_channels_last(input, rank)
        x = _array(input, "input", last, rank)
        plan = self._plans.find(x, (rank, last, return_indices, *attributes))
        results = plan(x)
        if key is not None:
            self._keep(key, plan, last, attributes)
        if return_indices:
            y, indices = results
            return _tensor(y, last, rank), _tensor(indices, last, rank)
        return _tensor(results, last, rank)

    def _keep(self, key, plan, last, attributes):
        """Keep a plan for calls of the same key, if compiled code runs it."""
        prepared = getattr(plan, "_prepared", None)
        run = getattr(getattr(prepared, "pooling", None), "run_tensor", None)
        if run is None or 0 in plan.output_shape:
            return
        if len(self._calls) >= MOST_CALLS:
            self._calls.clear()
        self._calls[key] = run, last, plan, attributes  # a key holds addresses of attributes

    def check_type(self, name):
        """Raise unless the pooling takes elements of this type."""
        if name not in self._types:
            raise TypeError(f"input: expected one of {', '.join(self._types)}, got torch.{name}")

    def _plan(self, shape, dtype, rank, last, return_indices, *attributes):
        check_rank(shape, rank)
        self.check_type(arguments.dtype_name(dtype))
        sizes = shape[1:-1] if last else shape[-rank:]
        attributes, outputs = self.resolve(sizes, *attributes)
        outer = (shape[0], shape[-1]) if last else shape[:-rank]
        _check_size((*outer, *outputs), outputs, self._first)
        layout = _layout(shape, rank, last)
        return self._make_plan(shape, dtype, layout, sizes, outputs, attributes, return_indices)

    def _define(self, name, attributes, return_indices):
        """Return a new operator."""
        returns = "(Tensor, Tensor)" if return_indices else "Tensor"
        name = f"fastpool::{name}"
        torch.library.define(name, f"(Tensor input, {attributes}) -> {returns}", tags=_TAGS)
        operator = getattr(torch.ops.fastpool, name.removeprefix("fastpool::")).default

        @_kernel(name)
        def _(input, *attributes):
            check_kind(input, "input")
            return self.run(self._rank(attributes), input, attributes, return_indices)

        @torch.library.register_fake(name)
        def _(input, *attributes):
            rank = self._rank(attributes)
            _check_tensor(input, "input", ("cpu", "meta"))
            self.check_type(str(input.dtype).removeprefix("torch."))
            check_rank(input.shape, rank)
            _, outputs = self.resolve(input.shape[-rank:], *attributes)
            y = _fake(input, rank, outputs, self._first)
            if not return_indices:
                return y
            return y, _fake(input, rank, outputs, self._first, torch.int64)

        @torch.library.register_vmap(name)
        def _(info, in_dims, input, *attributes):
            rank = self._rank(attributes)
            results = _mapped(operator, info, in_dims, [input], rank, attributes)
            return results, (0, 0) if return_indices else 0

        return operator

    def _rank(self, attributes):
        return spatial_rank(attributes[0], self._first)


def _kernel(name):
    # Register for all devices, so that `_array` refuses tensors of other ones.
    return torch.library.impl(name, "CompositeExplicitAutograd")


def _check_size(shape, extents, name):
    """Raise if a result of this shape is larger than any memory; extents may be symbols."""
    if all(type(n) is int for n in shape) and math.prod(n or 1 for n in shape) >= _MOST_ELEMENTS:
        raise ValueError(
            f"{name}: expected a result of less than 2^59 elements, got {shown(list(extents))}"
        )


def _fake(input, rank, extents, name, dtype=None):
    """Return a tensor for results; `name` is the argument that says how large it is."""
    shape = *input.shape[:-rank], *extents
    _check_size(shape, extents, name)
    return torch.empty(
        shape,
        dtype=dtype or input.dtype,
        device=input.device,
        memory_format=memory_format(is_channels_last(input, rank), rank),
    )


def _mapped(op, info, in_dims, tensors, rank, attributes):
    """Run on tensors with one more axis in front, as a batch."""
    for tensor, what in zip(tensors, ("input", "indices"), strict=False):
        _check_tensor(tensor, what, ("cpu", "meta"))
    tensors = [
        _front(tensor, axis, info.batch_size)
        for tensor, axis in zip(tensors, in_dims, strict=False)
    ]
    check_rank(tensors[0].shape[1:], rank)
    if len(tensors) == 2:
        _check_indices(*tensors)
    outer = tensors[0].shape[: -1 - rank]
    results = op(*[tensor.flatten(0, len(outer) - 1) for tensor in tensors], *attributes)
    if isinstance(results, tuple):
        return tuple(result.unflatten(0, outer) for result in results)
    return results.unflatten(0, outer)


def _front(tensor, axis, size):
    """Return the tensor with the mapped axis first."""
    return tensor.expand(size, *tensor.shape) if axis is None else tensor.movedim(axis, 0)


# ------------------------------------------------------------------------------------- unpooling


def unpool(rank, input, indices, output_size):
    """Unpool CPU tensors into these spatial extents."""
    _check_indices(input, indices)
    last = is_channels_last(input, rank)
    x, places = _array(input, "input", last, rank), _array(indices, "indices", last, rank)
    plan = _unpool_plans.find(x, (rank, last, output_size))
    return _tensor(plan(x, places), last, rank)


def _plan_unpool(shape, dtype, rank, last, output_size):
    check_rank(shape, rank)
    output_size = per_axis(output_size, "output_size", rank, 1)
    if last:
        output_shape = (shape[0], *output_size, shape[-1])
    else:
        output_shape = (*shape[:-rank], *output_size)
    return make_unpool_plan(
        shape,
        1,
        output_shape=output_shape,
        layout=_layout(shape, rank, last),
        index_axis=-rank,
    )


_unpool_plans = PlanCache(_plan_unpool)


@_kernel("fastpool::max_unpool")
def _(input, indices, output_size):
    check_kind(input, "input")
    check_kind(indices, "indices")
    return unpool(spatial_rank(output_size, "output_size"), input, indices, output_size)


@torch.library.register_fake("fastpool::max_unpool")
def _(input, indices, output_size):
    for tensor, name in ((input, "input"), (indices, "indices")):
        _check_tensor(tensor, name, ("cpu", "meta"))
    _check_indices(input, indices)
    rank = spatial_rank(output_size, "output_size")
    output_size = per_axis(output_size, "output_size", rank, 1)
    check_rank(input.shape, rank)
    return _fake(input, rank, output_size, "output_size")


@torch.library.register_vmap("fastpool::max_unpool")
def _(info, in_dims, input, indices, output_size):
    rank = spatial_rank(output_size, "output_size")
    return _mapped(max_unpool, info, in_dims, [input, indices], rank, [output_size]), 0
