"""torch's pooling modules, with fastpool's functions in their forward.

Each is a subclass of torch's module and keeps its signature, attributes, repr and (empty) state.
"""

from torch import nn

from . import _functions


class MaxPool1d(nn.MaxPool1d):
    """A :class:`torch.nn.MaxPool1d` that calls :func:`max_pool1d`."""

    def forward(self, input):
        return _functions.max_pool1d(input, *_window(self))


class MaxPool2d(nn.MaxPool2d):
    """A :class:`torch.nn.MaxPool2d` that calls :func:`max_pool2d`.

    Examples
    --------
    >>> import torch
    >>> import fastpool.torch
    >>> pool = fastpool.torch.MaxPool2d(3, stride=2, padding=1)
    >>> pool(torch.zeros(1, 64, 112, 112)).shape
    torch.Size([1, 64, 56, 56])
    """

    def forward(self, input):
        return _functions.max_pool2d(input, *_window(self))


class MaxPool3d(nn.MaxPool3d):
    """A :class:`torch.nn.MaxPool3d` that calls :func:`max_pool3d`."""

    def forward(self, input):
        return _functions.max_pool3d(input, *_window(self))


class MaxUnpool1d(nn.MaxUnpool1d):
    """A :class:`torch.nn.MaxUnpool1d` that calls :func:`max_unpool1d`."""

    def forward(self, input, indices, output_size=None):
        window = self.kernel_size, self.stride, self.padding
        return _functions.max_unpool1d(input, indices, *window, output_size)


class MaxUnpool2d(nn.MaxUnpool2d):
    """A :class:`torch.nn.MaxUnpool2d` that calls :func:`max_unpool2d`."""

    def forward(self, input, indices, output_size=None):
        window = self.kernel_size, self.stride, self.padding
        return _functions.max_unpool2d(input, indices, *window, output_size)


class MaxUnpool3d(nn.MaxUnpool3d):
    """A :class:`torch.nn.MaxUnpool3d` that calls :func:`max_unpool3d`."""

    def forward(self, input, indices, output_size=None):
        window = self.kernel_size, self.stride, self.padding
        return _functions.max_unpool3d(input, indices, *window, output_size)


def _window(pool):
    rounding = pool.ceil_mode, pool.return_indices
    return pool.kernel_size, pool.stride, pool.padding, pool.dilation, *rounding
