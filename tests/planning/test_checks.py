"""Plans with fields that contradict each other, or of wrong types, are refused."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import fastpool
from fastpool._planning.geometry import AdaptiveAxis
from fastpool._planning.plan_checks import state_of
from fastpool._plans import make_unpool_plan
from fastpool._running import prepare

PLAN = fastpool.plan_max_pool((2, 3, 8, 9), "float32", 3, pads=1, return_indices=True)
ROWS, COLS = PLAN.axes
GIVEN = PLAN.given
UNPOOL = make_unpool_plan((2, 3, 4, 5), 2, strides=2)


class Liar(int):
    """An int that is equal to everything and larger than nothing."""

    def __eq__(self, other):
        return True

    def __lt__(self, other):
        return False

    __hash__ = int.__hash__


class Text(str):
    """A str that claims to be another."""

    def __str__(self):
        return "NHWC"


CONTRADICTIONS = [
    {"axes": (ROWS._replace(size=10**7), COLS)},
    {"axes": (ROWS, COLS._replace(output=10**7))},
    {"axes": (ROWS,)},
    {"axes": ()},
    {"axes": (ROWS, COLS, COLS)},
    {"axes": (COLS, ROWS)},
    {"axes": (ROWS._replace(kernel=0), COLS)},
    {"axes": (ROWS._replace(kernel=4), COLS)},
    {"axes": (ROWS._replace(stride=0), COLS)},
    {"axes": (ROWS._replace(stride=-1), COLS)},
    {"axes": (ROWS._replace(dilation=0), COLS)},
    {"axes": (ROWS._replace(begin=-(10**6)), COLS)},
    {"axes": (ROWS._replace(begin=2), COLS)},
    {"axes": (ROWS._replace(begin=2, end=0), COLS)},
    {"output_shape": (2, 3, 800, 900)},
    {"output_shape": (200, 3, 8, 9)},
    {"output_shape": (2, 3, 8)},
    {"input_shape": (2, 3, 8, 90)},
    {"input_shape": (2, 3, 8)},
    {"input_shape": (-2, 3, 8, 9)},
    {"batch": 200},
    {"channels": 300},
    {"layout": "NHWC"},
    {"layout": "NHWC", "channels": 9},
    {"layout": "NHWC", "channels": 9, "channels_last": True},
    {"layout": "NHW"},
    {"layout": "CNHW"},
    {"layout": "xxxxC"},
    {"layout": ""},
    {"channels_last": True},
    {"nan": "never"},
    {"activation": "Relu"},
    {"activation_params": (1.0,)},
    {"activation": "Clip", "activation_params": (float("nan"), 1.0)},
    {"storage_order": 2},
    {"index_axis": 4},
    {"index_axis": -1},
    {"index_dtype": "int16"},
    {"index_layout": "NHWC"},
    {"index_shape": (2, 3, 8, 8)},
    {"index_shape": (2**40, 2**40, 8, 9)},
    {"index_dtype": "int32", "index_shape": (2**30, 3, 8, 9)},
    {"index_origin": (0, 0, 0, 1)},
    {"index_origin": (0, 0, 0)},
    {"num_threads": 0},
    {"given": GIVEN._replace(pads=(1, 1, 1, 2))},
    {"given": GIVEN._replace(pads=(1, 1))},
    {"given": GIVEN._replace(auto_pad="SAME_UPPER")},
    {"given": GIVEN._replace(ceil_rule="never")},
]
OTHER_KINDS = [
    {"dtype": "float31"},
    {"axes": (ROWS._replace(end=2**5000), COLS)},
    {"axes": [ROWS, COLS]},
    {"axes": (list(ROWS), COLS)},
    {"axes": (ROWS._replace(size=Liar(8)), COLS)},
    {"axes": (ROWS._replace(kernel=3.0), COLS)},
    {"axes": None},
    {"input_shape": [2, 3, 8, 9]},
    {"input_shape": (2, 3, 8, Liar(10**9))},
    {"input_shape": (2, 3, np.int64(8), 9)},
    {"output_shape": (2, 3, 8, Liar(10**9))},
    {"batch": Liar(10**9)},
    {"channels": True},
    {"channels_last": 0},
    {"layout": Text("NCHW")},
    {"layout": None},
    {"dtype": np.dtype("float32")},
    {"activation": 1},
    {"activation_params": [1.0]},
    {"activation_params": (1,)},
    {"return_indices": 1},
    {"storage_order": False},
    {"index_dtype": np.int32},
    {"num_threads": 2.0},
    {"given": list(GIVEN)},
    {"given": GIVEN._replace(ceil_mode=0)},
]
UNPOOL_CONTRADICTIONS = [
    {"x_shape": (2, 3, 4, 50)},
    {"x_shape": (2, 3, -4, 5)},
    {"x_shape": (2,) * 80},
    {"layout": "NHWC"},
    {"layout": "NHWC", "channels": 5, "channels_last": True},
    {"batch": 3},
    {"channels": 2},
    {"channels_last": True},
    {"spatial": (1, 2)},
    {"windows": ((2, 2, 0),)},
    {"windows": ((2, 2), (2, 2))},
    {"windows": ((0, 2, 0), (2, 2, 0))},
    {"windows": ((2, 2, 9), (2, 2, 0))},
    {"sizes": (4, 4)},
    {"inferred": (80, 100)},
    {"output": (80, 100)},
    {"output_shape": (2, 3, 80, 100)},
    {"output_shape": (3, 3, 8, 10), "batch": 3},
    {"index_space": "inferred", "output": (4, 4), "output_shape": (2, 3, 4, 4)},
    {"index_space": "nowhere"},
    {"index_axis": 3},
    {"index_layout": "NHWC"},
    {"num_threads": -1},
]
UNPOOL_OTHER_KINDS = [
    {"x_shape": [2, 3, 4, 5]},
    {"x_shape": (2, 3, 4, Liar(500))},
    {"output_shape": (2, 3, 8, Liar(1000))},
    {"windows": ([2, 2, 0], [2, 2, 0])},
    {"channels": Liar(1)},
    {"layout": Text("NCHW")},
    {"channels_last": 0},
    {"num_threads": 1.0},
]
ALL = [
    *[(PLAN, changes, ValueError) for changes in CONTRADICTIONS],
    *[(PLAN, changes, TypeError) for changes in OTHER_KINDS],
    *[(UNPOOL, changes, ValueError) for changes in UNPOOL_CONTRADICTIONS],
    *[(UNPOOL, changes, TypeError) for changes in UNPOOL_OTHER_KINDS],
]


def forged(plan, changes):
    """The plan with other fields, past every check."""
    made = object.__new__(type(plan))
    state = state_of(plan)
    assert state.keys() >= changes.keys()
    for name, value in {**state, **changes}.items():
        object.__setattr__(made, name, value)
    return made


def arrays_of(plan):
    """Arrays that fit the true plan, past whose ends a forged one may write."""
    if isinstance(plan, fastpool.MaxPoolPlan):
        return (np.zeros((2, 3, 8, 9), np.float32),)
    return np.zeros((2, 3, 4, 5), np.float32), np.zeros((2, 3, 4, 5), np.int64)


@pytest.mark.parametrize(("plan", "changes", "error"), ALL, ids=lambda value: str(value)[:70])
class TestRefused:
    def test_when_made(self, plan, changes, error):
        with pytest.raises(error, match="^plan: "):
            dataclasses.replace(plan, **changes)
        with pytest.raises(error, match="^plan: "):
            type(plan)(**{**state_of(plan), **changes})

    def test_when_unpickled_and_copied(self, plan, changes, error):
        with pytest.raises(error, match="^plan: "):
            copy.copy(forged(plan, changes))
        with pytest.raises(error, match="^plan: "):
            pickle.loads(pickle.dumps(forged(plan, changes)))

    def test_when_run(self, plan, changes, error):
        with pytest.raises((TypeError, ValueError)) as raised:
            forged(plan, changes)(*arrays_of(plan))
        assert "report" not in str(raised.value)
        if plan is PLAN:
            with pytest.raises(error, match="^plan: "):
                prepare.PreparedPool(forged(plan, changes), np.dtype("float32"))
        else:
            with pytest.raises(error, match="^plan: "):
                prepare.PreparedUnpool(forged(plan, changes), "float32", np.dtype("float32"))


def test_a_plan_of_more_axes_than_arrays_have():
    """A plan of 65 axes and more ran past the ends of the compiled tables."""
    plan = fastpool.plan_max_pool((1, 1, 4), "float32", 1)
    axis = plan.axes[0]._replace(size=1, output=1)
    for spatial in (61, 62, 63, 80, 200, 2000):
        shape = (1,) * (spatial + 2)
        changes = {
            "input_shape": shape,
            "output_shape": shape,
            "axes": (axis,) * spatial,
            "index_shape": shape,
            "index_origin": (0,) * len(shape),
            "layout": "NCHW",
            "given": None,
        }
        if len(shape) <= 64:
            assert "float32" in dataclasses.replace(plan, **changes).explain()
        else:
            with pytest.raises((TypeError, ValueError), match="^plan: "):
                dataclasses.replace(plan, **changes)
            with pytest.raises((TypeError, ValueError), match="^plan: "):
                forged(plan, changes).explain()


def test_a_write_past_the_result():
    """Two contradicting fields made the kernel write 999 floats past the end of `out`."""
    plan = fastpool.plan_max_pool((1, 1, 2, 1000), "float32", (1, 1))
    bad = forged(plan, {"layout": "NHWC", "channels": 1000})
    owner = np.full(4000, 7, np.float32)
    out = owner[:2000].reshape(1, 1, 2, 1000)
    with pytest.raises(ValueError, match="^plan: "):
        bad(np.zeros((1, 1, 2, 1000), np.float32), out)
    assert (owner == 7).all()


def test_a_pickle_brings_nothing_but_fields():
    state = state_of(PLAN)
    for more in ({**state, "_run": print}, {**state, "tile": print}, {"dtype": "int8"}, [], None):
        plan = object.__new__(fastpool.MaxPoolPlan)
        with pytest.raises((ValueError, TypeError), match="^plan: "):
            plan.__setstate__(more)


def test_minima_of_forged_plans_are_refused():
    state = state_of(PLAN)
    plan = fastpool.MinPoolPlan(**state)
    assert plan != PLAN and state_of(plan) == state
    for name, value in (("output_shape", (2, 3, 99, 99)), ("nan", "drop"), ("batch", 3)):
        with pytest.raises((TypeError, ValueError), match="^plan: "):
            dataclasses.replace(plan, **{name: value})
        with pytest.raises((TypeError, ValueError), match="^plan: "):
            forged(plan, {name: value})(*arrays_of(PLAN))


def test_honest_plans_pass():
    for changes in (
        {"num_threads": 3},
        {"nan": "ignore"},
        {"given": None},
        {"index_dtype": "int32"},
        {"return_indices": False},
        {"dtype": "int8", "given": None},
        {"index_axis": 2},
        {"storage_order": 1},
        {"index_shape": (4, 3, 80, 9), "index_origin": (1, 0, 72, 0)},
        {"activation": "Clip", "activation_params": (0.0, 1.0)},
    ):
        plan = dataclasses.replace(PLAN, **changes)
        assert pickle.loads(pickle.dumps(plan)) == copy.deepcopy(plan) == plan
        plan(np.zeros((2, 3, 8, 9), plan.dtype))
    larger = {"output": (9, 10), "output_shape": (2, 3, 9, 10)}
    plan = dataclasses.replace(UNPOOL, **larger)
    assert plan(*arrays_of(UNPOOL)).shape == (2, 3, 9, 10)


@pytest.mark.parametrize("first", [0, 1, 5])
@pytest.mark.parametrize("stop", [0, 1, 5, 6])
def test_tiles_are_plans_too(first, stop):
    plan = fastpool.plan_max_pool((9, 9), "uint8", 3, strides=2, pads=2, layout="HW")
    part = plan.tile(np.s_[first:stop, 1:4]).plan
    assert pickle.loads(pickle.dumps(part)) == part


def test_subclasses_are_refused():
    """Class attributes of one replaced what is derived from the fields."""

    class Pool(fastpool.MaxPoolPlan):
        batch_axis, channel_axis = 1, 0

    class Least(fastpool.MinPoolPlan):
        minimum = False

    class Unpool(type(UNPOOL)):
        index_planes = 10**6

    for kind, plan in ((Pool, PLAN), (Least, PLAN), (Unpool, UNPOOL)):
        with pytest.raises(TypeError, match="^plan: expected a"):
            kind(**state_of(plan))


def test_fields_that_change_after_a_run():
    """The fields are frozen, but object.__setattr__ changes them."""
    for attributes in ({}, {"activation": "Relu"}):
        plan = fastpool.plan_max_pool((1, 2, 8, 9), "float32", 2, **attributes)
        x = np.zeros((1, 2, 8, 9), np.float32)
        plan(x)
        object.__setattr__(plan, "layout", "NHWC")
        object.__setattr__(plan, "channels", 3000)
        with pytest.raises(ValueError, match="^plan: "):
            plan(x[:, :, ::-1, ::-1])
    plan = make_unpool_plan((2, 3, 4, 5), 2, strides=2)
    plan(*arrays_of(UNPOOL))
    object.__setattr__(plan, "output_shape", (2, 3, 50, 50))
    x, indices = arrays_of(UNPOOL)
    with pytest.raises(ValueError, match="^plan: "):
        plan(x[..., ::-1], indices)


@pytest.mark.parametrize("changes", [{"axes": (tuple(ROWS), COLS)}, {"given": tuple(GIVEN)}])
def test_tuples_are_no_records(changes):
    """Only a pickle holds built-in types in the place of records."""
    with pytest.raises(TypeError, match="^plan: "):
        dataclasses.replace(PLAN, **changes)
    with pytest.raises(TypeError, match="^plan: "):
        prepare.PreparedPool(forged(PLAN, changes))


def test_a_new_state_drops_what_was_prepared():
    x = np.arange(144, dtype=np.float32).reshape(1, 1, 12, 12)
    plan, other = (fastpool.plan_max_pool(x.shape, x.dtype, kernel) for kernel in (2, 3))
    plan(x)
    plan.__setstate__(other.__getstate__())
    assert plan == other and np.array_equal(plan(x), other(x))


def test_bfloat16_is_no_other_type_of_bytes():
    """The kernels do not check the dtype object that a plan is prepared with."""
    plan = fastpool.plan_max_pool((1, 1, 4, 4), "bfloat16", 2)
    with pytest.raises(TypeError, match="bfloat16"):
        prepare.PreparedPool(plan, np.dtype("uint8"))


def test_adaptive_axes_of_no_output_next_to_attributes_of_windows():
    axis = AdaptiveAxis(4, 4, 1, 0)  # its longest window would be 4 / 0
    for plan in (
        fastpool.plan_max_pool((1, 1, 4, 5), "float32", 1),
        fastpool.plan_avg_pool((1, 1, 4, 5), "float32", 1),
    ):
        with pytest.raises(ValueError, match="plan: axes .* do not fit given"):
            dataclasses.replace(plan, axes=(axis, plan.axes[1]))


@pytest.mark.parametrize("name", ["stride", "dilation"])
def test_steps_have_the_limit_of_calls(name):
    """Even of one window of one tap, whose results do not depend on them."""
    plan = fastpool.plan_max_pool((2, 2, 2), "int32", 1, strides=3, layout="NWC")
    (axis,) = plan.axes
    with pytest.raises(ValueError, match="has a stride or a dilation above"):
        dataclasses.replace(plan, given=None, axes=(axis._replace(**{name: 2**41}),))
