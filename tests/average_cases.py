"""Averages compared with the slow twin, on every build, on 1 and 3 threads."""

import itertools

import numpy as np

import cases
import fastpool
from fastpool import _reference
from fastpool._planning.dtypes import is_float
from fastpool._running import builds as running

# Small windows, and their strides.
SMALL = [((3, 3), 1), ((3, 3), 2), ((2, 2), 1), ((2, 2), 2), ((3, 2), 1), ((1, 3), 1), ((2, 5), 2)]


def numerics_of(dtype, *names):
    """The names of orders of additions, or one that stands for all of them."""
    return names if is_float(np.dtype(dtype).name) else names[:1]


def assert_as_the_twin(x, kernel, attributes):
    """With exact sums, and in pairs, unless the attributes say how."""
    for numerics in numerics_of(x.dtype, "exact", "pairwise"):
        given = {"numerics": numerics, **attributes}
        expected = _reference.avg_pool(x, kernel, **given)
        others = {name: value for name, value in given.items() if name != "dtype"}
        others["result_dtype"] = given.get("dtype")
        for build, threads in itertools.product(cases.BUILDS, (1, 3)):
            with running.using(build):
                plan = fastpool.plan_avg_pool(
                    x.shape, x.dtype, kernel, num_threads=threads, **others
                )
                y = plan(x)
            cases.assert_same(y, expected, f"{build} {x.shape} {x.dtype} {kernel} {given}")
        if "numerics" in attributes:
            return
