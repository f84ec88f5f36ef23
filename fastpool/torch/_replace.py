"""Models whose pooling modules become fastpool's."""

from dataclasses import dataclass

from torch import nn

from . import _modules

_OURS = {
    getattr(nn, name): getattr(_modules, name)
    for kind in ("MaxPool", "MaxUnpool")
    for name in (f"{kind}1d", f"{kind}2d", f"{kind}3d")
}


@dataclass(frozen=True)
class Replaced:
    """What :func:`replace_pooling` did, by the names that modules have in their model.

    Attributes
    ----------
    swapped : dict of str to str
        The modules that are fastpool's now, as they print.
    left : dict of str to str
        Pooling modules that are as they were, and why.
    """

    swapped: dict
    left: dict

    def __str__(self):
        lines = [f"{len(self.swapped)} swapped, {len(self.left)} left"]
        lines += [f"  {name or '(model)'}: {what}" for name, what in self.swapped.items()]
        lines += [f"  {name or '(model)'}: left, {why}" for name, why in self.left.items()]
        return "\n".join(lines)


def replace_pooling(model):
    """Let a model's max pooling and unpooling modules be computed by fastpool, in place.

    Each module of torch.nn's six classes becomes one of :mod:`fastpool.torch`'s and stays the same
    object: with its hooks, its training flag and whatever refers to it. Subclasses, which may do
    something else, are left alone, and so is a module with a forward of its own. Functions that a
    forward calls cannot be seen.

    Parameters
    ----------
    model : torch.nn.Module
        Or a pooling module itself.

    Returns
    -------
    replaced : Replaced
        The names of the modules swapped and of those left.

    Raises
    ------
    TypeError
        `model` is no module.

    Examples
    --------
    >>> import torch
    >>> import fastpool.torch
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.MaxPool2d(2))
    >>> print(fastpool.torch.replace_pooling(model))
    1 swapped, 0 left
      1: MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
    >>> type(model[1])
    <class 'fastpool.torch.MaxPool2d'>
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: expected a torch.nn.Module, got {type(model).__name__}")
    swapped, left = {}, {}
    theirs, ours = tuple(_OURS), tuple(_OURS.values())
    found = [
        (name, module, type(module))
        for name, module in model.named_modules(remove_duplicate=False)  # some have two names
        if isinstance(module, theirs) and not isinstance(module, ours)
    ]
    for name, module, kind in found:
        if kind not in _OURS:
            left[name] = f"is a {kind.__module__}.{kind.__qualname__}"
        elif "forward" in vars(module):
            left[name] = "has a forward of its own"
        else:
            module.__class__ = _OURS[kind]
            swapped[name] = repr(module)
    return Replaced(swapped, left)
