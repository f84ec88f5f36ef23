"""Images of a batch with one row of windows each are pooled as one, and planes of one element as
pixels. Neither changes what arrays are taken."""

import itertools

import numpy as np
import pytest

import cases
import fastpool
from fastpool import _reference
from fastpool._running import builds as running

# Shape, layout, window, stride, and whether the images are one.
LAYERS = [
    ((5, 2, 3, 7), "NHWC", (2, 3), 1, True),
    ((5, 3, 4, 20), "NHWC", (3, 2), 2, True),
    ((5, 3, 4, 20), "NHWC", (2, 2), 1, False),
    ((5, 2, 3, 3000), "NHWC", (2, 3), 1, False),
    ((7, 9, 33), "NWC", (4,), 3, True),
    ((6, 40, 1, 1), "NCHW", (1, 1), 2, True),
    ((6, 40, 1, 2), "NCHW", (1, 2), 1, True),  # (windows of a row)
]
FUNCTIONS = {
    "max_pool": {},
    "min_pool": {},
    "avg_pool": {"numerics": "pairwise"},
    "avg_pool exact": {"numerics": "exact"},
    "avg_pool in order": {"numerics": "sequential"},
}


def views(shape, dtype):
    """Arrays of a shape: contiguous, part of wider rows, of more images, and turned around."""
    yield np.empty(shape, dtype)
    yield np.empty((*shape[:-2], shape[-2] + 3, shape[-1]), dtype)[..., : shape[-2], :]
    yield np.empty((2 * shape[0], *shape[1:]), dtype)[::2]
    yield np.empty((shape[0], shape[1] + 1, *shape[2:]), dtype)[:, 1:]
    yield np.empty(shape, dtype)[::-1]
    yield np.empty((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("shape", "layout", "kernel", "strides", "one"), LAYERS)
def test_images_as_one(shape, layout, kernel, strides, one, name, dtype):
    attributes = {"strides": strides, "layout": layout, **FUNCTIONS[name]}
    function = name.split()[0]
    values = np.random.default_rng(7).integers(0, 100, shape).astype(dtype)
    expected = getattr(_reference, function)(values, kernel, **attributes)
    for build, threads in itertools.product(cases.BUILDS, (1, 2)):
        with running.using(build):
            plan = getattr(fastpool, f"plan_{function}")(
                shape, dtype, kernel, num_threads=threads, **attributes
            )
            for x, y in itertools.product(views(shape, dtype), views(expected.shape, dtype)):
                x[...] = values
                y[...] = 77
                plan(x, out=y)
                cases.assert_same(y, expected, f"{build} {x.strides} {y.strides}")
        if "avg" in name:
            assert (plan._prepared_for(x.dtype).work.batch == 1) == one


def test_explain_names_no_axis_of_images_as_one():
    plan = fastpool.plan_avg_pool((32, 2, 2, 8), "float32", 2, layout="NHWC")
    assert "native byte order and contiguous; else one of x" in plan.explain()
