"""Know whether a fork made this process, and remember results so that such a child can go on.

Only the thread that forks exists in the child. Without the GIL, dicts, sets and caches of functools
have locks. If another thread held one at the fork, the child would wait for it without end (CPython
3.13 to 3.15). So the child starts with new ones. Tables that no thread changes are read without a
lock: by subscripts and `in`, with keys that are str or found by identity. `get`, sets, and equal
keys that another thread made take the lock (CPython 3.13).
"""

import functools
import os
import sys

HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
_forked = False


def has_forked():
    """Return whether a fork made this process: threads of its parent, OpenMP's too, are missing."""
    return _forked


def _after_fork_in_child():
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def renew_in_child(renew):
    """Call `renew` in every child made by fork, if this Python has no GIL."""
    if hasattr(os, "register_at_fork") and not HAS_GIL:
        os.register_at_fork(after_in_child=renew)


def remember(most):
    """Return a decorator that keeps up to `most` results of a function.

    Arguments of different types are different. Without the GIL, one result more forgets all.
    """
    return functools.lru_cache(most, typed=True) if HAS_GIL else functools.partial(Remembered, most)


class Remembered:
    """A function that keeps its results, for Pythons without the GIL."""

    def __init__(self, most, function):
        self._most, self._function = most, function
        self._forget()
        renew_in_child(self._forget)

    def __call__(self, *arguments):
        """Call the function, unless its result is known."""
        results = self._results
        key = arguments, *map(type, arguments)
        try:
            return results[key]
        except KeyError:
            result = self._function(*arguments)
        if len(results) >= self._most:
            results.clear()
        results[key] = result
        return result

    def _forget(self):
        # A child hangs here if another thread had the lock of `self`: so none assigns to it later.
        # (Nor is it a variable of a closure, which Python locks when it is read.)
        self._results = {}
