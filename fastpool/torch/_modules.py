"""torch's pooling modules, with fastpool's functions in their forward.

Each is a subclass of torch's module and keeps its signature, attributes, repr and (empty) state. It
has an attribute for each parameter of its function, of the same name.
"""

from functools import partial
from inspect import signature
from types import new_class

from torch import nn

from . import _functions


def _pools(kind, function):
    """Return the modules of a kind of pooling, for one, two and three spatial axes."""

    def calling(call):
        names = tuple(signature(call).parameters)[1:]

        def forward(self, input):
            return call(input, **{name: getattr(self, name) for name in names})

        # torch's modules have no such attribute, and may become fastpool's.
        return {"forward": forward} | ({"numerics": "exact"} if "numerics" in names else {})

    return _made(kind, function, calling)


def _unpools(kind, function):
    """Return the modules of a kind of unpooling, for one, two and three spatial axes."""

    def calling(call):
        def forward(self, input, indices, output_size=None):
            window = self.kernel_size, self.stride, self.padding
            return call(input, indices, *window, output_size)

        return {"forward": forward}

    return _made(kind, function, calling)


def _made(kind, function, calling):
    for rank in (1, 2, 3):
        name, called = f"{kind}{rank}d", f"{function}{rank}d"
        theirs, call = getattr(nn, name), getattr(_functions, called)
        doc = f"A :class:`torch.nn.{name}` that calls :func:`{called}`."
        members = {"__doc__": doc, "__module__": __name__, **calling(call)}
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
