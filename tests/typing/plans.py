"""The types that checkers must see for plans; those with and without indices differ."""

from typing import Any, Literal, assert_type

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import fastpool
from fastpool import MaxPoolPlan, UnpoolPlan
from fastpool.conventions import compare

x = np.zeros((4, 6), np.float64)

plan = fastpool.plan_max_pool(x.shape, x.dtype, 2, layout="HW")
assert_type(plan, MaxPoolPlan[Literal[False]])
assert_type(plan(x), NDArray[np.float64])
assert_type(plan(x.tolist()), NDArray[Any])
assert_type(plan(x, out=np.empty(plan.output_shape, np.float64)), NDArray[np.float64])

both = fastpool.plan_max_pool((4, 6), "float64", 2, layout="HW", return_indices=True)
assert_type(both, MaxPoolPlan[Literal[True]])
assert_type(both(x), tuple[NDArray[np.float64], NDArray[Any]])
places = np.empty(both.output_shape, np.int64)
assert_type(both(x, None, places), tuple[NDArray[np.float64], NDArray[Any]])

for with_indices in (False, True):
    unknown = fastpool.plan_max_pool((4, 6), "float64", 2, layout="HW", return_indices=with_indices)
    assert_type(unknown, MaxPoolPlan)
    assert_type(unknown(x), NDArray[Any] | tuple[NDArray[Any], NDArray[Any]])


def known(pooling: MaxPoolPlan[Literal[False]]) -> NDArray[np.float64]:
    return pooling(x)


known(plan)
part, read, write = both.tile(np.s_[1:3, :])
assert_type(part, MaxPoolPlan[Literal[True]])
assert_type(part(x[read])[0], NDArray[np.float64])
assert_type(write, tuple[slice, ...])
assert_type(plan.output_shape, tuple[int, ...])
assert_type(plan.axes[0].output, int)
assert_type(plan.activation, str | None)
assert_type(both.return_indices, Literal[True])
assert_type(plan.explain(), str)
assert_type(plan.draw(title=""), Figure)
answers = compare(plan.input_shape, 2, auto_pad="SAME_UPPER").answers
assert_type(answers[0].output_shape, tuple[int, ...] | None)
means = compare(9, 3, op="average", count_include_pad=True, dtype="uint8")
assert_type(means.answers[0].notes, tuple[str, ...])
unpool = fastpool.plan_max_unpool((2, 3), 2, strides=2, layout="HW")
assert_type(unpool, UnpoolPlan)
assert_type(unpool(x[::2, ::2], np.zeros((2, 3), np.int64)), NDArray[np.float64])
