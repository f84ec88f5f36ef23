"""Plans of recent calls, so that calls that repeat do not plan again."""

import numpy as np

from ._arguments import MOST_AXES
from ._dispatch import call_key

# Calls of one function whose plans are kept.
KEPT_CALLS = 1024

# Kinds of objects that are what they are as long as they exist.
_CONSTANT = (int, float, str, bytes, type(None), type, np.generic, np.dtype)
_SEQUENCES = (list, tuple, np.ndarray)


class Kept:
    """The plans of one function's calls, by the input's shape and dtype and by the other arguments.

    To a dict 2, 2.0 and True are one key, yet only the first is a legal attribute: arguments are
    the same here if they are of the same types too. `find` looks twice. The quick way is a key that
    tells equal ints and identical objects (`_arrays.pxi`), which is nearly all calls; others are
    told by type and value, which costs as much as a small pooling, and that is a tenth of planning.
    """

    def __init__(self, make):
        """``make(shape, dtype, *arguments)`` gives the plan."""
        self._make = make
        self._quick = {}
        self._plans = {}

    def find(self, x, arguments):
        """The plan for an array, made if need be."""
        quick = self._quick.get(call_key(x, arguments))
        return self._find(x, arguments) if quick is None else quick[0]

    def _find(self, x, arguments):
        geometry = x.shape, x.dtype
        try:
            key = geometry, *map(_typed, arguments)
        except TypeError:  # no attribute's value, or an object that may be another number tomorrow
            return self._make(*geometry, *arguments)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._make(*geometry, *arguments)
            _add(self._plans, key, plan)
        quick = call_key(x, arguments)
        if quick is not None and not any(type(a) is np.ndarray for a in arguments):
            # The key holds addresses, which mean something as long as these objects exist.
            frozen = [tuple(a) if type(a) is list else a for a in arguments]
            _add(self._quick, quick, (plan, geometry, frozen))
        return plan


def _add(plans, key, plan):
    if len(plans) >= KEPT_CALLS:
        plans.clear()
    plans[key] = plan


def _typed(argument):
    kind = type(argument)
    if kind in _SEQUENCES:
        if len(argument) > 2 * MOST_AXES:  # no legal one is longer, and a key would hold them all
            raise TypeError
        return kind, *map(_typed_number, argument)
    return _typed_number(argument)


def _typed_number(argument):
    if not isinstance(argument, _CONSTANT):
        raise TypeError
    return type(argument), argument
