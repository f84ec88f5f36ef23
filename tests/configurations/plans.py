"""Random plans, most with changed fields: each is refused, or computes exactly what its fields say.

A plan that contradicts itself must never reach the kernels, because they do not check its fields.
So outputs have fences on both sides here, and the bytes next to an input would win every maximum.
"""

import contextlib
import copy
import dataclasses
import math
import pickle
from dataclasses import dataclass

import numpy as np

import cases
import fastpool
from fastpool._planning import geometry
from fastpool._planning.geometry import Axis, Given
from fastpool._plans import UnpoolPlan, make_unpool_plan
from fastpool._running import builds as running

from . import oracle
from .arrays import fenced, in_time, same, untouched
from .attributes import draw_conventions, draw_numbering
from .changes import draw_changes

MOST_AXES = 64
MOST_ELEMENTS = 4000
LARGE = 0x7F  # every byte next to an input: above nearly all values, or NaN

# How a plan gets its fields. Only "set" avoids every check of the class.
ROUTES = ["replace", "class", "pickle", "copy", "deepcopy", "set"]

# Fields that are shapes, and those that are tuples of tuples.
SHAPES = {"input_shape", "output_shape", "x_shape", "index_shape"}
PARTS = {"axes": Axis, "windows": tuple}

# The types of a field's numbers and words, int where it is not named.
KINDS = {
    **dict.fromkeys(("dtype", "layout", "nan"), {str}),
    **dict.fromkeys(("index_dtype", "index_layout", "index_space"), {str}),
    **dict.fromkeys(("return_indices", "channels_last"), {bool}),
    "activation": {str, type(None)},
    "activation_params": {float},
    "num_threads": {int, type(None)},
    "given": {int, str, bool, type(None)},
}


@dataclass(frozen=True)
class Planned:
    """One plan: made by a legal call, then cut to a part, then with some fields changed."""

    unpool: bool
    arguments: dict
    part: tuple  # (start, stop) of each output axis, () for the whole
    changes: dict
    route: str
    kind: str
    seed: int
    minimum: bool


def original(unpool, arguments, part, minimum=False):
    if unpool:
        return make_unpool_plan(**arguments)
    plan = (fastpool.plan_min_pool if minimum else fastpool.plan_max_pool)(**arguments)
    return plan.tile(tuple(slice(*ends) for ends in part)).plan if part else plan


def fields_of(plan):
    return {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)}


def draw_pool_arguments(choices):
    """Draw a small pooling with many equal extents, so that mixed-up axes can go unnoticed."""
    rank = choices.pick([2, 2, 1, 3, 4])
    layout = choices.pick(cases.layouts(rank))
    usual = choices.integer(1, 5)
    axes = []
    for _ in range(rank):
        kernel, stride, dilation = (choices.pick([1, 1, 2, 3]) for _ in "ksd")
        begin, end = (choices.pick([0, 0, 1, 2]) for _ in "be")
        least = (kernel - 1) * dilation + 1 - begin - end
        size = choices.pick([usual, usual, choices.integer(1, 5)])
        axes.append((max(size, least), kernel, stride, dilation, begin, end))
    sizes, kernels, strides, dilations, begins, ends = zip(*axes, strict=True)
    batch, channels = (choices.pick([usual, choices.integer(1, 4)]) for _ in "nc")
    dtype = choices.pick(cases.DTYPE_NAMES)
    activation = choices.pick([None, None, None, "Relu"]) if dtype != "bool" else None
    return {
        "input_shape": cases.array_shape(layout, batch, channels, sizes),
        "dtype": dtype,
        "kernel_shape": kernels,
        "strides": strides,
        "pads": begins + ends,
        "dilations": dilations,
        **draw_conventions(choices, rank, layout),
        "activation": activation,
        "return_indices": choices.once_in(2),
        "num_threads": choices.pick([None, 1, 2]),
    }


def draw_unpool_arguments(choices):
    rank = choices.pick([2, 2, 1, 3, 4])
    layout = choices.pick(cases.layouts(rank))
    usual = choices.integer(1, 4)
    sizes = [choices.pick([usual, choices.integer(1, 4)]) for _ in range(rank)]
    kernels, strides = ([choices.pick([1, 2, 2, 3]) for _ in range(rank)] for _ in "ks")
    batch, channels = (choices.pick([usual, choices.integer(1, 4)]) for _ in "nc")
    more = choices.pick([None, 0, 1])
    output_shape = None
    if more is not None:
        windows = zip(sizes, strides, kernels, strict=True)
        output = [(size - 1) * stride + kernel + more for size, stride, kernel in windows]
        output_shape = cases.array_shape(layout, batch, channels, output)
    return {
        "x_shape": cases.array_shape(layout, batch, channels, sizes),
        "kernel_shape": tuple(kernels),
        "strides": tuple(strides),
        "pads": 0,
        "output_shape": output_shape,
        "layout": layout,
        **draw_numbering(choices, layout),
        "num_threads": choices.pick([None, 1, 2]),
    }


def draw_planned(choices):
    unpool = choices.once_in(4)
    draw_arguments = draw_unpool_arguments if unpool else draw_pool_arguments
    arguments, part = draw_arguments(choices), ()
    if not unpool and choices.once_in(4):
        part = tuple(
            (start, choices.integer(start, extent))
            for extent in original(False, arguments, ()).output_shape
            for start in [choices.integer(0, extent - 1)]
        )
    fields = fields_of(original(unpool, arguments, part))
    other = fields_of(original(unpool, draw_arguments(choices), ()))
    return Planned(
        unpool=unpool,
        arguments=arguments,
        part=part,
        changes=draw_changes(choices, fields, other),
        route=choices.pick(ROUTES),
        kind=choices.pick(cases.VALUE_KINDS),
        seed=choices.integer(0, 2**16),
        minimum=choices.once_in(4),
    )


# ----------------------------------------------------------------------------------- comparison


def compare_planned(case, counts, builds):
    """Raise unless the plan is refused by its own check, or gives what its fields say."""
    before = original(case.unpool, case.arguments, case.part, case.minimum)
    legal = is_legal(before, case.changes)
    try:
        with in_time(0, "making the plan"):
            plan = made(before, case.changes, case.route)
    except (TypeError, ValueError) as refused:
        check_refusal(refused, "plan: ", legal, counts)
        return
    unchecked = case.route == "set"  # nothing saw the fields of such a plan until it runs
    try:
        if unchecked and not is_sound(before, case.changes):
            _run_any(plan, before)
        run(plan, before, case, counts, builds)
    except (TypeError, ValueError) as refused:
        assert unchecked, f"made, and then refused with {refused!r}"
        # The last of these is NumPy's, where the shape is none that an array can have.
        check_refusal(refused, ("plan: ", "x: ", "Maximum allowed dimension"), legal, counts)
    else:
        counts["case", "plans accepted"] += 1


def check_refusal(refused, beginning, legal, counts):
    assert str(refused).startswith(beginning), f"refused with {refused!r}"
    assert not legal, f"a legal plan was refused with {refused!r}"
    counts["case", "plans refused"] += 1


def made(plan, changes, route):
    if route == "replace":
        return dataclasses.replace(plan, **changes)
    if route == "class":
        return type(plan)(**{**fields_of(plan), **changes})
    plan = copy.copy(plan)
    for name, value in changes.items():
        object.__setattr__(plan, name, value)
    if route == "pickle":
        return pickle.loads(pickle.dumps(plan))
    return {"copy": copy.copy, "deepcopy": copy.deepcopy, "set": lambda same: same}[route](plan)


def is_exact(before, name, value):
    """Return whether a field and all its items have the types that planning gives them."""
    if name == "given":
        return type(value) in (Given, type(None))
    kinds = KINDS.get(name, {int})
    if not isinstance(getattr(before, name), tuple):
        return type(value) in kinds
    if type(value) is not tuple:
        return False
    if name in PARTS:
        return all(type(part) is PARTS[name] and {*map(type, part)} <= kinds for part in value)
    return {*map(type, value)} <= kinds


def is_sound(before, changes):
    """Return whether fields have their types, extents are not negative, and dtypes are known."""
    fields = {**fields_of(before), **changes}
    return (
        all(is_exact(before, name, value) for name, value in fields.items())
        and all(extent >= 0 for name in SHAPES & fields.keys() for extent in fields[name])
        and fields.get("dtype", "int8") in cases.DTYPE_NAMES
        and fields.get("index_dtype", "int64") in ("int64", "int32")
    )


def is_legal(before, changes):
    """Return whether a call could make this plan. False also if that is unclear."""
    fields = {**fields_of(before), **changes}
    if not is_sound(before, changes) or len(fields["output_shape"]) > MOST_AXES:
        return False
    if fields == fields_of(before):
        return True
    try:
        again = fields_of(again_unpool(**fields) if "windows" in fields else again_pool(**fields))
    except (TypeError, ValueError):
        return False
    given = fields.pop("given", None)
    if given is not None and (given != before.given or fields["axes"] != before.axes):
        return False
    again.pop("given", None)
    return fields == again


def again_pool(axes, output_shape, batch, channels, channels_last, index_origin, given, **fields):
    """Plan a call with the attributes that the fields contain."""
    kernels, strides, dilations, begins, ends = zip(*(axis[2:] for axis in axes), strict=True)
    del fields["index_shape"]
    return fastpool.plan_max_pool(
        kernel_shape=kernels, strides=strides, pads=begins + ends, dilations=dilations, **fields
    )


def again_unpool(x_shape, windows, sizes, inferred, output_shape, **fields):
    kernels, strides, begins = zip(*windows, strict=True)
    along = zip(sizes, kernels, strides, begins, inferred, strict=True)
    ends = [(size - 1) * s + k - begin - extent for size, k, s, begin, extent in along]
    for name in ("batch", "channels", "channels_last", "spatial", "output"):
        del fields[name]
    pads = (*begins, *ends)
    return make_unpool_plan(x_shape, kernels, strides, pads, output_shape, **fields)


# --------------------------------------------------------------------------------------- running


def run(plan, before, case, counts, builds):
    """Run an accepted plan on every build, on arrays between fences."""
    # (a copy or a pickle has exact types even if the fields that it was made from had not)
    fields = {name: getattr(plan, name) for name in case.changes}
    assert is_sound(before, fields), "accepted fields of wrong types, or of no meaning"
    shape = getattr(plan, "x_shape" if case.unpool else "input_shape")
    axes = max(len(shape), len(plan.output_shape))
    if case.route != "set":
        assert axes <= MOST_AXES, f"accepted {axes} axes"
    most = max(math.prod(shape), math.prod(plan.output_shape), *plan.output_shape)
    runs = most <= MOST_ELEMENTS and axes <= MOST_AXES
    if runs:
        run_arrays(plan, shape, case, counts, builds)
    else:
        counts["refused", "plans by nobody, but too large for the twin"] += 1
    if case.unpool:
        return
    # It makes compiled objects without any array, however many axes there are. Of fields that
    # nothing has checked yet it need not make sense; what it writes has to stay in its place.
    senseless = Exception if case.route == "set" and not runs else ()
    with in_time(0, "explain"), contextlib.suppress(senseless):
        assert isinstance(plan.explain(), str)


def run_arrays(plan, shape, case, counts, builds):
    if case.unpool and 0 in plan.output_shape:
        return  # a legal plan, of which no index is inside of the result
    dtype = cases.DTYPE_NAMES[case.seed % len(cases.DTYPE_NAMES)] if case.unpool else plan.dtype
    x = cases.values(shape, dtype, case.kind, case.seed)
    inputs = (x, np.zeros(shape, np.int64)) if case.unpool else (x,)
    try:
        if case.unpool:
            places, y = oracle.planned_unpool(plan, x, case.seed)
            inputs, expected = (x, places), (y,)
        else:
            expected = oracle.planned_pool(plan, x)[: 1 + plan.return_indices]
    except (TypeError, ValueError, IndexError, ArithmeticError) as refused:
        if case.route == "set":
            plan(*inputs)
        raise AssertionError(f"accepted what the twin refuses with {refused!r}") from refused
    for build in builds:
        with running.using(build):
            _run_fenced(plan, inputs, expected, build)
        counts["case", "runs of plans"] += 2
        counts["build", build] += 2
        for arrangement in ("plain", "arranged"):
            counts["arrays", arrangement] += 1
    assert is_consistent(plan), "accepted fields that contradict each other"


def is_consistent(plan):
    """Return whether the fields agree on the axes, even where results do not depend on it."""
    pool = not isinstance(plan, UnpoolPlan)
    shape = plan.input_shape if pool else plan.x_shape
    order = geometry.layout(plan.layout, shape)
    batch, channels, *sizes = oracle.along(order, shape, 1)
    outputs = oracle.along(order, plan.output_shape, 1)[2:]
    axes = [axis[:2] for axis in plan.axes] if pool else zip(plan.sizes, plan.output, strict=True)
    return (
        (plan.batch, plan.channels, plan.channels_last) == (batch, channels, order.channels_last)
        and list(axes) == list(zip(sizes, outputs, strict=True))
        and plan.spatial == order.spatial
    )


def _run_any(plan, before):
    """Run a plan with fields of wrong types on arrays for the plan that it was made from."""
    if isinstance(before, UnpoolPlan):
        plan(np.zeros(before.x_shape, np.int8), np.zeros(before.x_shape, np.int64))
    else:
        plan(np.zeros(before.input_shape, cases.dtype(before.dtype)))


def _run_fenced(plan, inputs, expected, build):
    elements = sum(array.size for array in (*inputs, *expected))
    inside = []
    for array in inputs:
        place, _ = fenced(array.shape, array.dtype, LARGE)
        place[...] = array
        inside.append(place)
    outputs = [fenced(plan.output_shape, inputs[0].dtype)]
    if len(expected) == 2:
        outputs.append(fenced(plan.output_shape, plan.index_dtype))
    with in_time(elements, build):
        plan(*inside, *(array for array, _ in outputs))
    with in_time(elements, build):
        plain = plan(*inputs)
    plain = plain if isinstance(plain, tuple) else (plain,)
    fenced_results = [array.copy() for array, _ in outputs]
    for array, owner in outputs:
        untouched(array, owner, build)
    for what, results in (("between fences", fenced_results), ("plain", plain)):
        same(results[0], expected[0], f"{build}, {what}")
        for got, indices in zip(results[1:], expected[1:], strict=True):
            assert got.dtype == plan.index_dtype
            wide = indices.astype(np.int64)
            same(got.astype(np.int64), wide, f"{build}, {what}, indices")
