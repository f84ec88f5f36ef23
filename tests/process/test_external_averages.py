"""Averages through C, C++ and Cython have Python's bits, or an error code with nothing written.

c/means.c and cpp/thumbnails.cpp are examples of docs/c-api.md. test_external.py says what the
driver is.
"""

import ctypes
import gc
import os

import numpy as np
import pytest

import cases
import fastpool
from callers import ERRORS, assert_pooled, at, load, needs_compiler, pooled, results
from fastpool._running import capi

pytestmark = needs_compiler

# Bytes of the struct of a plan in the header of ABI 1.0, and where the function is in it.
FIRST_SIZE, FIRST_RUN = 104, 72


# ----------------------------------------------------------------------------------------- results


def test_the_c_example(c_package):
    means = load(c_package[0]["means"])
    x = cases.values((7, 33, 40, 5), "float32", "bits", 0)
    for given in (x, x[::2, ::-1, 1:]):
        y = np.full((given.shape[0], 5), 77, np.float32)
        means.pool(given, y)
        cases.assert_same(y, fastpool.global_avg_pool(given, layout="NHWC", keepdims=False))
    bad = [
        ((x, y), "y: expected"),
        ((np.zeros(x.shape), y), "x: expected"),
        ((x[0], y), "x: expected"),
        ((x[:4, ..., ::-1], y), "x_strides"),
        ((x[:4, :0], y), "output_size"),
    ]
    for arguments, text in bad:
        with pytest.raises(ValueError, match=text):
            means.pool(*arguments)


def test_the_cpp_example(cpp_package):
    modules, said = cpp_package
    assert "warning" not in said
    shrink = load(modules["thumbnails"]).shrink
    x = cases.values((3, 33, 40, 3), "uint8", "bits", 0)
    plan = fastpool.plan_avg_pool(
        *(x.shape, x.dtype, 4), strides=4, result_dtype="float32", layout="NHWC"
    )
    y, _ = results(plan)
    for given in (x, x[:, ::-1]):
        shrink(given, y, 4)
        cases.assert_same(y, plan(given))
    for bad, text in (((x, y[1:], 4), "y: expected"), ((x[..., ::-1], y, 4), "x_strides")):
        with pytest.raises(ValueError, match=text):
            shrink(*bad)
    with pytest.raises(ValueError, match="kernel_shape"):
        shrink(x, y, 0)


RESULTS = [
    *((name, name) for name in cases.DTYPE_NAMES),
    *([("bfloat16", "float32")] if cases.ml_dtypes else []),
    *(("float16", "float64"), ("float32", "float64")),
    *(("uint8", "float32"), ("bool", "float64"), ("int8", "int32"), ("uint16", "int64")),
]
GEOMETRIES = [
    ((2, 4, 19, 23), (3, 2), {"pads": 1}),
    ((3, 70, 5, 9), 2, {"strides": 2, "count_include_pad": True, "pads": 1, "ceil_mode": True}),
    ((2, 17, 12, 3), (3, 4), {"strides": (2, 1), "layout": "NHWC"}),
    ((2, 3, 70), 40, {"pads": (0, 39), "dilations": 2}),
]


@pytest.mark.parametrize("dtypes", RESULTS, ids=":".join)
def test_means_are_those_of_python(driver, dtypes, isa):
    name, result = dtypes
    for shape, kernel, attributes in GEOMETRIES:
        x = cases.values(shape, name, "bits", 0)
        plan = fastpool.plan_avg_pool(shape, name, kernel, result_dtype=result, **attributes)
        compiled = driver.AveragePlan(plan)
        for how in ("contiguous", "rows", "planes", "broadcast"):
            arranged = cases.arranged(x, how)
            for threads in (1, 3):
                found = pooled(driver, plan, arranged, threads, compiled=compiled)
                assert_pooled(found, plan(arranged))
        if not plan.channels_last:
            assert_pooled(pooled(driver, plan, x, extra=2, compiled=compiled), plan(x))
        y, _ = results(plan)
        assert_pooled((compiled.pool(x.ctypes.data, y.ctypes.data), y, None), plan(x))


ATTRIBUTES = [
    {},
    {"strides": (2, 3)},
    {"pads": (1, 0, 2, 1)},
    {"pads": (1, 0, 2, 1), "count_include_pad": True},
    {"dilations": (2, 1)},
    {"auto_pad": "SAME_LOWER"},
    {"strides": (3, 3), "pads": (0, 0, 2, 2), "ceil_mode": True, "ceil_rule": "keep"},
    {"strides": (4, 4), "ceil_mode": True, "count_include_pad": True, "beyond": "count"},
    {"divisor": -7},
    {"divisor": 2**31 - 1},
    {"result_dtype": "float64"},
    {"dtype": "int16", "rounding": "floor"},
    {"dtype": "uint8", "divisor": 1, "result_dtype": "int32"},
    {"numerics": "sequential"},
    {"layout": "NHWC"},
    {"nan": "ignore"},
    {"num_threads": 2},
]


@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_attributes_in_c_are_those_of_python(driver, attributes):
    given = {"dtype": "float32", "input_shape": (2, 8, 7, 9), "kernel_shape": (2, 3), **attributes}
    x = cases.values(given["input_shape"], given["dtype"], "nans", 0)
    plan = fastpool.plan_avg_pool(**given)
    compiled = driver.AveragePlan("avg_pool", **given)
    assert compiled.fields() == driver.AveragePlan(plan).fields()
    assert_pooled(pooled(driver, plan, x, compiled=compiled), plan(x))


@pytest.mark.parametrize("output_size", [(1, 1), (2, 3), (5, 12), (0, 3)])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_an_output_size_is_adaptive_pooling(driver, layout, output_size):
    x = cases.values((2, 9, 8, 9), "float32", "bits", 0)
    values = {"result_dtype": "float64", "numerics": "exact", "layout": layout, "num_threads": 2}
    given = {"input_shape": x.shape, "dtype": "float32", **values}
    plan = fastpool.plan_adaptive_avg_pool(x.shape, "float32", output_size, **values)
    compiled = driver.AveragePlan("avg_pool", output_size=output_size, **given)
    assert compiled.fields() == driver.AveragePlan(plan).fields()
    assert_pooled(pooled(driver, plan, x, compiled=compiled), plan(x))
    if output_size == (1, 1):
        plan = fastpool.plan_global_avg_pool(x.shape, "float32", **values)
        assert_pooled(pooled(driver, plan, x, compiled=compiled), plan(x))


def test_a_plan_says_what_to_allocate(driver):
    plan = fastpool.plan_avg_pool((2, 3, 9, 11), "uint8", 2, result_dtype="float64", num_threads=3)
    fields = driver.AveragePlan(plan).fields()
    assert fields.pop("abi") == 1 << 16 | 3 and fields.pop("size") == 136
    assert fields == {
        **{"ndim": 4, "num_threads": 3 if cases.OPENMP else 1},
        **{"itemsize": 1, "output_itemsize": 8, "index_itemsize": 0},
        **{"input_shape": plan.input_shape, "output_shape": plan.output_shape},
        **{"input_bytes": 594, "output_bytes": 3840, "indices_bytes": 0},
    }


def test_bfloat16_needs_no_package(driver):
    x = np.array([0x3F80, 0x4040, 0x4000, 0x4000], np.uint16).reshape(1, 1, 2, 2)  # 1, 3, 2, 2
    for result, expected in (("bfloat16", np.uint16(0x4000)), ("float32", np.float32(2))):
        plan = fastpool.plan_avg_pool(x.shape, "bfloat16", 2, result_dtype=result)
        y = np.zeros(1, expected.dtype)
        assert driver.AveragePlan(plan).pool(at(x), y.ctypes.data) == 0
        assert y == expected


# ------------------------------------------------------------------------------------------ errors


def test_every_error_of_a_run(driver):
    x = np.zeros((2, 3, 8, 8), np.float32)
    plan = fastpool.plan_avg_pool(x.shape, "float32", 2, result_dtype="float64")
    maxima = fastpool.plan_max_pool(x.shape, "float32", 2)
    unpool = driver.AveragePlan(
        "max_unpool", input_shape=x.shape, dtype="float32", kernel_shape=(2, 2)
    )
    released, one = driver.AveragePlan(plan), driver.AveragePlan(plan)
    released.release()
    released.release()
    (y, _), strides = results(plan), x.strides
    xa, ya = x.ctypes.data, y.ctypes.data
    last = ya + y.nbytes - 4
    expected = {
        "BAD_PLAN": [
            *(driver.AveragePlan(None).pool(xa, ya), released.pool(xa, ya), unpool.pool(xa, ya)),
            *(driver.AveragePlan(maxima).pool(xa, ya), driver.Plan(plan).pool(xa, ya)),
        ],
        "BAD_THREADS": [one.pool(xa, ya, None, -1)],
        "BAD_FLAGS": [one.pool(xa, ya, None, 0, 2), one.pool(xa, ya, None, 0, 2**31)],
        "X_NULL": [one.pool(None, ya)],
        "Y_NULL": [one.pool(xa, None)],
        "X_ALIGNMENT": [one.pool(xa + 1, ya), one.pool((xa + 2, strides), ya)],
        "Y_ALIGNMENT": [one.pool(xa, ya + 2), one.pool(xa, ya + 4)],
        "X_STRIDES": [
            one.pool((xa, (*strides[:2], 33, 4)), ya), one.pool((xa, (*strides[:3], 8)), ya),
        ],
        "Y_STRIDES": [
            one.pool(xa, (ya, (*y.strides[:2], 60, 8))), one.pool(xa, (ya, (*y.strides[:3], 16))),
        ],
        "OVERLAP": [
            *(one.pool(xa, xa - xa % 8), one.pool(last, ya), one.pool(xa, xa + x.nbytes - 8)),
            one.pool(xa, (ya, (0, *y.strides[1:]))),
        ],
    }  # fmt: skip
    for name, codes in expected.items():
        assert codes == [ERRORS[f"FASTPOOL_{name}"]] * len(codes), name
    assert (y == 77).all() and not x.any()


def test_apart_takes_slices_of_one_buffer(driver):
    """Channels of one batch: their bounds interleave, their elements do not."""
    buffer = cases.values((2, 6, 8, 8), "float32", "ties", 0)
    x, y = buffer[:, :3], buffer[:, 3:]
    plan = fastpool.plan_avg_pool(x.shape, "float32", 3, pads=1)
    expected, compiled = plan(x), driver.AveragePlan(plan)
    assert compiled.pool(at(x), at(y)) == ERRORS["FASTPOOL_OVERLAP"]
    assert compiled.pool(at(x), at(y), flags=driver.APART) == 0
    cases.assert_same(y, expected)


def test_arrays_without_elements_may_be_anywhere(driver):
    empty = driver.AveragePlan(fastpool.plan_avg_pool((0, 3, 8, 8), "float32", 2))
    assert empty.pool(None, None) == 0
    plan = fastpool.plan_avg_pool((1, 1, 0, 4), "float32", 1, pads=(1, 0, 0, 0))
    y, _ = results(plan)
    assert driver.AveragePlan(plan).pool(1, at(y)) == 0
    assert (y == 0).all()


POOL = {"input_shape": (1, 1, 8, 8), "dtype": "float32", "kernel_shape": (2, 2)}
SIZE = {"kernel_shape": None, "output_size": (2, 2)}


@pytest.mark.parametrize(
    "change, error, text",
    [
        ({"dtype": None}, TypeError, "dtype.*NULL"),
        ({**SIZE, "dtype": None}, TypeError, "dtype.*NULL"),
        ({"input_shape": None}, TypeError, "input_shape.*NULL"),
        ({"kernel_shape": None}, TypeError, "kernel_shape"),
        ({"kernel_shape": (0, 2)}, ValueError, "kernel_shape"),
        ({"ceil_mode": 2}, ValueError, "ceil_mode"),
        ({"count_include_pad": 2}, ValueError, "count_include_pad"),
        ({"beyond": "clip"}, ValueError, "beyond"),
        ({"result_dtype": "float16"}, TypeError, "^result_dtype: expected one of"),
        ({"dtype": "uint8", "divisor": 1}, ValueError, "^result_dtype: uint8 does not hold"),
        ({"rounding": "trunc"}, ValueError, "rounding"),
        ({"numerics": "fast"}, ValueError, "numerics"),
        ({"layout": "HW"}, ValueError, "layout"),
        ({"num_threads": -1}, ValueError, "num_threads"),
        ({**SIZE, "output_size": (-1, 2)}, ValueError, "output_size"),
        ({"output_size": (2, 2)}, ValueError, "output_size.*kernel_shape.*NULL or 0.*2, 2"),
        ({**SIZE, "divisor": 3}, ValueError, "output_size.*divisor must be NULL or 0, got 3"),
        ({**SIZE, "count_include_pad": 1}, ValueError, "output_size.*count_include_pad"),
    ],
    ids=str,
)
def test_bad_attributes_are_errors(driver, change, error, text):
    with pytest.raises(error, match=text):
        driver.AveragePlan("avg_pool", **{**POOL, **change})


def test_plans_that_only_python_runs(driver):
    plan = fastpool.plan_avg_pool(**{**POOL, "kernel_shape": 2, "activation": "Relu"})
    with pytest.raises(ValueError, match="activation"):
        driver.AveragePlan(plan)
    with pytest.raises(TypeError, match="MinPoolPlan or a fastpool.AvgPoolPlan, got dict"):
        driver.AveragePlan({})


def test_plans_are_released(driver):
    def alive():
        gc.collect()
        return sum(type(o).__name__ == "Averaging" for o in gc.get_objects())

    before = alive()
    kept = [driver.AveragePlan("avg_pool", **POOL) for _ in range(5)]
    assert alive() == before + 5
    kept[0].release()
    assert alive() == before + 4
    del kept
    assert alive() == before


def test_a_program_compiled_with_the_first_header():
    """Its struct of a plan is shorter; what follows it in memory is neither written nor read."""
    struct = (ctypes.c_uint8 * 256)(*[0xA5] * 256)
    x = cases.values((1, 1, 8, 8), "float32", "ties", 0)
    plan = fastpool.plan_max_pool(x.shape, "float32", 2)
    means = fastpool.plan_avg_pool(x.shape, "float32", 2)
    y, _ = results(plan)
    capi.from_plan(plan, ctypes.addressof(struct), FIRST_SIZE)
    assert set(struct[FIRST_SIZE:]) == {0xA5}
    address = ctypes.c_void_p.from_buffer(struct, FIRST_RUN).value
    kinds = [ctypes.c_void_p] * 7 + [ctypes.c_int, ctypes.c_uint]
    run = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(address)
    none = None, None, None
    assert run(ctypes.addressof(struct), x.ctypes.data, None, y.ctypes.data, *none, 1, 0) == 0
    cases.assert_same(y, plan(x))
    capi.from_plan(means, ctypes.addressof(struct), FIRST_SIZE)
    assert ctypes.c_void_p.from_buffer(struct, FIRST_RUN).value is None  # FASTPOOL_BAD_PLAN
    assert set(struct[FIRST_SIZE:]) == {0xA5}


# ----------------------------------------------------------------------------------------- threads


def test_a_thread_that_python_does_not_know(driver, isa):
    x = cases.values((4, 8, 64, 64), "float32", "bits", 0)
    plan = fastpool.plan_avg_pool(x.shape, x.dtype, 5, pads=2)
    compiled, expected = driver.AveragePlan(plan), plan(x)
    for threads in (1, 3):
        y, _ = results(plan)
        code, known = compiled.pool_elsewhere(at(x), at(y), None, threads)
        assert not known
        assert_pooled((code, y, None), expected)


def test_threads_share_a_plan(driver, isa):
    """Eight at once, with results of their own; each call finds scratch that no other uses."""
    x = cases.values((2, 8, 64, 64), "float32", "bits", 0)
    plan = fastpool.plan_avg_pool(x.shape, x.dtype, 5, pads=2, result_dtype="float64")
    compiled, expected = driver.AveragePlan(plan), plan(x)
    wrong = []

    def pool(number):
        y, _ = results(plan)
        for _ in range(10):
            y.fill(number)
            run = compiled.pool if number % 2 else compiled.pool_elsewhere
            run(at(x), at(y), None, 1 + number // 4)
            if not np.array_equal(y, expected, equal_nan=True):
                wrong.append(number)

    cases.in_threads(pool, range(8))
    assert not wrong


def test_python_runs_while_averages_do(driver):
    x = np.zeros((4, 16, 512, 512), np.float32)
    plan = fastpool.plan_avg_pool(x.shape, x.dtype, 5, numerics="sequential")
    compiled, (y, _) = driver.AveragePlan(plan), results(plan)
    codes = []
    assert cases.another_thread_runs_during(
        lambda: codes.append(compiled.pool(at(x), at(y), None, 1))
    )
    assert not any(codes)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_runs_plans_of_its_parent(cython_package):
    process = cases.run_python(FORK.format(path=str(cython_package["driver"])))
    assert process.returncode == 0, process.stderr


FORK = """
import importlib.util, os, sys, warnings
import numpy as np
import fastpool
warnings.simplefilter("ignore", DeprecationWarning)
spec = importlib.util.spec_from_file_location("driver", {path!r})
driver = importlib.util.module_from_spec(spec)
spec.loader.exec_module(driver)
x = np.random.default_rng(0).random((8, 32, 128, 128), np.float32)
plan = fastpool.plan_avg_pool(x.shape, x.dtype, 3)
expected, compiled = plan(x), driver.AveragePlan(plan)
def right():
    y = np.empty_like(expected)
    return compiled.pool(x.ctypes.data, y.ctypes.data, None, 2) == 0 and (y == expected).all()
assert right()
child = os.fork()
if child == 0:
    os._exit(0 if right() and right() else 3)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert right()
sys.exit(status)
"""
