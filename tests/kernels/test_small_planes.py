"""Planes that are interleaved, and planes with one window and its index, against the slow twin."""

import itertools
import math
import random

import numpy as np
import pytest

import cases
import fastpool
from fastpool import _reference

COUNTS = [(1, 64), (3, 33), (5, 17), (2, 130)]  # images and channels
INDEXING = [{}, {"index_dtype": "int32"}, {"storage_order": 1}, {"index_axis": 1}]


def small_windows(rng):
    """Return sizes, kernel and attributes of small planes, with any number of axes."""
    rank = rng.choice([1, 2, 2, 3])
    sizes = [rng.randint(1, {1: 60, 2: 12, 3: 5}[rank]) for _ in range(rank)]
    axes = []
    for size in sizes:
        kernel, dilation = rng.choice([1, 2, 3, 5, 9, size]), rng.choice([1, 1, 2])
        begin, end = rng.randint(0, 3), rng.randint(0, 3)
        end += max(0, (kernel - 1) * dilation + 1 - size - begin - end)
        axes.append((kernel, rng.choice([1, 1, 2, 3, kernel]), dilation, begin, end))
    kernels, strides, dilations, begins, ends = zip(*axes, strict=True)
    return sizes, kernels, {"strides": strides, "dilations": dilations, "pads": begins + ends}


def twin(plan, x, attributes):
    """Return the slow twin's results as a tuple."""
    results = _reference.max_pool(x, plan.kernel_shape, **attributes)
    return results if attributes["return_indices"] else (results,)


def check(plan, x, attributes, want, outs=()):
    """Compare a call with the twin's results, into given arrays if there are any."""
    got = plan(x, **dict(zip(("out", "out_indices"), outs, strict=False)))
    got = got if attributes["return_indices"] else (got,)
    for one, two in zip(got, want, strict=True):
        cases.assert_same(one, two, f"{x.shape}, {plan.kernel_shape}, {attributes}")
    return plan._prepared.pooling.strategy


@pytest.mark.parametrize("indices", [False, True])
@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_small_planes(name, indices, isa):
    rng, taken = random.Random(name), []
    for seed in range(30):
        sizes, kernel, attributes = small_windows(rng)
        layout = cases.layouts(len(sizes))[0]
        x = cases.values((*COUNTS[seed % 4], *sizes), name, rng.choice(cases.VALUE_KINDS), seed)
        attributes |= {"layout": layout, "nan": rng.choice(["propagate", "ignore"])}
        attributes |= {"return_indices": indices} | (INDEXING[seed % 4] if indices else {})
        threads = rng.choice([1, 2, 3])
        plan = fastpool.plan_max_pool(x.shape, x.dtype, kernel, num_threads=threads, **attributes)
        want = twin(plan, x, attributes)
        taken.append(check(plan, x, attributes, want))
        for gap in (np.s_[..., ::1], np.s_[::-1], np.s_[:, ::-1], np.s_[:, :, ::-1]):
            wider = np.zeros((*x.shape[:-1], x.shape[-1] + 3), x.dtype)
            part = wider[..., 1:-2][gap]
            part[...] = x
            check(plan, part, attributes, want)
    assert not indices or taken.count("planes_as_pixels") > 5


@pytest.mark.parametrize("name", ["uint8", "float16", "float32", "float64"])
def test_small_planes_stay_between_the_pages(name, isa, guarded_memory):
    memories, rng = [guarded_memory(1 << 20) for _ in "xyz"], random.Random(name)
    for seed, indices in itertools.product(range(12), (False, True)):
        sizes, kernel, attributes = small_windows(rng)
        values = cases.values((*COUNTS[seed % 4], *sizes), name, "bits", seed)
        attributes |= {"layout": cases.layouts(len(sizes))[0], "return_indices": indices}
        plan = fastpool.plan_max_pool(values.shape, values.dtype, kernel, **attributes)
        want = twin(plan, values, attributes)
        for at in ("end", "start"):
            x = memories[0].array(values.shape, values.dtype, at)
            x[...] = values
            dtypes = (values.dtype, np.int64)[: 1 + indices]
            outs = [
                memory.array(plan.output_shape, dtype, at)
                for memory, dtype in zip(memories[1:], dtypes, strict=False)
            ]
            check(plan, x, attributes, want, outs)
            for memory in memories:
                memory.check()


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_one_window_over_a_plane(name, isa):
    """Parts of planes are compared one after another: equal maxima, NaN and -inf in any of them."""
    rng = random.Random(name)
    for layout, channels in (("NCHW", 3), ("NHWC", 3), ("NHWC", 70), ("NCDHW", 2), ("NDHWC", 9)):
        for sizes in ((9, 17), (41, 130), (1, 4500), (290, 300)):
            if sizes == (290, 300) and (layout, channels) != ("NHWC", 3):
                continue  # (more pixels than the shortest keys count, of one layout)
            sizes = sizes if len(layout) == 4 else (3, *sizes)
            kind = rng.choice(cases.VALUE_KINDS)
            x = cases.values(cases.array_shape(layout, 2, channels, sizes), name, kind, 0)
            attributes = {"layout": layout, "return_indices": True} | rng.choice(INDEXING)
            attributes["nan"] = rng.choice(["propagate", "ignore"])
            plan = fastpool.plan_max_pool(x.shape, x.dtype, sizes, num_threads=2, **attributes)
            lowest = np.zeros_like(x)
            for array in (x, lowest, x[::-1]):
                want = twin(plan, array, attributes)
                assert check(plan, array, attributes, want) in ("one_window", "taps")
            for _ in range(3):  # the greatest, at places of different parts
                lowest.reshape(-1)[rng.randrange(math.prod(x.shape))] = 1
                check(plan, lowest, attributes, twin(plan, lowest, attributes))


def test_narrow_planes_are_interleaved(isa):
    """Those of up to five columns of outputs, unless whole planes are pooled as one row."""
    for shape, kernel, more in (
        ((16, 8, 101, 3), (7, 2), {"strides": (7, 2), "pads": (3, 0, 3, 0)}),
        ((16, 256, 40, 8), (3, 2), {"strides": 2}),
        ((2, 64, 5, 60, 3), (2, 3, 3), {"pads": 1}),
    ):
        for size, strategy in ((shape[-1], "planes_as_pixels"), (shape[-1] + 20, "bands")):
            plan = fastpool.plan_max_pool((*shape[:-1], size), "float32", kernel, **more)
            found = plan._prepared_for(np.dtype("float32")).work.strategy
            assert (found == "planes_as_pixels") == (strategy == "planes_as_pixels"), plan
