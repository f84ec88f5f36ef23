"""Kernels give exactly what the slow twin gives, for any build, threads and attributes."""

import numpy as np
import pytest
from hypothesis import given

import cases
import fastpool
from configurations.strategies import examples, hostile_pools, pools, unpools
from fastpool import _reference
from fastpool._running import builds as running

# More threads than this machine may have: what is asked for must never change a result.
THREADS = [1, 3]

VALUE_ATTRIBUTES = [
    "strides",
    "pads",
    "dilations",
    "auto_pad",
    "ceil_mode",
    "ceil_rule",
    "layout",
    "nan",
]


def runs():
    """Every build with every number of threads."""
    for build in cases.BUILDS:
        with running.using(build):
            for num_threads in THREADS:
                yield f"{build}, {num_threads} threads", num_threads


def assert_pools_as_the_reference(case, op="max_pool"):
    x, pool = case.x(), getattr(fastpool, op)
    before = x.copy()
    expected_y, expected_indices = getattr(_reference, op)(
        x, case.kernel_shape, return_indices=True, **case.attributes
    )
    for what, num_threads in runs():
        attributes = {**case.attributes, "num_threads": num_threads}
        y = pool(x, case.kernel_shape, **attributes)
        cases.assert_same(y, expected_y, f"values alone, {what}")
        y, indices = pool(x, case.kernel_shape, return_indices=True, **attributes)
        cases.assert_same(y, expected_y, f"values with indices, {what}")
        cases.assert_same(indices, expected_indices, f"indices, {what}")
    assert x.tobytes() == before.tobytes(), "the input was changed"


@examples(1000)
@given(case=pools())
def test_max_pool(case):
    assert_pools_as_the_reference(case)


@examples(1000)
@given(case=pools())
def test_min_pool(case):
    assert_pools_as_the_reference(case, "min_pool")


@examples(500)
@given(case=hostile_pools())
def test_attributes_of_any_magnitude(case):
    """Windows, strides and pads around and beyond the width of a machine integer."""
    assert_pools_as_the_reference(case)


@examples(100)
@given(case=pools())
def test_plan_gives_what_the_function_gives(case):
    x = case.x()
    for return_indices in (False, True):
        plan = fastpool.plan_max_pool(
            x.shape, x.dtype, case.kernel_shape, return_indices=return_indices, **case.attributes
        )
        from_plan = plan(x)
        from_call = fastpool.max_pool(
            x, case.kernel_shape, return_indices=return_indices, **case.attributes
        )
        if not return_indices:
            from_plan, from_call = [from_plan], [from_call]
        for array, expected in zip(from_plan, from_call, strict=True):
            cases.assert_same(array, expected)
            assert array.shape == plan.output_shape


@examples(100)
@given(case=pools())
def test_out_is_filled_and_returned(case):
    x = case.x()
    expected_y, expected_indices = fastpool.max_pool(
        x, case.kernel_shape, return_indices=True, **case.attributes
    )
    y = np.full(expected_y.shape, 1, expected_y.dtype)
    indices = np.full(expected_indices.shape, -7, expected_indices.dtype)
    returned = fastpool.max_pool(
        x, case.kernel_shape, return_indices=True, out=y, out_indices=indices, **case.attributes
    )
    assert returned[0] is y and returned[1] is indices
    cases.assert_same(y, expected_y)
    cases.assert_same(indices, expected_indices)
    y[...] = 1
    assert fastpool.max_pool(x, case.kernel_shape, out=y, **case.attributes) is y
    cases.assert_same(y, expected_y)


@examples(300)
@given(case=unpools())
def test_max_unpool(case):
    x, indices = case.x(), case.indices()
    before = x.copy(), indices.copy()
    expected = _reference.max_unpool(x, indices, case.kernel_shape, **case.attributes)
    for what, num_threads in runs():
        attributes = {**case.attributes, "num_threads": num_threads}
        y = fastpool.max_unpool(x, indices, case.kernel_shape, **attributes)
        cases.assert_same(y, expected, what)
        y[...] = 1
        returned = fastpool.max_unpool(x, indices, case.kernel_shape, out=y, **attributes)
        assert returned is y
        cases.assert_same(y, expected, f"out=, {what}")
    assert x.tobytes() == before[0].tobytes() and indices.tobytes() == before[1].tobytes()


@pytest.mark.parametrize("index_layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_round_trip(name, index_layout, isa):
    """Unpooling with the pool's own indices puts every chosen element back where it came from."""
    x = cases.values((2, 12, 13, 5), name, "bits", 0)
    y, indices = fastpool.max_pool(
        x, 3, strides=3, layout="NHWC", return_indices=True, index_layout=index_layout
    )
    restored = fastpool.max_unpool(
        y,
        indices,
        3,
        strides=3,
        layout="NHWC",
        output_shape=x.shape,
        index_layout=index_layout,
    )
    chosen = np.zeros(x.shape, bool)
    order = chosen if index_layout == "NHWC" else chosen.transpose(0, 3, 1, 2)
    order[np.unravel_index(indices.reshape(-1), order.shape)] = True
    cases.assert_same(restored, np.where(chosen, x, np.zeros((), x.dtype)).astype(x.dtype))


@pytest.mark.parametrize("name", cases.FLOAT_NAMES + ["int8", "uint16", "int64"])
def test_activation_is_applied_to_the_values_alone(name, isa):
    x = cases.values((2, 3, 9, 37), name, "bits", 1)
    activations = [("Relu", ()), ("Relu", (0.0, 5.0)), ("Clip", (-2.0, 3.0))]
    if name in cases.FLOAT_NAMES:
        activations += [("LeakyRelu", (0.25,)), ("HardSigmoid", (0.5, 0.25)), ("Tanh", ())]
        activations += [("Sigmoid", ()), ("Silu", ())]
    for activation, params in activations:
        attributes = {
            "strides": 2,
            "pads": 1,
            "return_indices": True,
            "activation": activation,
            "activation_params": params,
        }
        y, indices = fastpool.max_pool(x, 3, **attributes)
        expected_y, expected_indices = _reference.max_pool(x, 3, **attributes)
        cases.assert_same(y, expected_y, activation)
        cases.assert_same(indices, expected_indices, activation)
        attributes["return_indices"] = False
        cases.assert_same(fastpool.max_pool(x, 3, **attributes), expected_y, activation)
