"""Plans that kernels take as those of fewer axes: windows as those of a row, axes as channels."""

import itertools
import random

import numpy as np
import pytest

import cases
import fastpool
from fastpool import _reference
from fastpool._running.fewer_axes import with_fewer_axes, without_single_axes
from fastpool._running.work import make_work, problem_of

POOLS = {
    "max": (fastpool.plan_max_pool, _reference.max_pool),
    "min": (fastpool.plan_min_pool, _reference.min_pool),
    "avg": (fastpool.plan_avg_pool, _reference.avg_pool),
}


def taken(plan, several=True):
    """Return the `FewerAxes` of a plan."""
    whole = without_single_axes(plan, several)
    maxima = hasattr(plan, "return_indices")
    work = (lambda: make_work(problem_of(whole.plan))) if maxima else None
    return with_fewer_axes(whole, several, work)


def joined(plan, several=True):
    """Return how many axes of arrays are joined; None if the plan keeps its axes."""
    fewer = taken(plan, several)
    return fewer.joined if fewer.axes else None


def test_windows_of_a_row():
    """Few consecutive elements, next to one another: no padding, gap, index, order of columns."""
    maxima, means = fastpool.plan_max_pool, fastpool.plan_avg_pool
    assert joined(maxima((1, 8, 2, 2), "float32", 2)) == 4
    assert joined(maxima((1, 8, 3, 3), "float32", 3)) is None
    assert joined(maxima((1, 8, 4, 4), "uint8", 4)) == joined(maxima((1, 8, 2, 2), "int64", 2)) == 4
    assert joined(maxima((1, 8, 2, 2), "float32", 2), several=False) is None
    assert joined(maxima((1, 8, 2, 2), "float32", 2, return_indices=True)) is None
    assert joined(maxima((1, 2, 2, 8), "float32", 2, layout="NHWC")) is None
    # Of several windows: short rows, and longer ones if taps are a power of two.
    for taps, size, name, found in (
        *((2, 64, "float32", 3), (2, 66, "float32", None), (3, 15, "float32", 3)),
        *(
            (6, 72, "uint8", None),
            (3, 18, "float32", None),
            (3, 63, "uint8", 3),
            (4, 256, "int8", 3),
            (4, 260, "int8", None),
        ),
    ):
        assert joined(maxima((1, 9, size), name, taps, strides=taps)) == found, (taps, size, name)
    row = (1, 9, 12), "uint8", 4
    assert joined(maxima(*row, strides=4)) == 3
    for taps, more in (
        (4, {"strides": 3}),
        (4, {"strides": 4, "pads": (4, 0)}),
        (4, {"strides": 4, "pads": (1, 0)}),
        (2, {"strides": 2, "dilations": 2, "pads": (0, 1)}),
    ):
        assert joined(maxima(*row[:2], taps, **more)) is None, more
    assert joined(maxima(*row[:2], 1, dilations=2)) == 3
    assert joined(maxima((1, 9, 2, 4), "uint8", (1, 4), dilations=(2, 1))) == 4
    assert joined(maxima((1, 9, 13), "uint8", 4, strides=4)) is None
    assert joined(fastpool.plan_adaptive_max_pool((1, 9, 5), "uint8", 3)) is None
    assert joined(maxima((1, 9, 4, 6), "uint8", (2, 6), strides=(2, 6))) == 4
    assert joined(maxima((1, 9, 4, 6), "uint8", (2, 3), strides=(2, 3))) is None
    assert joined(fastpool.plan_adaptive_avg_pool((1, 9, 5, 6), "uint8", (5, 6))) == 4
    assert joined(maxima((2, 9, 1, 1), "uint8", 1)) == 0
    # Means of floats: columns are added before rows.
    for order, found in (("pairwise", None), ("exact", 4), ("sequential", 4)):
        assert joined(means((1, 8, 2, 2), "float32", 2, numerics=order)) == found, order
    assert joined(means((1, 8, 1, 4), "float32", (1, 4))) == joined(means((1, 8, 2, 2), "int8", 2))
    assert joined(means((1, 8, 2, 1, 2), "float32", (2, 1, 2))) == 0
    assert joined(means((1, 8, 16), "float32", 16, numerics="sequential")) == 3
    assert joined(means((1, 8, 17), "float32", 17, numerics="sequential")) is None
    assert joined(means((1, 8, 32), "float32", 4, strides=4)) == 3
    assert joined(means((1, 8, 36), "float32", 4, strides=4)) is None
    assert joined(means((1, 8, 9), "float32", 3, strides=3)) == 3
    assert joined(means((1, 8, 2, 9), "float32", (1, 3), strides=(1, 3))) is None


def test_axes_as_channels():
    """Those before the rows, of one tap: joined if batch and channels are both several."""
    plan = fastpool.plan_max_pool
    k, more = (1, 3, 3), {"strides": (1, 2, 2)}
    assert joined(plan((1, 4, 5, 8, 8), "float32", k, **more)) == 0
    assert joined(plan((2, 1, 5, 8, 8), "float32", k, **more)) == 0
    assert joined(plan((2, 4, 5, 8, 8), "float32", k, **more)) == 2
    assert joined(plan((2, 4, 5, 8, 8), "float32", k, **more), several=False) is None
    assert joined(plan((1, 4, 5, 8, 8), "float32", k, **more), several=False) == 0
    assert joined(plan((1, 4, 3, 5, 8, 8), "float32", (1, 2, 3, 3), layout="NCHW")) == 0
    assert joined(plan((1, 4, 2, 5, 8, 8), "float32", (1, *k), layout="NCHW")) == 3
    for layout, shape in (("CDHW", (4, 5, 8, 8)), ("NDHW", (4, 5, 8, 8)), ("DHW", (5, 8, 8))):
        assert joined(plan(shape, "float32", k, layout=layout)) == 0
    assert joined(plan((1, 5, 8, 8, 4), "float32", k, layout="NDHWC")) is None
    for kernel, axes in ((2, 1), (1, 2)):  # (of axes that windows or strides do not leave alone)
        more = {"strides": (axes, 1, 1)}
        assert joined(plan((1, 4, 5, 8, 8), "float32", (kernel, 3, 3), **more)) is None
    assert joined(plan((1, 4, 5, 8, 1), "float32", (1, 3, 1))) == 0
    assert joined(plan((3, 4, 1, 8, 1), "float32", (1, 3, 1))) == 0
    # Indices count in planes, in volumes or in all of the array.
    index = {"return_indices": True}
    for axis, found in ((0, 2), (1, None), (2, 2), (3, 2), (4, 2)):
        assert joined(plan((2, 4, 5, 8, 8), "float32", k, **index, index_axis=axis)) == found, axis
    assert joined(plan((1, 4, 5, 8, 8), "float32", k, **index, index_axis=1)) == 0
    assert joined(plan((1, 4, 5, 8, 8), "float32", k, **index, storage_order=1)) is None
    tile, *_ = plan((1, 4, 5, 8, 8), "float32", k, **index).tile(np.s_[1:3])
    assert joined(tile) is None
    # Volumes that are interleaved stay as they are, but not composites.
    for shape, name, kernel, more, channels in (
        ((1, 64, 3, 5, 5), "int16", (1, 3, 3), {}, 1),
        ((1, 4, 5, 40, 40), "uint8", (1, 7, 7), index, 2),
    ):
        small = plan(shape, name, kernel, pads=(0, 1, 1) * 2, **more)
        work = small._prepared_for(np.dtype(name)).work
        assert work.channel_axis == channels and work.inner


def test_last_axes_as_one():
    """Of two and more that windows take element by element: no pixel longer than a short row."""
    maxima, means, time = fastpool.plan_max_pool, fastpool.plan_avg_pool, (3, 1, 1)
    shape = 1, 4, 5, 6, 7
    for plan in (maxima(shape, "float32", time), means(shape, "float32", time, pads=(1, 0, 0) * 2)):
        fewer = taken(plan)
        assert fewer == (fewer.plan, (0, 1, 2, 4), 5)
        assert fewer.plan.input_shape == (1, 4, 5, 42)
        assert fewer.plan.output_shape == (1, 4, plan.output_shape[2], 42)
    assert joined(maxima(shape, "float32", time), several=False) is None
    fewer = taken(maxima((2, 5, 6, 7, 4), "float32", time, layout="NDHWC"))
    assert (fewer.axes, fewer.plan.input_shape) == ((0, 1, 3, 4), (2, 5, 42, 4))
    assert (fewer.plan.channels, fewer.plan.output_shape) == (4, (2, 3, 42, 4))
    volume = taken(maxima((5, 6, 7), "int8", time, layout="DHW"))
    assert volume.axes == (-1, -1, 0, 2)
    flat = taken(maxima((1, 4, 5, 6, 3, 1), "int8", (3, 1, 1, 1), layout="NCHW"))
    assert (flat.axes, flat.plan.input_shape) == ((0, 1, 2, 4), (1, 4, 5, 18))
    assert joined(maxima((1, 4, 5, 6, 1), "int8", time)) == 0  # (columns are one already)
    for plan in (maxima, means):
        assert joined(plan((1, 5, 9, 16, 65), "int8", time, layout="NDHWC")) == 5, plan
    assert joined(maxima((1, 4, 5, 600, 600), "float32", time)) == 5
    for kernel, more in (
        ((3, 2, 1), {}),
        ((3, 1, 2), {}),
        (time, {"strides": (1, 2, 1)}),
        (time, {"strides": (1, 1, 2)}),
        (time, {"pads": (0, 0, 1, 0, 0, 0)}),
        (time, {"pads": (0, 0, 0, 0, 1, 0)}),
    ):
        plan = means(shape, "int8", kernel, count_include_pad=True, **more)
        assert joined(plan) is None, plan
    long = 1, 4, 40, 9, 9
    for kernel, more, found in (
        ((16, 1, 1), {}, 5),
        ((17, 1, 1), {}, None),
        (1, {"strides": (2, 1, 1)}, None),
        ((4, 1, 1), {"dilations": (13, 1, 1)}, 5),  # (an extent of 40)
        ((4, 1, 1), {"dilations": (14, 1, 1), "pads": (2, 0, 0, 1, 0, 0)}, None),
        ((3, 1, 1), {"pads": (41, 0, 0, 0, 0, 0)}, None),
    ):
        assert joined(means(long, "int8", kernel, **more)) == found, (kernel, more)
    small = (2, 351, 2, 2, 8), "uint8", (2, 1, 1)  # (interleaved: 3.3 us, as rows 15)
    assert maxima(*small)._prepared_for(np.dtype("uint8")).work.joined == 0
    assert maxima(*small, return_indices=True)._prepared_for(np.dtype("uint8")).work.joined == 5
    assert maxima((2, 3, 2, 2, 8), *small[1:])._prepared_for(np.dtype("uint8")).work.joined == 5
    index = {"return_indices": True}
    assert joined(maxima(shape, "int8", time, **index)) == 5
    assert joined(maxima(shape, "int8", time, **index, index_axis=2)) is None
    assert joined(maxima(shape, "int8", time, **index, storage_order=1)) is None
    tile, *_ = maxima(shape, "int8", time, **index).tile(np.s_[1:3])
    assert joined(tile) is None


def test_axes_of_one_element():
    """They are left out, wherever they are, but one; channels that are last may be one of them."""
    maxima, means = fastpool.plan_max_pool, fastpool.plan_avg_pool

    def left(*args, make=maxima, several=True, **more):
        fewer = without_single_axes(make(*args, **more), several)
        return (fewer.plan.input_shape, *fewer.axes)

    assert left((2, 4, 9, 1), "float32", (3, 1)) == ((2, 4, 9), 0, 1, 2)
    assert left((2, 4, 1, 9), "float32", (1, 3), make=means) == ((2, 4, 9), 0, 1, 3)
    assert left((2, 4, 9, 1, 7), "float32", (3, 1, 2)) == ((2, 4, 9, 7), 0, 1, 2, 4)
    assert left((2, 9, 1, 7, 4), "int8", (3, 1, 2), layout="NDHWC") == ((2, 9, 7, 4), 0, 1, 3, 4)
    assert left((2, 9, 7, 1), "int8", 3, layout="NHWC", make=means) == ((2, 1, 9, 7), 0, 3, 1, 2)
    assert left((9, 1), "int8", (3, 1), layout="HW") == ((1, 1, 9), -1, -1, 0)
    assert left((1, 1, 1), "int8", 1, layout="DHW") == ((1, 1, 1), -1, -1, 2)
    for shape, kernel, more in (
        ((2, 4, 9, 1), (3, 1), {"several": False}),
        ((2, 4, 9, 1), (3, 2), {"pads": (0, 0, 0, 1)}),
        ((2, 4, 9, 1), (3, 1), {"return_indices": True, "storage_order": 1}),
        ((2, 4, 9, 2), (3, 1), {}),
    ):
        assert left(shape, "int8", kernel, **more) == (shape,), (shape, more)


def test_columns_as_channels():
    """Of planes of 1 KiB whose windows take columns one by one; of images, not in every case."""
    maxima, means, index = fastpool.plan_max_pool, fastpool.plan_avg_pool, {"return_indices": True}

    def pixels(make, *args, several=True, **more):
        fewer = taken(make(*args, **more), several)
        return (fewer.plan.input_shape, fewer.axes) if fewer.plan.channels_last else None

    plane = 1, 64, 30, 10
    as_pixels = (64, 30, 10), (1, 2, 3)
    for make, name, more in (
        *((maxima, "float32", {}), (fastpool.plan_min_pool, "float32", {})),
        *((maxima, "float32", index), (means, "float32", {}), (maxima, "int64", index)),
        *((maxima, "float32", {"strides": (2, 1)}), (maxima, "int32", {**index, "index_axis": 2})),
    ):
        assert pixels(make, plane, name, (3, 1), **more) == as_pixels, (name, more)
    for make, name, kernel, more in (
        *((maxima, "uint8", (3, 1), {}), (maxima, "float32", (3, 2), {})),
        *((maxima, "float32", (1, 1), {}), (maxima, "int64", (3, 1), {})),
        *((means, "float32", (3, 1), {"strides": (2, 1)}),),
        *((maxima, "float32", (3, 1), {"strides": (1, 2)}),),
        *((maxima, "float32", (3, 1), {"several": False}),),
        *((maxima, "int32", (3, 1), {**index, "index_axis": 1}),),
        *((maxima, "int32", (3, 1), {**index, "storage_order": 1}),),
    ):
        assert pixels(make, plane, name, kernel, **more) is None, (name, kernel, more)
    assert pixels(maxima, (1, 64, 30, 40), "float16", (3, 1)) == ((64, 30, 40), (1, 2, 3))  # (keys)
    assert pixels(maxima, (1, 64, 30, 40), "int16", (3, 1)) is None
    volume = (1, 4, 5, 9, 60), "int16", (3, 3, 1)
    for make, more in ((maxima, {}), (means, {"strides": (1, 2, 1)}), (maxima, index)):
        assert pixels(make, *volume, **more) == ((4, 5, 9, 60), (1, 2, 3, 4)), more
    assert pixels(maxima, (1, 4, 50, 9, 7), *volume[1:]) is None  # (slabs of 126 bytes)
    assert taken(maxima((2, 3, 5, 30, 15), "float32", (1, 3, 1))).axes == (2, 3, 4)
    assert taken(maxima((2, 3, 5, 30, 15), "float32", (1, 3, 1))).joined == 3
    text = " ".join(maxima(plane, "float32", (3, 1)).explain().split())
    assert "columns as channels that are last: " in text


@pytest.mark.parametrize("layout", ["NCHW", "HW", "NCDHW", "DHW", "NHWC", "NDHWC"])
def test_results_of_single_columns(layout, isa):
    """Windows over rows, and slabs, of columns one by one; axes of one element; every index."""
    rng = random.Random(layout)
    for seed, name in enumerate(("float32", "uint8", "float16", "int64", "float64", "int16") * 10):
        sizes = {"N": rng.randint(1, 3), "C": rng.choice([1, 1, 3, 17])}
        sizes |= {"D": rng.choice([1, 2, 5]), "H": rng.choice([1, 9, 40])}
        sizes |= {"W": rng.choice([1, 1, 2, 7, 30])}
        shape = tuple(sizes[axis] for axis in layout)
        some = [min(rng.randint(1, 4), sizes[axis]) for axis in layout if axis in "DHW"]
        kernel = tuple(some[:-1]) + (1 + (rng.random() < 0.1),)
        pads = [taps // 2 for taps in kernel]
        strides = [rng.randint(1, 3) if taps > 1 else 1 for taps in kernel]
        attributes = {"layout": layout, "pads": (*pads, *pads), "strides": strides}
        pool = rng.choice(["max", "max", "min", "avg", "avg"])
        attributes["nan"] = rng.choice(["propagate", "ignore"])
        if pool == "avg":
            attributes["numerics"] = rng.choice(["pairwise", "exact", "sequential"])
            attributes["count_include_pad"] = rng.random() < 0.5
        elif rng.random() < 0.6:
            axis = rng.choice([0, 0, rng.randrange(len(shape))])
            attributes |= {"return_indices": True, "index_axis": axis}
        plan, twin = POOLS[pool]
        plan = plan(shape, name, kernel, **attributes)
        make = cases.summands if pool == "avg" else cases.values
        x = make(shape, name, "bits" if seed % 2 else "ties", seed)
        for how in ("contiguous", rng.choice(cases.ARRANGEMENTS)):
            array = cases.arranged(x, how)
            got, want = plan(array), twin(array, kernel, **attributes)
            several = isinstance(want, tuple)
            for one, two in zip(*(y if several else (y,) for y in (got, want)), strict=True):
                cases.assert_same(one, two, f"{plan}, {how}")
                out = np.full([size + 1 for size in two.shape], 7, two.dtype)
                if not several:
                    plan(array, out=out[(np.s_[:-1],) * two.ndim])
                    cases.assert_same(out[(np.s_[:-1],) * two.ndim], two, f"{plan}, {how}, out")


@pytest.mark.parametrize("layout", ["NCDHW", "NDHWC", "DHW", "CDHW", "DHWC"])
def test_results_of_last_axes_as_one(layout, isa):
    rng = random.Random(layout)
    for seed, name in enumerate(("float32", "uint8", "float16", "int64", "float64", "int16") * 8):
        sizes = {"N": rng.randint(1, 3), "C": rng.choice([1, 3, 40]), "D": rng.randint(1, 9)}
        sizes |= {"H": rng.randint(1, 9), "W": rng.choice([1, 2, 7, 70])}
        shape = tuple(sizes[axis] for axis in layout)
        kernel = min(rng.randint(1, 4), sizes["D"])
        attributes = {"strides": (rng.randint(1, 3), 1, 1), "pads": (kernel // 2, 0, 0, 0, 0, 0)}
        attributes |= {"layout": layout, "nan": rng.choice(["propagate", "ignore"])}
        pool = rng.choice(["max", "min", "avg", "avg"])
        if pool == "avg":
            attributes["numerics"] = rng.choice(["pairwise", "exact", "sequential"])
            attributes["count_include_pad"] = rng.random() < 0.5
        elif rng.random() < 0.5:
            order = rng.choice(["NCHW", "NHWC"][: 1 + (layout[-1] == "C")])
            attributes |= {"return_indices": True, "index_layout": order}
        plan, twin = POOLS[pool]
        plan = plan(shape, name, (kernel, 1, 1), **attributes)
        make = cases.summands if pool == "avg" else cases.values
        x = make(shape, name, "bits" if seed % 2 else "ties", seed)
        for how in ("contiguous", rng.choice(cases.ARRANGEMENTS)):
            array = cases.arranged(x, how)
            got, want = plan(array), twin(array, (kernel, 1, 1), **attributes)
            several = isinstance(want, tuple)
            for one, two in zip(*(y if several else (y,) for y in (got, want)), strict=True):
                cases.assert_same(one, two, f"{plan}, {how}")


def some(rng):
    """Return a shape, kernel and attributes of which most are taken with fewer axes."""
    outer, attributes = (rng.randint(1, 4), rng.randint(1, 5)), {}
    if rng.random() < 0.5:  # windows of a row
        rank = rng.randint(1, 3)
        before = rng.randrange(rank)
        kernel = [1] * before + [rng.randint(1, 4) for _ in range(rank - before)]
        outputs = [rng.randint(1, 4) if i <= before else 1 for i in range(rank)]
        sizes = [taps * output for taps, output in zip(kernel, outputs, strict=True)]
        attributes["strides"] = kernel
    else:
        sizes = (
            *(rng.randint(1, 4) for _ in range(rng.randint(1, 2))),
            *rng.choices(range(5, 9), k=2),
        )
        kernel = [1] * (len(sizes) - 2) + rng.choices(range(2, 5), k=2)
        attributes["strides"] = [1] * (len(sizes) - 2) + rng.choices((1, 2, 3), k=2)
        attributes["pads"] = [*([0] * (len(sizes) - 2)), 1, 0] * 2
    return (*outer, *sizes), tuple(kernel), attributes


@pytest.mark.parametrize("how", cases.ARRANGEMENTS)
def test_results(how, isa):
    """Every arrangement in memory has the twin's results, also in outputs with gaps."""
    rng, taken = random.Random(how), []
    for seed, name in enumerate(("float32", "uint8", "float16", "int64", "float64", "bool") * 12):
        shape, kernel, attributes = some(rng)
        pool = rng.choice(["max", "min", "avg"] if name != "bool" else ["max", "min"])
        attributes["nan"] = rng.choice(["propagate", "ignore"])
        if pool == "avg":
            attributes["numerics"] = rng.choice(["pairwise", "exact", "sequential"])
        elif rng.random() < 0.4:
            attributes |= {"return_indices": True, "index_axis": rng.randint(0, len(shape) - 1)}
        plan, twin = POOLS[pool]
        plan = plan(shape, name, kernel, **attributes)
        make = cases.summands if pool == "avg" else cases.values
        x = cases.arranged(make(shape, name, "bits" if seed % 2 else "ties", seed), how)
        want = twin(x, kernel, **attributes)
        wanted = want if isinstance(want, tuple) else (want,)
        got = plan(x)
        for one, two in zip(got if isinstance(got, tuple) else (got,), wanted, strict=True):
            cases.assert_same(one, two, f"{plan}")
        outs = [
            np.repeat(np.zeros_like(y), 2, axis=seed % 3)[(np.s_[:],) * (seed % 3) + np.s_[::2,]]
            for y in wanted
        ]
        plan(x, *outs)
        for one, two in zip(outs, wanted, strict=True):
            cases.assert_same(one, two, f"{plan}, with outputs")
        work = plan._prepared.work
        taken.append(work.joined == len(shape) or 2 * (work.channel_axis != plan.channel_axis))
    assert min(taken.count(True), taken.count(2)) > 5, taken


@pytest.mark.parametrize("make", [fastpool.plan_max_pool, fastpool.plan_avg_pool])
def test_arrays_with_gaps_are_read_in_place(make, isa):
    """Those that cannot be joined are pooled with the axes as they are, by compiled code."""
    for shape, kernel, more in (((2, 4, 5, 8, 8), (1, 3, 3), {}), ((4, 6, 8), 2, {"strides": 2})):
        plan = make(shape, "float32", kernel, **more)
        x = np.random.default_rng(0).random([2 * size for size in shape], "float32")
        for axis in range(len(shape)):
            gaps = x[tuple(np.s_[::2] if i == axis else np.s_[:n] for i, n in enumerate(shape))]
            y = plan(gaps)
            cases.assert_same(y, plan(gaps.copy()))
            out = np.repeat(np.zeros_like(y), 2, axis=axis).swapaxes(0, axis)[::2].swapaxes(0, axis)
            nothing = (None,) * (make is fastpool.plan_max_pool)
            in_place = plan._prepared.run(gaps, out, *nothing)
            assert (in_place is None) is (axis == len(shape) - 1), (shape, axis)
            assert in_place is None or (out == y).all()


def test_explain():
    whole = fastpool.plan_global_avg_pool((1, 1024, 2, 2), "uint8").explain()
    assert "windows as those of one row of 4096 elements: columns" in " ".join(whole.split())
    volumes = fastpool.plan_max_pool((2, 64, 4, 40, 40), "uint8", (1, 3, 3)).explain()
    assert "planes along D as channels: " in volumes and "contiguous along W; else" in volumes
    flat = fastpool.plan_max_pool((2, 64, 1, 14, 14), "uint8", (1, 3, 3)).explain()
    assert "as channels" not in flat


def test_repeated_elements_are_no_row(isa):
    """A step of 0 along an axis is evenly spaced with no other one."""
    means = fastpool.plan_avg_pool((4, 6, 2, 2), "uint8", 2)
    planes = fastpool.plan_max_pool((3, 4, 5, 6, 6), "float32", (1, 2, 2))
    for plan, axes in itertools.product((means, planes), ((0,), (1,), (0, 1), (2, 3))):
        x = np.arange(np.prod(plan.input_shape)).reshape(plan.input_shape).astype(plan.dtype)
        for axis in axes:
            x = np.broadcast_to(x.take([0], axis), x.shape)
        cases.assert_same(plan(x), plan(x.copy()), (plan, axes))
