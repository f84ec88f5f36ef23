"""The frame of the kernels serves another reduction, and axes that are irregular.

external/counting/ is compiled with kernels/frame/ and without kernels/maximum/. It counts elements
that are not 0, so an element that is taken twice or left out changes the result.
"""

import itertools

import numpy as np
import pytest

import fastpool
from callers import ROOT, build, load, needs_compiler
from fastpool._planning.geometry import AdaptiveAxis
from fastpool._running.work import make_work, problem_of

SOURCE = ROOT / "fastpool"

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(not (SOURCE / "kernels").is_dir(), reason="wheels hold no sources"),
]


@pytest.fixture(scope="module")
def counting(tmp_path_factory):
    pytest.importorskip("Cython")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FASTPOOL_SOURCE", str(SOURCE))
        folder = tmp_path_factory.mktemp("external") / "counting"
        return load(build("counting", folder, "-O1")[0]["counting"])


def taps(axis):
    """The elements of each output of an axis."""
    if isinstance(axis, AdaptiveAxis):
        return [range(*axis.window(output)) for output in range(axis.output)]
    starts = (o * axis.stride - axis.begin for o in range(axis.output))
    return [
        [e for t in range(axis.kernel) if 0 <= (e := start + t * axis.dilation) < axis.size]
        for start in starts
    ]


def expected_counts(x, axes, places):
    """Count along one axis after the other."""
    counts = (x != 0).astype(np.int32)
    for axis, place in zip(axes, places, strict=True):
        parts = [counts.take(list(e), place).sum(place, dtype=np.int32) for e in taps(axis)]
        counts = np.stack(parts, place)
    return counts


def check(counting, work, plan, seed):
    x = np.random.default_rng(seed).integers(-1, 2, work.input_shape).astype(np.int32)
    compiled = counting.Counting(work)
    expected = expected_counts(x, plan.axes, plan.spatial)
    assert compiled.tasks > 1
    for threads in (1, 2, 7):
        y = np.full(work.output_shape, 77, np.int32)
        assert compiled.run(x, y, threads)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("spatial", [(19,), (9, 40), (5, 6, 11)], ids=str)
@pytest.mark.parametrize("attributes", [(3, 2, 1, 1), (4, 1, 2, 1), (3, 3, 2, 2)], ids=str)
def test_windows(counting, layout, spatial, attributes):
    kernel, stride, pads, dilation = attributes
    shape = (2, 3, *spatial) if layout == "NCHW" else (2, *spatial, 3)
    more = {"strides": stride, "pads": pads, "dilations": dilation, "layout": layout}
    plan = fastpool.plan_max_pool(shape, "int32", kernel, ceil_mode=True, **more)
    work = make_work(problem_of(plan))
    for rows, cols, planes in itertools.product((1, 2), (1, 3, 8), (1, 2)):
        tiled = work._replace(tile=(rows, cols, 2, 1 if layout == "NHWC" else planes))
        check(counting, tiled, plan, cols)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    "sizes", [((7, 3),), ((10, 7), (9, 4)), ((5, 2), (4, 4), (13, 6))], ids=str
)
def test_irregular_windows(counting, layout, sizes):
    spatial, outs = zip(*sizes, strict=True)
    shape = (2, 3, *spatial) if layout == "NCHW" else (2, *spatial, 3)
    plan = fastpool.plan_adaptive_max_pool(shape, "int32", outs, layout=layout)
    part = plan.tile((slice(None), slice(None), slice(1, None)))
    for whole in (plan, part.plan):
        work = make_work(problem_of(whole, copies=False))
        for rows, cols in itertools.product((1, 2), (1, 4)):
            check(counting, work._replace(tile=(rows, cols, 2, 1)), whole, cols)
