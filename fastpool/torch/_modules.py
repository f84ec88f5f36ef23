"""torch's pooling modules, with fastpool's functions in their forward.

Each is a subclass of torch's module and keeps its signature, attributes and (empty) state. It has
an attribute for each parameter of its function, of the same name. Its repr is torch's, and then has
the other parameters that are not defaults.

If its attribute `select` is "faster", it runs as torch's module where that was measured to be as
fast: in graphs of torch.compile with short windows, of which inductor, torch's compiler, makes one
loop with what is next to it, and for means of short windows of channels_last tensors.
"""

from functools import partial
from inspect import signature
from math import prod
from types import new_class

import torch
from torch import nn

from . import _functions as F
from ._windows import is_channels_last

_MEANS = tuple(
    getattr(nn, f"{kind}{rank}d") for kind in ("AvgPool", "AdaptiveAvgPool") for rank in (1, 2, 3)
)

# Elements of the largest window that inductor compiles. It calls torch's kernels for larger ones.
_FUSED = 25

# Elements of the largest window of which torch takes means as fast, if channels are last in memory.
_SHORT_MEAN = 9


def _is_left_to_torch(module, rank, input):
    if module.select != "faster" or not _has_floats(input):
        return False
    if torch.compiler.is_compiling():
        return not torch.compiler.is_exporting() and _taps(module, rank) <= _FUSED
    if isinstance(module, _MEANS) and _taps(module, rank) <= _SHORT_MEAN:
        return is_channels_last(input, rank)
    return False


def _has_floats(input):
    """Is it a tensor of floats? torch has kernels for few integers, which differ by operator."""
    return isinstance(input, torch.Tensor) and input.is_floating_point()


def _taps(module, rank):
    """Return the elements of a window; 1 for adaptive modules."""
    taps = getattr(module, "kernel_size", 1)
    return taps**rank if isinstance(taps, int) else prod(taps)


def _pools(kind, function):
    """Return the modules of a kind of pooling, for one, two and three spatial axes."""

    def calling(call, theirs, rank):
        defaults = {name: p.default for name, p in signature(call).parameters.items()}
        del defaults["input"]
        names = [name for name in defaults if name != "numerics"]

        def forward(self, input):
            if _is_left_to_torch(self, rank, input):
                return theirs.forward(self, input)
            return call(input, *[getattr(self, name) for name in names])

        def forward_with_numerics(self, input):
            if _is_left_to_torch(self, rank, input):
                return theirs.forward(self, input)
            attributes = [getattr(self, name) for name in names]
            return call(input, *attributes, numerics=self.numerics)

        def extra_repr(self):
            text = theirs.extra_repr(self)
            for name, default in defaults.items():
                value = getattr(self, name)
                if f"{name}=" not in text and value != default:
                    text += f", {name}={value!r}"
            return text

        members = {"forward": forward, "extra_repr": extra_repr}
        if "numerics" in defaults:
            # torch's modules have no such attribute, and may become fastpool's.
            members |= {"forward": forward_with_numerics, "numerics": "pairwise"}
        return members

    return _made(kind, function, calling)


def _unpools(kind, function):
    """Return the modules of a kind of unpooling, for one, two and three spatial axes."""

    def calling(call, theirs, rank):
        def forward(self, input, indices, output_size=None):
            if _is_left_to_torch(self, rank, input):
                return theirs.forward(self, input, indices, output_size)
            window = self.kernel_size, self.stride, self.padding
            return call(input, indices, *window, output_size)

        # What torch.jit.script takes as parts of the type: it refuses them as attributes.
        return {"forward": forward, "__constants__": ["kernel_size", "stride", "padding"]}

    return _made(kind, function, calling)


def _made(kind, function, calling):
    for rank in (1, 2, 3):
        name, called = f"{kind}{rank}d", f"{function}{rank}d"
        theirs, call = getattr(nn, name), getattr(F, called)
        doc = f"A :class:`torch.nn.{name}` that calls :func:`{called}`."
        members = {"__doc__": doc, "__module__": __name__, "select": "all"}
        members |= calling(call, theirs, rank)
        # torch.jit.script compiles the source of what this wraps: a call of a function of F, a name
        # that it looks up in this file.
        members["forward"].__wrapped__ = theirs.forward
        # (`type` takes no base that stands for a class, as those do that the docs are built with)
        yield new_class(name, (theirs,), exec_body=partial(dict.update, **members))


MaxPool1d, MaxPool2d, MaxPool3d = _pools("MaxPool", "max_pool")
AvgPool1d, AvgPool2d, AvgPool3d = _pools("AvgPool", "avg_pool")
LPPool1d, LPPool2d, LPPool3d = _pools("LPPool", "lp_pool")
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = _pools(
    "AdaptiveAvgPool", "adaptive_avg_pool"
)
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = _pools(
    "AdaptiveMaxPool", "adaptive_max_pool"
)
MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = _unpools("MaxUnpool", "max_unpool")
