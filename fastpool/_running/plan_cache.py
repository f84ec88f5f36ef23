"""Cache the plans of recent calls, so that repeated calls do not plan again.

What all caches of the process keep stays below one limit in bytes. A cache counts its plans by the
number of their axes. A plan adds its tables, if they are large, when it is prepared.
"""

import os
import weakref
from itertools import islice

import numpy as np

from .._planning.arguments import dtype_name
from .._planning.dtypes import DTYPES, NAMES, is_float
from .._planning.values import MOST_AXES, as_count
from . import builds
from .builds import call_key, knows_tensors, tensor_key  # noqa: F401 (for torch)
from .forks import has_forked, renew_in_child

# Limit for the keys of one cache that name objects.
MOST_CALLS = 1024
# What a plan takes at most: compiled objects, fields and keys, and as much for each axis. Measured
# by test_memory.py. A key that names objects keeps these.
PLAN_BYTES, AXIS_BYTES, KEY_BYTES = 12 << 10, 4 << 10, 2 << 10
# Plans of parts of arrays that a plan of an Lp pooling keeps at most.
MOST_PART_PLANS = 8
# The limit, unless FASTPOOL_PLAN_CACHE_LIMIT names another.
USUAL_LIMIT = 64 << 20

# Immutable types: safe as parts of a cache key. Types are compared exactly, because a subclass may
# be mutable. The values tell the floats: -0.0 equals 0.0, but differs from it as the parameter of
# an activation. Types as keys are found by identity, without a lock (forks.py says why it matters).
_CONSTANT = dict.fromkeys((bool, int, str, bytes, type(None), np.str_, np.bytes_), False)
_CONSTANT |= {type(dtype): False for dtype in NAMES} | {float: True}
_CONSTANT |= {dtype.type: is_float(name) for dtype, name in NAMES.items()}
_DTYPE_CLASS = type(np.dtype)
# Longer sequences are no valid attribute, and a key would copy them.
_LONGEST = 2 * MOST_AXES


_caches = {}  # all: identity -> weak reference


def _first_limit():
    text = os.environ.get("FASTPOOL_PLAN_CACHE_LIMIT", "").strip()
    if not text:
        return USUAL_LIMIT
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        builds.refuse(
            f"FASTPOOL_PLAN_CACHE_LIMIT={text!r}: expected a whole number of bytes, like 67108864"
        )
    return int(text)


_limit = [_first_limit()]


def set_plan_cache_limit(nbytes):
    """Limit the memory that fastpool keeps between calls, so that repeated calls do not plan again.

    The limit is that of the process: of functions, front ends and threads together. If the plans of
    recent calls take more, those of the functions that keep the most are forgotten. Plans that you
    hold yourself do not count.

    Parameters
    ----------
    nbytes : int
        Bytes, at least 0. 0 keeps no plan: every call plans again, which takes some hundred
        microseconds. The default is 64 MiB, or what the environment variable
        ``FASTPOOL_PLAN_CACHE_LIMIT`` says when fastpool is imported. If it is no number of bytes,
        the import is an ImportError.

    Returns
    -------
    before : int
        The limit until now.

    Raises
    ------
    TypeError
        `nbytes` is no int.
    ValueError
        `nbytes` is negative.

    Examples
    --------
    >>> import fastpool
    >>> fastpool.set_plan_cache_limit(16 << 20)
    67108864
    >>> fastpool.set_plan_cache_limit(64 << 20)
    16777216
    """
    before, _limit[0] = _limit[0], as_count(nbytes, "nbytes", 0)
    keep_within_limit()
    return before


def plan_cache_limit():
    """Return the limit in bytes."""
    return _limit[0]


def plan_cache_bytes():
    """Return the bytes that all caches keep, estimated from above."""
    return sum(cache.nbytes for cache in _living())


def register(cache):
    """Let an object be one of the caches, with `nbytes`, `clear` and `forget`."""
    me = id(cache)
    _caches[me] = weakref.ref(cache, lambda _: _caches.pop(me, None))


def plan_bytes(axes):
    """Return what a plan of an array takes at most."""
    return PLAN_BYTES + AXIS_BYTES * axes


def _living():
    """Return all caches."""
    caches = [reference() for reference in _caches.copy().values()]
    return [cache for cache in caches if cache is not None]


def keep_within_limit():
    """Forget plans until the rest takes no more than the limit."""
    caches = _living()
    while sum(cache.nbytes for cache in caches) > _limit[0]:
        most = max(caches, key=lambda cache: cache.nbytes)
        if not most.nbytes:
            return
        most.clear()


def _forget_in_child():
    """Replace the dicts: at the fork, another thread of the parent may have held their locks."""
    for cache in _living():
        cache.forget()


renew_in_child(_forget_in_child)


class PlanCache:
    """A cache of one function's plans, by the input's shape and dtype and the other arguments.

    In a dict 1, 1.0 and True are one key, but not one attribute. So arguments match only if their
    types match too. `find` looks up two keys. The quick key compares ints by
    value and other objects by identity (kernels/frame/call_keys.pxi), which covers nearly all
    calls. The other key compares types and values. It costs as much as a small pooling, a tenth of
    planning.
    """

    def __init__(self, make, allowed=DTYPES, shortcuts=None):
        """Set up an empty cache; ``make(shape, dtype, *arguments)`` returns a plan.

        `allowed` are the element types that an array may have. `shortcuts` is a dict whose values
        hold plans of this cache: it is cleared with it.
        """
        self._plan, self._allowed = make, allowed
        self._shortcuts = {} if shortcuts is None else shortcuts
        self.forget()
        register(self)

    @property
    def nbytes(self):
        """The bytes that it keeps, estimated from above."""
        return self._plan_bytes[0] + (len(self.quick) + len(self._shortcuts)) * KEY_BYTES

    def clear(self):
        """Forget all plans."""
        self._plans.clear()
        self.quick.clear()
        self._shortcuts.clear()
        self._plan_bytes[0] = 0

    def forget(self):
        """Forget all plans, in new dicts.

        Nothing else assigns to `self` once it is made: a child made by fork hangs here if another
        thread of its parent had the lock of `self` (CPython 3.13 without the GIL).
        """
        self.quick = {}
        self._plans = {}
        self._plan_bytes = [0]  # of these plans; may be too low, as no lock guards it

    def find(self, x, arguments):
        """Return the plan for an array; make it if it is not cached.

        The public functions look into `quick` before they call this method. What that saves is what
        their hidden argument for unknown words costs (_planning/words.py).
        """
        quick = self.quick.get(call_key(x, arguments))
        return self._find(x, arguments) if quick is None else quick[0]

    def _find(self, x, arguments):
        # Read everything once, because another thread may change it. A plan cached under the key of
        # other arguments would be wrong for every later call.
        geometry = x.shape, x.dtype
        try:
            arguments = tuple(map(_own, arguments))
            key = geometry, *map(_typed, arguments)
            _refuse_metadata(geometry[1])
        except TypeError:  # not a valid attribute, or a mutable object
            return self._make(geometry, arguments)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._make(geometry, arguments)
            self._plans[key] = plan
            if count_tables := getattr(plan, "_count_tables_in", None):
                count_tables(self._plan_bytes)
            parts = getattr(plan, "_most_parts", 1)
            self._plan_bytes[0] += parts * plan_bytes(len(geometry[0]))
        if not any(type(a) is np.ndarray for a in arguments):
            like_x = np.broadcast_to(np.empty((), geometry[1]), geometry[0])
            quick = call_key(like_x, arguments)
            if quick is not None:
                # The key holds addresses, which are valid only while these objects exist.
                if len(self.quick) >= MOST_CALLS:
                    self.quick.clear()
                self.quick[quick] = plan, geometry, arguments
        keep_within_limit()
        return plan

    def _make(self, geometry, arguments):
        """Return a new plan. An error of the element type names the array."""
        dtype_name(geometry[1], "x", self._allowed)
        return self._plan(*geometry, *arguments)


def _own(argument):
    """Return a copy of a list or array, any other argument itself; TypeError if it is too long."""
    if type(argument) is list:
        # An atomic copy, safe from other threads. In a child made by fork, a thread that does not
        # exist may hold the list's lock, so it is read without (CPython 3.13 without the GIL).
        count = _LONGEST + 1
        values = list(islice(argument, count)) if has_forked() else argument[:count]
        if len(values) > _LONGEST:
            raise TypeError
        return values
    if type(argument) is np.ndarray:
        if argument.size > _LONGEST:
            raise TypeError
        return argument.copy()
    return argument


def _typed(argument):
    kind = type(argument)
    if kind is list or kind is tuple or kind is np.ndarray:
        if len(argument) > _LONGEST:
            raise TypeError
        return kind, *map(_typed_constant, argument)
    return _typed_constant(argument)


def _refuse_metadata(dtype):
    """Raise TypeError for a dtype object that holds other objects, of any size."""
    if dtype.metadata is not None:
        raise TypeError


def _typed_constant(argument):
    kind = type(argument)
    if kind is type and argument in _CONSTANT:  # np.int64 instead of "int64"
        return kind, argument
    # Another metaclass may override equality of its classes.
    known = (type(kind) is type or type(kind) is _DTYPE_CLASS) and kind in _CONSTANT
    if not known:
        raise TypeError
    if type(kind) is _DTYPE_CLASS:
        _refuse_metadata(argument)
    return kind, repr(argument) if _CONSTANT[kind] else argument
