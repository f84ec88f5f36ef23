"""Callers from C and Cython get what Python gets, or an error code with nothing written.

c/images.c and cython/peaks.pyx are the examples of docs/c-api.md. cython/driver.pyx runs plans on
any addresses at all; an array is an address, or an address and strides.
"""

import ctypes
import functools
import gc
import itertools
import os
import re
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import callers
import cases
import fastpool
import limits
from callers import (
    COMPILER,
    ERRORS,
    HEADER,
    ROOT,
    assert_pooled,
    at,
    bits,
    build,
    load,
    needs_compiler,
    pooled,
    results,
)
from configurations.strategies import examples, pools, unpools
from fastpool._running import capi, outputs

pytestmark = needs_compiler


# ---------------------------------------------------------------------------------------- examples


def test_the_c_example(c_package):
    images = load(c_package[0]["images"])
    x = cases.values((7, 33, 40), "float32", "ties", 0)
    expected = fastpool.max_pool(x, 3, strides=2, layout="NHW")
    for threads in (1, 2, 9):
        y = np.full(expected.shape, 77, np.float32)
        images.pool(x, y, threads)
        cases.assert_same(y, expected)
    for y, threads in ((np.zeros((7, 16, 18), np.float32), 1), (x, 1), (expected, 0)):
        with pytest.raises(ValueError):
            images.pool(x, y, threads)
    with pytest.raises(ValueError, match="kernel_shape"):
        images.pool(x[:, :, :2].copy(), expected, 1)


def test_the_cython_example(cython_package):
    peaks = load(cython_package["peaks"])
    x = cases.values((33, 64), "float32", "bits", 0)
    x[np.isnan(x)] = 0
    maxima, places = fastpool.max_pool(x, 4, strides=4, layout="HW", return_indices=True)
    expected = fastpool.max_unpool(maxima, places, 4, output_shape=x.shape, layout="HW")
    y = np.full_like(x, 77)
    find = peaks.Peaks(x.shape, 4)
    find(x, y)
    cases.assert_same(y, expected)
    find(np.asfortranarray(x)[::-1].copy()[::-1], y)
    cases.assert_same(y, expected)
    with pytest.raises(ValueError, match="x_strides"):
        find(np.asfortranarray(x), y)
    with pytest.raises(ValueError, match="shape"):
        find(x[1:], y)


def test_the_page_shows_the_examples():
    page = ROOT / "docs" / "c-api.md"
    shown = ["c/images.c", "c/means.c", "c/setup.py", "cpp/thumbnails.cpp", "cython/peaks.pyx"]
    shown.append("embedded/program.c")
    for path in shown:
        assert (ROOT / "tests" / "external" / path).read_text() in page.read_text(), path
    cases.check_page("c-api.md", 0)


def test_the_header_is_plain_c99(c_package, tmp_path):
    """Without Python.h it needs nothing; with it, it is compiled without a warning."""
    assert "warning" not in c_package[1]
    source = tmp_path / "plain.c"
    source.write_text(
        "#include <fastpool.h>\n"
        "int main(void) { fastpool_plan plan = {0};"
        " return fastpool_max_pool(&plan, 0, 0, 0, 0, 0, 0, 0, 0) != FASTPOOL_BAD_PLAN"
        " || fastpool_max_unpool(0, 0, 0, 0, 0, 0) != FASTPOOL_BAD_PLAN"
        " || fastpool_avg_pool(&plan, 0, 0, 0, 0, 0, 0) != FASTPOOL_BAD_PLAN; }\n"
    )
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{HEADER.parent}"]
    program = tmp_path / "plain"
    subprocess.run([COMPILER, *flags, str(source), "-o", str(program)], check=True)
    assert subprocess.run([str(program)]).returncode == 0


def test_cython_knows_all_of_the_header():
    pxd = HEADER.parent.with_name("__init__.pxd").read_text()
    names = set(re.findall(r"\b(?:fastpool|FASTPOOL)_\w+", HEADER.read_text()))
    private = {"FASTPOOL_H", "fastpool_functions", "fastpool_imported"}
    assert names - private == set(re.findall(r"\b(?:fastpool|FASTPOOL)_\w+", pxd))


@pytest.mark.parametrize("part", ["MAJOR", "MINOR"])
def test_another_abi_is_an_import_error_with_both_numbers(part, tmp_path):
    """A module that was compiled with the header of the next version."""
    text, count = re.subn(
        rf"(#define FASTPOOL_ABI_{part}) (\d+)",
        lambda found: f"{found[1]} {int(found[2]) + 1}",
        HEADER.read_text(),
    )
    assert count == 1
    numbers = dict(re.findall(r"#define FASTPOOL_ABI_(\w+) (\d+)", HEADER.read_text()))
    newer = {**numbers, part: str(int(numbers[part]) + 1)}
    (tmp_path / "next").mkdir()
    (tmp_path / "next" / "fastpool.h").write_text(text)
    modules, _ = build("c", tmp_path / "c", f"-O0 -I{tmp_path / 'next'}")
    with pytest.raises(ImportError) as raised:
        load(modules["images"])
    for which in (numbers, newer):
        assert f"{which['MAJOR']}.{which['MINOR']}" in str(raised.value)


def run_embedded(name, folder):
    """Build and run a program of tests/external/embedded; the lines that it prints, and errors."""
    libraries = sysconfig.get_config_vars("LIBDIR", "LIBPL")
    folders = [flag for path in libraries for flag in (f"-L{path}", f"-Wl,-rpath,{path}")]
    flags = [f"-I{sysconfig.get_paths()['include']}", f"-I{HEADER.parent}", "-std=c99", "-Wall"]
    source, program = ROOT / "tests" / "external" / "embedded" / f"{name}.c", str(folder / name)
    subprocess.run([COMPILER, *flags, "-Werror", "-c", source, "-o", f"{program}.o"], check=True)
    link = [COMPILER, f"{program}.o", "-o", program, *folders]
    link += [f"-lpython{sysconfig.get_config_var('LDVERSION')}", "-lm", "-ldl", "-lpthread"]
    if subprocess.run(link, capture_output=True).returncode:
        pytest.skip("no Python to link with")
    home = {"PYTHONHOME": f"{sys.base_prefix}:{sys.base_exec_prefix}"}
    path = [str(Path(fastpool.__file__).parents[1]), *filter(None, sys.path)]
    process = subprocess.run(
        [program],
        env={**os.environ, **home, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        timeout=limits.HANG,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines(), process.stderr


def test_a_program(tmp_path):
    assert run_embedded("program", tmp_path)[0] == ["6 8", "3 4"]


def test_an_interpreter_that_is_started_again(tmp_path):
    """Functions of one life are not called in the next, where their module is gone."""
    lines, errors = run_embedded("lives", tmp_path)
    assert lines[:2] == ["pooled", "pooled"] and len(lines) == 6, errors
    # NumPy refuses to be loaded twice in a process; whatever it allows some day is right as well.
    assert set(lines[2:]) <= {"ImportError", "pooled"}, errors


# ----------------------------------------------------------------------------------------- pooling


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_pooling_is_that_of_python(driver, name, isa):
    geometries = [
        ((2, 3, 17, 40), 3, {"strides": 2, "pads": 1}),
        ((2, 17, 40, 3), 3, {"pads": 1, "layout": "NHWC"}),
        ((1, 2, 70), 40, {"pads": (0, 39)}),
    ]
    for (shape, kernel, attributes), indices in itertools.product(geometries, (False, True)):
        x = cases.values(shape, name, "ties", 0)
        plan = fastpool.plan_max_pool(shape, name, kernel, return_indices=indices, **attributes)
        expected = plan(x)
        compiled = driver.Plan(plan)
        for how in ("contiguous", "rows", "planes", "broadcast"):
            arranged = cases.arranged(x, how)
            for threads in (1, 3):
                found = pooled(driver, plan, arranged, threads, compiled=compiled)
                assert_pooled(found, plan(arranged))
        if not plan.channels_last:
            assert_pooled(pooled(driver, plan, x, extra=2, compiled=compiled), expected)
        y, places = results(plan)
        addresses = [None if a is None else a.ctypes.data for a in (x, y, places)]
        assert_pooled((compiled.pool(*addresses), y, places), expected)


@given(case=pools())
@examples(60)
def test_any_pooling_is_that_of_python_or_refused(driver, case):
    """An input that a kernel cannot read in place is refused. Any other gives what Python gets."""
    x = case.x()
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    attributes = {**case.attributes, "return_indices": bool(case.seed % 2), "num_threads": 2}
    plan = fastpool.plan_max_pool(case.shape, case.dtype, case.kernel_shape, **attributes)
    given = {"input_shape": case.shape, "dtype": case.dtype, "kernel_shape": case.kernel_shape}
    compiled = driver.Plan("max_pool", **given, **attributes)
    found = pooled(driver, plan, x, compiled=compiled)
    unit = plan.channel_axis if plan.channels_last and plan.channels > 1 else plan.spatial[-1]
    if outputs.is_ready(x, unit) or not x.size or not found[1].size:
        assert_pooled(found, plan(x))
    else:
        assert found[0] in (ERRORS["FASTPOOL_X_ALIGNMENT"], ERRORS["FASTPOOL_X_STRIDES"])
        kept = (array for array in found[1:] if array is not None)
        assert all((array == np.full_like(array, 77)).all() for array in kept)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("average", [False, True])
def test_tasks_of_a_run_are_shared_by_threads_of_the_caller(driver, average, threads):
    for shape in ((2, 40, 31, 33), (3, 5, 300), (1, 1, 2, 2), (0, 3, 8, 8)):
        kernel = (2,) * (len(shape) - 2)
        x = cases.values(shape, "float32", "ties", 0)
        if average:
            plan = fastpool.plan_avg_pool(shape, "float32", kernel)
        else:
            plan = fastpool.plan_max_pool(shape, "float32", kernel, return_indices=True)
        compiled = callers.compiled_plan(driver, plan)
        y, indices = results(plan)
        at_once = max(1, compiled.tasks // 7)
        parts = [(i, min(i + at_once, compiled.tasks)) for i in range(0, compiled.tasks, at_once)]
        arrays = at(x), at(y), at(indices)
        run = functools.partial(compiled.run_tasks, *arrays)
        with ThreadPoolExecutor(threads) as pool:
            assert not any(pool.map(run, *zip(*reversed(parts), strict=True)) if parts else ())
        assert_pooled((0, y, indices), plan(x))


def test_tasks_that_a_plan_has_not_are_an_error(driver):
    x = np.zeros((2, 3, 8, 8), np.float32)
    plan = fastpool.plan_max_pool(x.shape, "float32", 2)
    compiled, (y, _) = driver.Plan(plan), results(plan)
    n = compiled.tasks
    assert n >= 1
    for first, stop in ((0, n + 1), (1, 0), (n, 2**63), (n + 1, n + 1)):
        code = compiled.run_tasks(at(x), at(y), None, first, stop)
        assert code == ERRORS["FASTPOOL_BAD_TASKS"]
    assert compiled.run_tasks(at(x), at(y), None, n, n) == 0
    assert compiled.run_tasks(at(x), None, None, 0, n) == ERRORS["FASTPOOL_Y_NULL"]
    unpool = driver.Plan("max_unpool", input_shape=x.shape, dtype="float32", kernel_shape=(2, 2))
    assert unpool.tasks == 0
    for bad in (unpool, driver.Plan(None)):
        code = bad.run_tasks(at(x), at(y), at(x), 0, 0)
        assert code == ERRORS["FASTPOOL_BAD_PLAN"]
    assert (y == 77).all()


def test_an_empty_input_may_be_anywhere(driver):
    """Found by random cases: its address, which nothing reads, had to be aligned."""
    plan = fastpool.plan_max_pool((1, 1, 0, 4), "float16", 1, pads=(1, 0, 0, 0))
    x = np.zeros(9, np.uint8)[1:].view(np.float16)[:0].reshape(1, 1, 0, 4)
    y = np.zeros(plan.output_shape, np.float16)
    assert x.ctypes.data % 2 and driver.Plan(plan).pool(at(x), at(y)) == 0
    assert (y == -np.inf).all()


def test_bfloat16_needs_no_package(driver):
    """(Bits that order as the numbers do: all are positive.)"""
    x = cases.values((1, 2, 9, 9), "uint16", "bits", 0) & 0x3FFF
    plan = fastpool.plan_max_pool(x.shape, "bfloat16", 2)
    y = np.zeros(plan.output_shape, np.uint16)
    assert driver.Plan(plan).pool(at(x), at(y)) == 0
    cases.assert_same(y, fastpool.max_pool(x, 2))


def test_a_plan_says_what_to_allocate(driver):
    plan = fastpool.plan_max_pool(
        *((2, 3, 9, 11), "float64", 2),
        **{"return_indices": True, "index_dtype": "int32", "num_threads": 3},
    )
    fields = driver.Plan(plan).fields()
    assert fields.pop("abi") >> 16 == 1 and fields.pop("size") >= 104
    assert fields == {
        **{"ndim": 4, "num_threads": 3 if cases.OPENMP else 1},
        **{"itemsize": 8, "index_itemsize": 4},
        **{"input_shape": plan.input_shape, "output_shape": plan.output_shape},
        **{"input_bytes": 4752, "output_bytes": 3840, "indices_bytes": 1920, "output_itemsize": 8},
    }


ATTRIBUTES = [
    {},
    {"strides": (2, 3)},
    {"pads": (1, 0, 2, 1)},
    {"dilations": (2, 1)},
    {"auto_pad": "SAME_LOWER"},
    {"strides": (3, 3), "ceil_mode": True},
    {"strides": (3, 3), "pads": (0, 0, 2, 2), "ceil_mode": True, "ceil_rule": "keep"},
    {"layout": "NHWC"},
    {"layout": "NHWC", "index_layout": "NHWC"},
    {"nan": "ignore"},
    {"storage_order": 1},
    {"index_axis": 2},
    {"index_axis": -1},
    {"index_dtype": "int32"},
    {"num_threads": 2},
]


@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_attributes_in_c_are_those_of_python(driver, attributes):
    x = cases.values((2, 8, 7, 9), "float32", "nans", 0)
    given = {"input_shape": x.shape, "dtype": "float32", "kernel_shape": (2, 3)}
    given = {**given, "return_indices": True, **attributes}
    plan = fastpool.plan_max_pool(**given)
    compiled = driver.Plan("max_pool", **given)
    assert compiled.fields() == driver.Plan(plan).fields()
    assert_pooled(pooled(driver, plan, x, compiled=compiled), plan(x))
    plan = fastpool.plan_min_pool(**given)
    for compiled in (driver.Plan("max_pool", minimum=1, **given), driver.Plan(plan)):
        assert_pooled(pooled(driver, plan, x, compiled=compiled), plan(x))


# --------------------------------------------------------------------------------------- unpooling


@given(case=unpools())
@examples(60)
def test_any_unpooling_is_that_of_python_or_refused(driver, case):
    x, indices = (np.ascontiguousarray(a.astype(a.dtype.newbyteorder("="))) for a in case_of(case))
    expected = fastpool.max_unpool(x, indices, case.kernel_shape, **case.attributes)
    given = {"input_shape": case.shape, "dtype": case.dtype, "kernel_shape": case.kernel_shape}
    given |= {"index_dtype": case.index_dtype, "num_threads": 2, **case.attributes}
    try:
        compiled = driver.Plan("max_unpool", **given)
    except ValueError as error:
        assert 'index_space: "inferred"' in str(error)
        return
    assert compiled.fields()["output_shape"] == expected.shape
    y = np.full(expected.shape, 77, x.dtype)
    assert compiled.unpool(*(a.ctypes.data for a in (x, indices, y))) == 0
    cases.assert_same(bits(y), bits(expected))


def case_of(case):
    return case.x(), case.indices()


@pytest.mark.parametrize("bad", [-1, 32, 2**31 - 1])
@pytest.mark.parametrize("index_dtype", ["int64", "int32"])
def test_an_index_outside_is_an_error_and_nothing_is_written(driver, index_dtype, bad, isa):
    plan = driver.Plan(
        "max_unpool", input_shape=(2, 4), dtype="float32", kernel_shape=(2, 2), strides=(2, 2),
        layout="HW", index_dtype=index_dtype,
    )  # fmt: skip
    x, y = np.ones((2, 4), np.float32), np.full((4, 8), 77, np.float32)
    for place in np.ndindex(x.shape):
        indices = np.arange(8, dtype=index_dtype).reshape(2, 4)
        indices[place] = bad
        code = plan.unpool(x.ctypes.data, indices.ctypes.data, y.ctypes.data)
        assert code == ERRORS["FASTPOOL_INDEX_OUTSIDE"]
        assert (y == 77).all()


# ------------------------------------------------------------------------------------------ errors


def test_every_error_of_a_pooling(driver):
    x = np.zeros((2, 3, 8, 8), np.float32)
    plan = fastpool.plan_max_pool(x.shape, "float32", 2)
    pairs = fastpool.plan_max_pool(x.shape, "float32", 2, return_indices=True)
    unpool = driver.Plan("max_unpool", input_shape=x.shape, dtype="float32", kernel_shape=(2, 2))
    released = driver.Plan(plan)
    released.release()
    released.release()
    one, two = driver.Plan(plan), driver.Plan(pairs)
    y, z = results(pairs)
    xa, ya, za = (a.ctypes.data for a in (x, y, z))
    strides = x.strides
    odd, gap = (*strides[:2], 33, 4), (*strides[:3], 8)
    y_odd, y_gap = (*y.strides[:2], 29, 4), (*y.strides[:3], 8)
    z_odd, z_gap = (*z.strides[:2], 60, 8), (*z.strides[:3], 16)
    expected = {
        "BAD_PLAN": [driver.Plan(None).pool(xa, ya), released.pool(xa, ya), unpool.pool(xa, ya)],
        "BAD_THREADS": [one.pool(xa, ya, None, -1)],
        "BAD_FLAGS": [one.pool(xa, ya, None, 0, 2), one.pool(xa, ya, None, 0, 2**31)],
        "EXTRA_INDICES": [one.pool(xa, ya, za)],
        "X_NULL": [one.pool(None, ya), two.pool(None, ya, za)],
        "Y_NULL": [one.pool(xa, None)],
        "INDICES_NULL": [two.pool(xa, ya)],
        "X_ALIGNMENT": [one.pool(xa + 1, ya), one.pool((xa + 2, strides), ya)],
        "Y_ALIGNMENT": [one.pool(xa, ya + 2)],
        "INDICES_ALIGNMENT": [two.pool(xa, ya, za + 4)],
        "X_STRIDES": [one.pool((xa, odd), ya), one.pool((xa, gap), ya)],
        "Y_STRIDES": [one.pool(xa, (ya, y_odd)), one.pool(xa, (ya, y_gap))],
        "INDICES_STRIDES": [two.pool(xa, ya, (za, z_odd)), two.pool(xa, ya, (za, z_gap))],
        "OVERLAP": [
            *(one.pool(xa, xa), one.pool(xa, xa + x.nbytes - 4), one.pool(ya + y.nbytes - 4, ya)),
            *(two.pool(xa, ya, ya - ya % 8), two.pool(xa, ya, xa - xa % 8)),
            one.pool(xa, (ya, (0, *y.strides[1:]))),
        ],
    }
    for name, codes in expected.items():
        assert codes == [ERRORS[f"FASTPOOL_{name}"]] * len(codes), name
    assert (y == 77).all() and (z == 77).all() and not x.any()


def test_every_error_of_an_unpooling(driver):
    x = np.zeros((2, 3, 4, 4), np.float32)
    plan = driver.Plan("max_unpool", input_shape=x.shape, dtype="float32", kernel_shape=(2, 2))
    pool = driver.Plan(fastpool.plan_max_pool(x.shape, "float32", 2))
    indices, y = np.zeros(x.shape, np.int64), np.full((2, 3, 5, 5), 77, np.float32)
    xa, ia, ya = (a.ctypes.data for a in (x, indices, y))
    expected = {
        "BAD_PLAN": [driver.Plan(None).unpool(xa, ia, ya), pool.unpool(xa, ia, ya)],
        "BAD_THREADS": [plan.unpool(xa, ia, ya, -1)],
        "BAD_FLAGS": [plan.unpool(xa, ia, ya, 0, 4)],
        "X_NULL": [plan.unpool(None, ia, ya)],
        "Y_NULL": [plan.unpool(xa, ia, None)],
        "INDICES_NULL": [plan.unpool(xa, None, ya)],
        "X_ALIGNMENT": [plan.unpool(xa + 1, ia, ya)],
        "Y_ALIGNMENT": [plan.unpool(xa, ia, ya + 1)],
        "INDICES_ALIGNMENT": [plan.unpool(xa, ia + 4, ya)],
        "OVERLAP": [plan.unpool(xa, ia, xa), plan.unpool(xa, ia, ia), plan.unpool(ya + 4, ia, ya)],
    }
    for name, codes in expected.items():
        assert codes == [ERRORS[f"FASTPOOL_{name}"]] * len(codes), name
    assert (y == 77).all()


def test_every_error_has_a_text(driver):
    texts = [driver.error_text(code) for code in (*ERRORS.values(), -1, 999)]
    assert len(set(texts)) == len(ERRORS) + 1 and texts[-1] == texts[-2]


def test_apart_takes_slices_of_one_buffer(driver):
    """Channels of one batch: their bounds interleave, their elements do not."""
    buffer = cases.values((2, 6, 8, 8), "float32", "ties", 0)
    x, y = buffer[:, :3], buffer[:, 3:]
    plan = fastpool.plan_max_pool(x.shape, "float32", 3, pads=1)
    expected = plan(x)
    compiled = driver.Plan(plan)
    assert compiled.pool(at(x), at(y)) == ERRORS["FASTPOOL_OVERLAP"]
    assert compiled.pool(at(x), at(y), flags=driver.APART) == 0
    cases.assert_same(y, expected)


def test_arrays_without_elements_may_be_null(driver):
    plan = driver.Plan(fastpool.plan_max_pool((0, 3, 8, 8), "float32", 2, return_indices=True))
    assert plan.pool(None, None, None) == 0
    shape = {"input_shape": (0, 3, 4, 4), "dtype": "uint8", "kernel_shape": (2, 2)}
    assert driver.Plan("max_unpool", **shape).unpool(None, None, None) == 0


POOL = {"input_shape": (1, 1, 8, 8), "dtype": "float32", "kernel_shape": (2, 2)}


@pytest.mark.parametrize(
    "change, error, text",
    [
        ({"dtype": None}, TypeError, "dtype.*NULL"),
        ({"dtype": "float31"}, TypeError, "dtype"),
        ({"input_shape": None}, TypeError, "input_shape.*NULL"),
        ({"input_shape": (1, 1, -8, 8)}, ValueError, "input_shape"),
        ({"input_shape": (1, 2**40, 2**40, 8)}, ValueError, "input_shape.*bytes"),
        ({"kernel_shape": None}, TypeError, "kernel_shape"),
        ({"kernel_shape": (0, 2)}, ValueError, "kernel_shape"),
        ({"strides": (-1, 2)}, ValueError, "strides"),
        ({"layout": "HW"}, ValueError, "layout"),
        ({"index_dtype": "int16"}, ValueError, "index_dtype"),
        ({"num_threads": -1}, ValueError, "num_threads"),
    ],
    ids=str,
)
def test_bad_attributes_are_the_errors_of_python(driver, change, error, text):
    for operation in ("max_pool", "max_unpool"):
        with pytest.raises(error, match=text):
            driver.Plan(operation, **{**POOL, **change})


def test_minimum_is_0_or_1(driver):
    with pytest.raises(ValueError, match="minimum: expected 0 or 1, got 2"):
        driver.Plan("max_pool", **POOL, minimum=2)


class Attributes(ctypes.Structure):
    """fastpool_max_pool_attributes."""

    _fields_ = [
        *(("input_shape", ctypes.c_void_p), ("ndim", ctypes.c_int), ("dtype", ctypes.c_char_p)),
        *((name, ctypes.c_void_p) for name in ("kernel_shape", "strides", "pads", "dilations")),
        *((f"text{i}", ctypes.c_char_p) for i in range(6)),
        *((f"number{i}", ctypes.c_int) for i in range(5)),
        ("minimum", ctypes.c_size_t),
    ]


def test_a_caller_compiled_before_minima_gets_maxima():
    """What is after its struct is not read."""
    ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
    capsule = ctypes.py_object(fastpool._C_API), b"fastpool._C_API"
    functions = ctypes.pythonapi.PyCapsule_GetPointer(*capsule)
    made_by = ctypes.c_void_p.from_address(functions + 2 * ctypes.sizeof(ctypes.c_void_p)).value
    sizes = ctypes.c_size_t, ctypes.POINTER(Attributes), ctypes.c_size_t
    plan_max_pool = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *sizes)(made_by)
    shape, kernel = (ctypes.c_ssize_t * 4)(1, 1, 8, 8), (ctypes.c_ssize_t * 2)(2, 2)
    given = Attributes(ctypes.addressof(shape), 4, b"float32", ctypes.addressof(kernel), minimum=7)
    plan = ctypes.create_string_buffer(512)
    assert plan_max_pool(plan, 512, given, Attributes.minimum.offset) == 0
    with pytest.raises(ValueError, match="minimum"):
        plan_max_pool(plan, 512, given, ctypes.sizeof(given))


def test_windows_of_any_length(driver):
    """Windows far larger than the input, and windows without elements."""
    for size, kernel, pads in ((8, 2**20, 2**20 - 5), (0, 2, 3), (5, 2**31 - 1, 2**31 - 4)):
        x = cases.values((1, 2, size, 6), "float32", "ties", 1)
        attributes = {"pads": (pads, 0, 0, 0), "return_indices": True}
        plan = fastpool.plan_max_pool(x.shape, "float32", (kernel, 2), **attributes)
        y, z = (np.full(plan.output_shape, 7, dtype) for dtype in ("float32", "int64"))
        assert driver.Plan(plan).pool(at(x), at(y), at(z)) == 0
        expected = plan(x)
        cases.assert_same(y, expected[0], "values")
        cases.assert_same(z, expected[1], "indices")


def test_plans_that_only_python_runs(driver):
    plan = fastpool.plan_max_pool((1, 1, 8, 8), "float32", 2, activation="Relu")
    with pytest.raises(ValueError, match="activation"):
        driver.Plan(plan)
    with pytest.raises(TypeError, match="MaxPoolPlan, .* or .*, got dict"):
        driver.Plan({})
    shapes = {"output_shape": (1, 1, 12, 12), "index_space": "inferred"}
    with pytest.raises(ValueError, match="index_space"):
        driver.Plan("max_unpool", **POOL, **shapes)


def test_plans_are_released(driver):
    def alive():
        gc.collect()
        return sum(type(o).__name__ in ("Pooling", "Unpooling") for o in gc.get_objects())

    before = alive()
    kept = [driver.Plan(operation, **POOL) for operation in ("max_pool", "max_unpool") * 5]
    assert alive() == before + 10
    kept[0].release()
    assert alive() == before + 9
    del kept
    assert alive() == before


def test_a_struct_of_a_later_version_keeps_what_is_not_known_here():
    """A caller whose header has more fields."""
    struct = (ctypes.c_uint8 * 512)(*[0xA5] * 512)
    plan = fastpool.plan_max_pool((1, 1, 8, 8), "float32", 2)
    capi.from_plan(plan, ctypes.addressof(struct), ctypes.sizeof(struct))
    size = int.from_bytes(bytes(struct[4:8]), sys.byteorder)
    assert 0 < size < 512 and set(struct[size:]) == {0xA5}
