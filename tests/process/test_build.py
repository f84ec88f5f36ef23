"""The package selects its build, imports only what it needs, and keeps, compares, pickles plans."""

import pickle
import statistics
from pathlib import Path

import numpy as np
import pytest

import cases
import fastpool
from fastpool._api import maximum as api
from fastpool._running import builds as running

CHOSEN = """
import io, contextlib, numpy, fastpool
text = io.StringIO()
with contextlib.redirect_stdout(text):
    fastpool.show_config()
x = numpy.arange(16.0).reshape(1, 1, 4, 4)
assert fastpool.max_pool(x, 2, strides=2).tolist() == [[[[5, 7], [13, 15]]]]
print(text.getvalue())
"""


@pytest.mark.parametrize("name", cases.BUILDS)
def test_a_build_can_be_forced(name):
    process = cases.run_python(CHOSEN, FASTPOOL_ISA=name)
    assert process.returncode == 0, process.stderr
    assert name in process.stdout


@pytest.mark.parametrize("name", ["mmx", "AVX2", "-1"])
def test_an_unknown_build_is_an_import_error_that_names_the_others(name):
    process = cases.run_python("import fastpool", FASTPOOL_ISA=name)
    assert process.returncode == 1
    last = process.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError")
    for known in ["FASTPOOL_ISA", name, *cases.BUILDS]:
        assert known in last


def test_a_checkout_without_a_build_says_what_to_do():
    last = cases.error_without("fastpool._kernels", "import fastpool")
    assert last.startswith(f"ImportError: {Path(fastpool.__file__).parent} has no compiled module")
    assert "another folder" in last and last.endswith("pip install -e .")


def test_an_empty_isa_is_no_choice():
    assert cases.run_python(CHOSEN, FASTPOOL_ISA="").returncode == 0


def test_every_build_runs_its_own_module():
    """A forced build is really another compiled module, not another name for the same one."""
    assert "baseline" in cases.BUILDS
    modules = running.builds()
    assert len({module.__file__ for module in modules.values()}) == len(modules)


def test_using_restores_the_build():
    x = np.zeros((1, 1, 4, 4), np.float32)
    with pytest.raises(KeyError), running.using(cases.BUILDS[0]):
        fastpool.max_pool(x, 2)
        raise KeyError
    with pytest.raises((KeyError, ValueError, ImportError)), running.using("mmx"):
        pass
    fastpool.max_pool(x, 2)


def test_import_loads_numpy_and_the_standard_library_only():
    code = """
import sys, numpy
before = set(sys.modules)
import fastpool
loaded = {name.partition(".")[0] for name in set(sys.modules) - before} - {"fastpool", "numpy"}
# Every module that Cython compiled registers these two for itself.
loaded -= {name for name in loaded if name.startswith("_cython_")} | {"cython_runtime"}
print(*sorted(loaded - set(sys.stdlib_module_names)))
print(*sorted(name for name in sys.modules if name.startswith("fastpool")))
print(*sorted(set(sys.modules) & {"onnx", "openvino", "torch", "ml_dtypes", "threadpoolctl"}))
"""
    process = cases.run_python(code)
    assert process.returncode == 0, process.stderr
    foreign, own, peers = process.stdout.split("\n")[:3]
    assert foreign == "" and peers == ""
    assert "fastpool.onnx" not in own.split() and "fastpool.openvino" not in own.split()


def test_front_ends_load_when_first_used():
    code = """
import sys, fastpool
assert fastpool.onnx.max_pool and fastpool.openvino.max_pool
assert not set(sys.modules) & {"onnx", "openvino", "onnxruntime"}
"""
    process = cases.run_python(code)
    assert process.returncode == 0, process.stderr
    with pytest.raises(AttributeError):
        getattr(fastpool, "no_such_name")  # noqa: B009


def test_front_ends_are_listed_before_they_are_imported():
    code = """
import sys, fastpool
names = "conventions dask files onnx openvino torch typing xarray".split()
assert {*names, "max_pool"} <= {*dir(fastpool)}
assert not {f"fastpool.{name}" for name in names} & {*sys.modules}
"""
    process = cases.run_python(code)
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("package", ["torch", "dask", "xarray"])
def test_a_front_end_without_its_package_says_what_to_install(package):
    said = f'fastpool.{package} needs {package}: pip install "fastpool[{package}]"'
    for code, error in {
        f"import fastpool; fastpool.{package}": "AttributeError",
        f"import fastpool.{package}": "ImportError",
        f"from fastpool import {package}": "ImportError",
    }.items():
        assert cases.error_without(package, code) == f"{error}: {said}"
    # What gets every name of dir() expects no other error.
    code = f"""
import sys
sys.modules[{package!r}] = None
import inspect, fastpool
assert not hasattr(fastpool, {package!r})
assert "max_pool" in dict(inspect.getmembers(fastpool, inspect.isfunction))
"""
    process = cases.run_python(code)
    assert process.returncode == 0, process.stderr


def test_what_compiled_callers_need_is_installed():
    """The wheel holds the header, where `get_include` says, and Cython's declarations."""
    package = Path(fastpool.__file__).parent
    assert Path(fastpool.get_include()) == package / "include"
    for name in ("include/fastpool.h", "__init__.pxd", "py.typed"):
        assert (package / name).is_file(), name


def test_import_time_beyond_numpy(tmp_path):
    """Half of NumPy's own at most, in the same process.

    On an idle machine it takes a third of NumPy's processor time, with two busy ones two fifths, as
    many as valgrind counts instructions.
    """
    code = """
import time
start = time.process_time()
import numpy
middle = time.process_time()
import fastpool
print(middle - start, time.process_time() - middle)
"""
    # An installed package comes with its byte code. Here the first run makes it.
    cache = {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    runs = [map(float, cases.run_python(code, **cache).stdout.split()) for _ in range(7)]
    share = statistics.median(seconds / numpy_seconds for numpy_seconds, seconds in runs[1:])
    assert share < 1 / 2, f"import takes {share:.2f} of NumPy's"


def test_show_config_names_what_is_in_use(capsys):
    for name in cases.BUILDS:
        with running.using(name):
            fastpool.show_config()
        text = capsys.readouterr().out
        assert name in text and fastpool.__version__ in text
        assert "by default" in text if cases.OPENMP else "built without OpenMP" in text


def test_public_names():
    for name in ("max_pool", "max_unpool", "plan_max_pool", "show_config", "__version__"):
        assert getattr(fastpool, name)
    for name in fastpool.__all__:
        assert hasattr(fastpool, name)
        assert getattr(fastpool, name).__doc__ or name == "__version__"


# ------------------------------------------------------------------------------------------ plans

ATTRIBUTES = {"strides": 2, "pads": 1, "return_indices": True, "nan": "ignore", "num_threads": 2}


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_plans_are_values(name):
    """Equal plans are equal, hash alike, and come through pickle and a copy able to run."""
    x = cases.values((2, 3, 9, 9), name, "ties", 0)
    plan, same = (fastpool.plan_max_pool(x.shape, x.dtype, 3, **ATTRIBUTES) for _ in range(2))
    other = fastpool.plan_max_pool(x.shape, x.dtype, 3, **{**ATTRIBUTES, "pads": 0})
    assert plan == same and hash(plan) == hash(same) and plan != other
    assert len({plan, same, other}) == 2
    expected = plan(x)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        loaded = pickle.loads(pickle.dumps(plan, protocol))
        assert loaded == plan and hash(loaded) == hash(plan)
        for array, correct in zip(loaded(x), expected, strict=True):
            cases.assert_same(array, correct)
    with pytest.raises((AttributeError, TypeError)):
        plan.nan = "propagate"


def test_a_plan_tells_its_geometry():
    plan = fastpool.plan_max_pool((1, 64, 112, 112), "float32", 3, strides=2, auto_pad="SAME_UPPER")
    assert plan.input_shape == (1, 64, 112, 112)
    assert plan.output_shape == (1, 64, 56, 56)
    assert tuple(plan.pads) == (0, 0, 1, 1)
    assert tuple(plan.kernel_shape) == (3, 3) and tuple(plan.strides) == (2, 2)
    assert tuple(plan.dilations) == (1, 1)


def test_a_plan_pickled_here_runs_in_a_new_process(tmp_path):
    plan = fastpool.plan_max_pool((1, 1, 4, 4), "float32", 2, strides=2)
    (tmp_path / "plan").write_bytes(pickle.dumps(plan))
    code = f"""
import pickle, numpy
plan = pickle.load(open({str(tmp_path / "plan")!r}, "rb"))
print(plan(numpy.arange(16, dtype="f4").reshape(1, 1, 4, 4)).tolist())
"""
    process = cases.run_python(code)
    assert process.stdout.strip() == "[[[[5.0, 7.0], [13.0, 15.0]]]]", process.stderr


def test_repeated_calls_do_not_plan_again(monkeypatch):
    """The cache is what makes a tiny call cheap; unhashable attributes must hit it too."""
    calls = []
    make = api._pool_plans._make

    def counting(*arguments):
        calls.append(arguments)
        return make(*arguments)

    monkeypatch.setattr(api._pool_plans, "_make", counting)
    x = np.zeros((1, 1, 23, 29), np.float32)
    for _ in range(5):
        fastpool.max_pool(x, 2, strides=[2, 3], pads=np.array([0, 1, 0, 1]))
    assert len(calls) == 1
    # A bool is no int and 1.0 no 1, although they compare equal: the cache must not mix them up.
    fastpool.max_pool(x, 1)
    for kernel in (True, 1.0):
        with pytest.raises(TypeError):
            fastpool.max_pool(x, kernel)
    fastpool.max_pool(x, 2, strides=(1, 1))
    for strides in ((True, 1), (1, 1.0), 1.0):
        with pytest.raises(TypeError):
            fastpool.max_pool(x, 2, strides=strides)
    fastpool.max_pool(x, 2, activation="Clip", activation_params=(1, 5.0))
    with pytest.raises(TypeError):
        fastpool.max_pool(x, 2, activation="Clip", activation_params=(True, 5.0))
    fastpool.max_pool(x, 2, storage_order=0, ceil_mode=0)
    for attributes in ({"storage_order": 0.0}, {"ceil_mode": 0.0}, {"index_axis": False}):
        with pytest.raises(TypeError):
            fastpool.max_pool(x, 2, **attributes)


def test_the_cache_is_bounded_and_shared_safely():
    """Thousands of geometries from several threads: right answers, no growth without end."""
    wrong = []

    def pool(first):
        for width in range(first, first + 1500, 3):
            x = np.full((1, 1, 1, width), width, np.int32)
            y = fastpool.max_pool(x, (1, 3), pads=(0, 1, 0, 1))
            if y.shape != x.shape or (y != width).any():
                wrong.append(width)

    cases.in_threads(pool, (3, 4, 5))
    assert not wrong
