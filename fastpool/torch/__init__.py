"""Run torch's max pooling and max unpooling with fastpool, on CPU tensors.

The functions are drop-in replacements for `torch.nn.functional`, the modules for `torch.nn`.
:func:`replace_pooling` swaps the modules of a model. All run as the operators
``fastpool::max_pool``, ``fastpool::max_pool_with_indices`` and ``fastpool::max_unpool``, which
autograd, ``torch.compile`` and ``torch.export`` support.

Examples
--------
>>> import torch
>>> import fastpool.torch
>>> x = torch.arange(16.0).reshape(1, 1, 4, 4)
>>> fastpool.torch.max_pool2d(x, 2)
tensor([[[[ 5.,  7.],
          [13., 15.]]]])
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError('fastpool.torch needs torch: pip install "fastpool[torch]"') from None

from ._functions import (
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from ._modules import MaxPool1d, MaxPool2d, MaxPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d
from ._replace import Replaced, replace_pooling

__all__ = [
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "Replaced",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "replace_pooling",
]

for _name in __all__:  # where pickles and tracebacks look for them
    globals()[_name].__module__ = __name__
