"""Plans of recent calls, so that calls that repeat do not plan again."""

import numpy as np

from .._planning.arguments import MOST_AXES
from .._planning.dtypes import DTYPES
from .builds import call_key

# Calls of one function whose plans are kept.
MOST_CALLS = 1024

# Types whose objects never change: two looks at one find the same. Subclasses may change, so types
# are compared exactly.
_DTYPES = [np.dtype(name) for name in DTYPES if name != "bfloat16"]
_CONSTANT = {bool, int, float, str, bytes, type(None), np.str_, np.bytes_}
_CONSTANT |= {kind for dtype in _DTYPES for kind in (dtype.type, type(dtype))}
# By identity: a metaclass says what its classes are equal to.
_CONSTANT = {id(kind): kind for kind in _CONSTANT}
_FLOATS = {id(kind) for kind in (float, np.float16, np.float32, np.float64)}
# Longer sequences are no attribute, and a key would hold them all.
_LONGEST = 2 * MOST_AXES


class PlanCache:
    """The plans of one function's calls, by the input's shape and dtype and by the other arguments.

    To a dict 2, 2.0 and True are one key, yet only the first is a legal attribute: arguments are
    the same here if they are of the same types too. `find` looks twice. The quick way is a key that
    tells equal ints and identical objects (kernels/frame/call_keys.pxi), which is nearly all calls.
    Other arguments are told by type and value, which costs as much as a small pooling: a tenth of
    planning.
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
        # Read everything once, as another thread may change it. A plan kept under the key of other
        # arguments would be wrong for every later call.
        geometry = x.shape, x.dtype
        try:
            arguments = tuple(map(_own, arguments))
            key = geometry, *map(_typed, arguments)
        except TypeError:  # no attribute's value, or an object that may be another number tomorrow
            return self._make(*geometry, *arguments)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._make(*geometry, *arguments)
            _add(self._plans, key, plan)
        if not any(type(a) is np.ndarray for a in arguments):
            like_x = np.broadcast_to(np.empty((), geometry[1]), geometry[0])
            quick = call_key(like_x, arguments)
            if quick is not None:
                # The key holds addresses, which mean something as long as these objects exist.
                _add(self._quick, quick, (plan, geometry, arguments))
        return plan


def _own(argument):
    """A copy of a list or array, any other argument itself; TypeError if it is too long."""
    if type(argument) is list:
        values = argument[: _LONGEST + 1]  # (in one piece, whatever other threads do)
        if len(values) > _LONGEST:
            raise TypeError
        return values
    if type(argument) is np.ndarray:
        if argument.size > _LONGEST:
            raise TypeError
        return argument.copy()
    return argument


def _add(plans, key, plan):
    if len(plans) >= MOST_CALLS:
        plans.clear()
    plans[key] = plan


def _typed(argument):
    kind = type(argument)
    if kind is list or kind is tuple or kind is np.ndarray:
        if len(argument) > _LONGEST:
            raise TypeError
        return kind, *map(_typed_constant, argument)
    return _typed_constant(argument)


def _typed_constant(argument):
    kind = type(argument)
    if kind is type and id(argument) in _CONSTANT:  # np.int64 in the place of "int64"
        return kind, argument
    if id(kind) not in _CONSTANT:
        raise TypeError
    # (-0.0 is equal to 0.0, and as the parameter of an activation it is not the same)
    return kind, repr(argument) if id(kind) in _FLOATS else argument
