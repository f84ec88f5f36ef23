"""The frame of the kernels serves another reduction, and axes that are irregular.

external/counting/ is compiled with kernels/frame/ and without kernels/maximum/. It counts elements
that are not 0, so an element that is taken twice or left out changes the result.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import fastpool
from callers import ROOT, build, load, needs_compiler
from fastpool._planning.geometry import AdaptiveAxis
from fastpool._running.passes import trimmed
from fastpool._running.work import make_work

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


def taps(window):
    """The elements of each output of a window."""
    if window.places:
        size, outs, rest = window.places
        ends = (((o * size + rest) // outs, -((-(o + 1) * size - rest) // outs)) for o in range(window.out))
        return [range(*end) for end in ends]
    starts = (o * window.stride - window.begin for o in range(window.out))
    return [
        [e for t in range(window.kernel) if 0 <= (e := start + t * window.dilation) < window.size]
        for start in starts
    ]


def expected_counts(x, windows, axes):
    """Count along one axis after the other."""
    counts = (x != 0).astype(np.int32)
    for window, axis in zip(windows, axes, strict=True):
        parts = [counts.take(list(e), axis).sum(axis, dtype=np.int32) for e in taps(window)]
        counts = np.stack(parts, axis)
    return counts


def adaptive(size, out):
    """The window of adaptive pooling: output o covers size * o / out to size * (o + 1) / out."""
    ends = [(o * size // out, -(-(o + 1) * size // out)) for o in range(out)]
    places = tuple((first, stop - first) for first, stop in ends)
    return Window(size, out, max(n for _, n in places), 1, 1, 0, chain(1, 1), places)


def check(counting, work, windows, axes, seed):
    x = np.random.default_rng(seed).integers(-1, 2, work.input_shape).astype(np.int32)
    compiled = counting.Counting(work)
    expected = expected_counts(x, windows, axes)
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
    windows = [trimmed(axis) for axis in plan.axes]
    work = make_work(plan, windows, shape, plan.output_shape)
    for rows, cols, planes in itertools.product((1, 2), (1, 3, 8), (1, 2)):
        tiled = replace(work, tile=(rows, cols, 2, 1 if layout == "NHWC" else planes))
        check(counting, tiled, windows, plan.spatial, cols)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    "sizes", [((7, 3),), ((10, 7), (9, 4)), ((5, 2), (4, 4), (13, 6))], ids=str
)
def test_irregular_windows(counting, layout, sizes):
    spatial, outs = zip(*sizes, strict=True)
    order = (lambda axes: (2, 3, *axes)) if layout == "NCHW" else (lambda axes: (2, *axes, 3))
    plan = fastpool.plan_max_pool(order(spatial), "int32", 1, layout=layout)
    windows = [adaptive(size, out) for size, out in sizes]
    regular = [trimmed(axis) for axis in plan.axes]
    work = make_work(plan, regular, plan.input_shape, order(outs))
    given = tuple(windows) if len(windows) > 1 else (work.windows[0], *windows)
    for rows, cols in itertools.product((1, 2), (1, 4)):
        tiled = replace(work, windows=given, tile=(rows, cols, 2, 1))
        check(counting, tiled, windows, plan.spatial, cols)
