"""Replace the pooling modules of a model by fastpool's, and turn back."""

from dataclasses import dataclass

from torch import nn

from .._planning import arguments
from . import _modules

_OURS = {
    getattr(nn, name): getattr(_modules, name)
    for kind in ("MaxPool", "MaxUnpool", "AvgPool", "LPPool", "AdaptiveAvgPool", "AdaptiveMaxPool")
    for name in (f"{kind}1d", f"{kind}2d", f"{kind}3d")
}
_THEIRS = {ours: theirs for theirs, ours in _OURS.items()}


@dataclass(frozen=True)
class Replaced:
    """What :func:`replace_pooling` or :func:`restore_pooling` did, by the names of modules.

    Attributes
    ----------
    swapped : dict of str to str
        The modules that are fastpool's now, or torch's again: name -> repr.
    left : dict of str to str
        Pooling modules that were not changed: name -> reason.
    """

    swapped: dict
    left: dict

    def __str__(self):
        return self.explain()

    def explain(self):
        """Return a text: which modules were swapped, which were left, and why.

        Returns
        -------
        text : str
            A line with the counts, then a line for each.
        """
        lines = [f"{len(self.swapped)} swapped, {len(self.left)} left"]
        lines += [f"  {name or '(model)'}: {what}" for name, what in self.swapped.items()]
        lines += [f"  {name or '(model)'}: left, {why}" for name, why in self.left.items()]
        return "\n".join(lines)


def replace_pooling(model, *, select="faster"):
    """Make fastpool compute a model's pooling and unpooling modules, in place.

    These are torch.nn's max, average, Lp, adaptive max and adaptive average pooling and max
    unpooling. The class of each module is replaced by that of :mod:`fastpool.torch`. The object
    stays, with its hooks, its training flag and all references to it. Modules of an earlier call
    with "faster" change if `select` is "all". Subclasses, which may do something else, are not
    changed, and neither is a module with its own forward. What a forward calls, such as a function
    or ``x.mean``, is not found.

    Parameters
    ----------
    model : torch.nn.Module
        A model, or a pooling module itself.
    select : {"faster", "all", "none"} or function of a module
        Which modules become fastpool's: those that it runs faster, all, none, or those for which
        the function returns a true value. "faster" leaves Lp pooling and adaptive means of whole
        planes to torch. The modules that it swaps have an attribute `select` with this value. They
        run as torch's in graphs that torch.compile makes (except for windows of more than 25
        elements), and for adaptive means and means of up to 9 elements of channels_last tensors.

    Returns
    -------
    replaced : Replaced
        The names of the modules that were swapped and of those left.

    Raises
    ------
    TypeError
        `model` is no module, or `select` is neither a str nor a function.
    ValueError
        `select` has a wrong value.

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
    _check_model(model)
    select = arguments.select(select)
    swapped, left = {}, {}
    ours = tuple(_THEIRS)
    found = [
        (name, module, kind)
        for name, module, kind in _found(model, tuple(_OURS))
        if not (issubclass(kind, ours) and _follows(module, select))
    ]
    for name, module, kind in found:
        if issubclass(kind, ours):
            vars(module).pop("select", None)  # once for all names of a module
            swapped[name] = repr(module)
        elif why := _stays(module, kind, _OURS) or _declines(module, kind, select):
            left[name] = why
        else:
            module.__class__ = _OURS[kind]
            if select == "faster":
                module.select = select
            swapped[name] = repr(module)
    return Replaced(swapped, left)


def restore_pooling(model):
    """Turn the pooling modules of a model into torch's, in place: undo :func:`replace_pooling`.

    The class of each module of :mod:`fastpool.torch` is replaced by that of torch.nn. The object
    stays, with its hooks, its training flag, its attributes and all references to it. Only the
    attributes `select` and `numerics` go, which torch's modules do not have. Modules that the model
    was made with, such as a ``fastpool.torch.MaxPool2d``, become torch's too. Subclasses, which may
    do something else, are not changed, and neither is a module with its own forward.

    Parameters
    ----------
    model : torch.nn.Module
        A model, or a pooling module itself.

    Returns
    -------
    restored : Replaced
        The names of the modules that are torch's again, and of those left.

    Raises
    ------
    TypeError
        `model` is no module.

    Examples
    --------
    >>> import torch
    >>> import fastpool.torch
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.MaxPool2d(2))
    >>> _ = fastpool.torch.replace_pooling(model)
    >>> print(fastpool.torch.restore_pooling(model))
    1 swapped, 0 left
      1: MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
    >>> type(model[1])
    <class 'torch.nn.modules.pooling.MaxPool2d'>
    """
    _check_model(model)
    swapped, left = {}, {}
    for name, module, kind in _found(model, tuple(_THEIRS)):
        if why := _stays(module, kind, _THEIRS):
            left[name] = why
        else:
            module.__class__ = _THEIRS[kind]
            for attribute in ("select", "numerics"):
                vars(module).pop(attribute, None)  # once for all names of a module
            swapped[name] = repr(module)
    return Replaced(swapped, left)


def _check_model(model):
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: expected a torch.nn.Module, got {type(model).__name__}")


def _found(model, kinds):
    """Return the name, the module and the class of each module of these classes."""
    return [
        (name, module, type(module))
        for name, module in model.named_modules(remove_duplicate=False)  # some have two names
        if isinstance(module, kinds)
    ]


def _stays(module, kind, classes):
    """Return why a module cannot become one of another class, or None."""
    if kind not in classes:
        return f"is a {kind.__module__}.{kind.__qualname__}"
    if "forward" in vars(module):
        return "has its own forward"
    return None


def _follows(module, select):
    """Does a module of fastpool run as `select` says? One of an earlier "faster" may not."""
    return select != "all" or "select" not in vars(module)


def _declines(module, kind, select):
    """Return why a module is to stay torch's, or None."""
    if callable(select):
        return None if select(module) else "not selected"
    if select == "none":
        return 'select="none"'
    if select == "faster":
        if kind.__name__.startswith("LPPool"):
            return "torch is faster"
        if kind.__name__.startswith("AdaptiveAvgPool") and _is_one(module.output_size):
            return "torch is faster on means of whole planes"
    return None


def _is_one(size):
    return set(size) == {1} if isinstance(size, tuple) else size == 1
