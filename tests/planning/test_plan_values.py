"""Plans are values: immutable, comparable and picklable; planning loads nothing compiled."""

import copy
import io
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import fastpool
import limits
from fastpool._planning import max_pool
from fastpool._plans import make_plan, make_unpool_plan

FULL = {
    "strides": 2,
    "pads": (1, 0, 1, 1),
    "dilations": (1, 2),
    "ceil_mode": True,
    "ceil_rule": "keep",
    "layout": "NHWC",
    "nan": "ignore",
    "activation": "Clip",
    "activation_params": (0.0, 6.0),
    "return_indices": True,
    "index_axis": 1,
    "index_dtype": "int32",
    "index_layout": "NHWC",
    "num_threads": 3,
}


def test_plans_are_immutable():
    plan = make_plan((2, 8, 9, 3), "float32", 3, **FULL)
    with pytest.raises(AttributeError):
        plan.nan = "propagate"
    with pytest.raises(AttributeError):
        plan.pads = (0, 0, 0, 0)


def test_every_field_counts_in_equality():
    plan = make_plan((2, 8, 9, 3), "float32", 3, **FULL)
    same = make_plan([2, 8, 9, 3], "float32", [3, 3], **FULL)
    assert plan == same and hash(plan) == hash(same)
    others = [
        make_plan((3, 8, 9, 3), "float32", 3, **FULL),
        make_plan((2, 8, 9, 3), "float64", 3, **FULL),
        make_plan((2, 8, 9, 3), "float32", 2, **FULL),
    ]
    changed = {"strides": 1, "pads": 1, "dilations": 1, "nan": "propagate", "num_threads": None}
    changed |= {"activation_params": (0.0, 5.0), "return_indices": False, "index_axis": 0}
    changed |= {"index_dtype": "int64", "index_layout": "NCHW"}
    others += [
        make_plan((2, 8, 9, 3), "float32", 3, **{**FULL, name: value})
        for name, value in changed.items()
    ]
    assert all(plan != other for other in others)
    assert len({plan, same, *others}) == len(others) + 1


def test_what_is_kept_next_to_the_fields_stays_in_the_process():
    plan = make_plan((2, 8, 9, 3), "float32", 3, **FULL)
    text, number = repr(plan), hash(plan)
    object.__setattr__(plan, "_prepared", lambda: None)  # as a call does; not picklable
    copies = [pickle.loads(pickle.dumps(plan, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
    for other in (*copies, copy.copy(plan), copy.deepcopy(plan)):
        assert other == plan and hash(other) == number and repr(other) == text
        assert not hasattr(other, "_prepared")


@pytest.mark.parametrize("name", ["MaxPoolPlan", "MinPoolPlan", "UnpoolPlan"])
def test_pickles_name_nothing_that_may_move(name):
    named = []

    class Recorder(pickle.Unpickler):
        def find_class(self, module, name):
            named.append((module, name))
            return super().find_class(module, name)

    plan = make_plan((2, 8, 9, 3), "float32", 3, **FULL)
    if name == "MinPoolPlan":
        plan = fastpool.plan_min_pool((2, 8, 9, 3), "float32", 3, **FULL)
    plan = make_unpool_plan((2, 3, 4, 5), 2) if name == "UnpoolPlan" else plan
    assert Recorder(io.BytesIO(pickle.dumps(plan))).load() == plan
    assert named == [("fastpool", name)]


def test_a_pickle_of_an_unpooling_may_name_its_module():
    """Older pickles do."""
    plan = make_unpool_plan((2, 3, 4, 5), 2)
    text = pickle.dumps(plan, 0)
    assert text.count(b"fastpool\nUnpoolPlan") == 1
    assert pickle.loads(text.replace(b"fastpool\n", b"fastpool._plans\n")) == plan


def test_representation():
    plan = make_plan((1, 64, 112, 112), "float32", 3, strides=2, pads=1)
    assert repr(plan) == (
        "<MaxPoolPlan float32 NCHW (1, 64, 112, 112) -> (1, 64, 56, 56), "
        "kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)>"
    )
    full = repr(make_plan((2, 8, 9, 3), "bfloat16", 3, **FULL))
    for part in ("bfloat16 NHWC", "nan='ignore'", "index_layout='NHWC'", "num_threads=3"):
        assert part in full


def test_none_is_the_default():
    nothing = dict.fromkeys((*FULL, "auto_pad", "storage_order"))
    assert make_plan((2, 3, 8, 9), "int8", 3, **nothing) == make_plan((2, 3, 8, 9), "int8", 3)
    nothing = dict.fromkeys(
        ("strides", "pads", "output_shape", "layout", "index_space", "index_layout")
    )
    assert make_unpool_plan((2, 3, 8, 9), 3, **nothing) == make_unpool_plan((2, 3, 8, 9), 3)


def test_planning_loads_nothing_compiled():
    """The package's own __init__ is left out: it imports the kernels."""
    code = f"""
import sys, types
package = types.ModuleType("fastpool")
package.__path__ = [{str(Path(max_pool.__file__).parent.parent)!r}]
sys.modules["fastpool"] = package
from fastpool._planning import max_pool, max_unpool, parts
from fastpool import _reference
plan = max_pool.MaxPool(**max_pool.resolve((1, 1, 4, 4), "float32", 2))
parts.tile(plan, slice(1))
max_unpool.MaxUnpool(**max_unpool.resolve((1, 1, 4, 4), 2))
_reference.max_pool([[1, 2]], 1, layout="HW")
print(*(name for name in sys.modules if name.startswith("fastpool.")))
"""
    process = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=limits.HANG,
        check=True,
    )
    loaded = set(process.stdout.split())
    planning = {
        "arguments",
        "values",
        "plan_checks",
        "dtypes",
        "geometry",
        "indexing",
        "max_pool",
        "max_unpool",
    }
    planning |= {"borders", "pooled"}
    names = {"_planning", *(f"_planning.{name}" for name in planning | {"parts"})}
    twin = {"average", "blocks", "exact", "lp", "maximum", "windows"}
    names |= {"_reference", *(f"_reference.{name}" for name in twin)}
    names |= {"_running", "_running.activation"}
    assert loaded == {f"fastpool.{name}" for name in names}
