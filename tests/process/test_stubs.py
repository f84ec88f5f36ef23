"""stubs/write.py fills in the stubs of a small package, and says what it has no annotation for."""

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "stubs" / "write.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="needs stubs/write.py")

MODULE = '__all__ = ["pool"]\nfrom ._more import max_pool, min_pool, pool1d, pool2d, pool3d\n\n\n'
MODULE += "def pool(x, pads=(0, 0), layout=LAYOUT, *, nan='propagate', out=None, **unknown): ..."
MORE = "".join(f"def pool{n}d(input, stride={n}): ...\n" for n in (1, 2, 3))
MORE += "def max_pool(input): ...\ndef min_pool(input): ...\n"
STUB = '''"""Types."""

from typing import overload

from .. import typing as t

@overload
def pool(x: NDArray[_T], *, layout: t.Layout) -> NDArray[_T]: ...
@overload
def pool(x: _DataArray, **attributes: int) -> _DataArray: ...
def poolNd() -> Tensor: ...
def mxx_pool() -> MxxPool: ...

class PoolNd(nn.PoolNd): ...
'''
WRITTEN = '''"""Types."""

from typing import overload

from .. import typing as t

__all__ = [
    "pool",
]

@overload
def pool(
    x: NDArray[_T],
    pads: t.Ints | None = (0, 0),
    *,
    layout: t.Layout,
    nan: t.Nan = "propagate",
    out: NDArray[_T] | None = None,
) -> NDArray[_T]: ...
@overload
def pool(
    x: _DataArray,
    pads: t.PadsByDimension | None = (0, 0),
    *,
    nan: t.Nan = "propagate",
    **attributes: int,
) -> _DataArray: ...
def pool1d(input: Tensor, stride: _Ints | None = 1) -> Tensor: ...
def pool2d(input: Tensor, stride: _Ints | None = 2) -> Tensor: ...
def pool3d(input: Tensor, stride: _Ints | None = 3) -> Tensor: ...
def max_pool(input: Tensor) -> MaxPool: ...
def min_pool(input: Tensor) -> MinPool: ...

class Pool1d(nn.Pool1d): ...

class Pool2d(nn.Pool2d): ...

class Pool3d(nn.Pool3d): ...
'''


def write(tmp_path, module=MODULE, stub=STUB, more=MORE):
    """Return what the script writes for a package fastpool.torch with this module and stub."""
    files = {
        "stubs/write.py": SCRIPT.read_text(),
        "stubs/fastpool/torch/__init__.pyi": stub,
        "fastpool/torch/__init__.py": module,
        "fastpool/torch/_more.py": more,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    runpy.run_path(str(tmp_path / "stubs/write.py"), run_name="__main__")
    return (tmp_path / "fastpool/torch/__init__.pyi").read_text()


def test_what_is_filled_in(tmp_path):
    assert write(tmp_path) == WRITTEN


def test_defaults_that_are_no_constants_are_not_shown(tmp_path):
    assert "layout: t.Layout = ...," in write(tmp_path, stub="def pool(x: t.Array) -> int: ...\n")


def test_functions_of_another_origin_stay(tmp_path):
    stub = "def lazy(a: int, b: str) -> None: ...\n"
    assert write(tmp_path, stub=stub).endswith(stub)


def test_parameters_without_an_annotation(tmp_path):
    with pytest.raises(LookupError, match="no annotation for gamma of torch.pool1d"):
        write(tmp_path, more=MORE.replace("stride", "gamma"))


def test_parameters_that_the_module_does_not_have(tmp_path):
    stub = "def pool1d(input: Tensor, padding: int = 0) -> Tensor: ...\n"
    with pytest.raises(LookupError, match="torch.pool1d has no parameter padding"):
        write(tmp_path, stub=stub)


CLASSES = """
class Data:
    axes: tuple
    place: tuple | None = field(default=None, compare=False)
    count: int = 0

class Plan(Base, Data):
    size = 0
"""
PLAN = """@dataclass(frozen=True)
class Plan(_Base):
    axes: tuple[Axis, ...]
    @property
    def size(self) -> int: ...
"""


def test_fields(tmp_path):
    fields = ["place: tuple[int, ...] | None = None", "count: int = 0"]
    lines = PLAN.splitlines(keepends=True)
    lines[3:3] = [f"    {field}\n" for field in fields]
    assert write(tmp_path, module=CLASSES, stub=PLAN) == "".join(lines)


def test_fields_that_the_module_does_not_have(tmp_path):
    with pytest.raises(LookupError, match="Plan has no field axis"):
        write(tmp_path, module=CLASSES, stub=PLAN.replace("axes", "axis"))


def test_minima_have_the_functions_of_maxima(tmp_path):
    stub = '"""Types."""\n\ndef {}() -> MaxPoolPlan: ...\ndef other(x: int) -> int: ...\n'
    module = "def {}(kernel_shape=2): ...\ndef other(x): ...\n"
    for name, function in (("maximum", "max_pool"), ("adaptive", "adaptive_max_pool")):
        put(tmp_path / f"stubs/fastpool/_api/{name}.pyi", stub.format(function))
        put(tmp_path / f"fastpool/_api/{name}.py", module.format(function))
    put(tmp_path / "stubs/fastpool/_api/minimum.pyi", '"""Types of minima."""\n')
    module = "def min_pool(kernel_shape=2): ...\ndef adaptive_min_pool(kernel_shape=2): ...\n"
    put(tmp_path / "fastpool/_api/minimum.py", module)
    write(tmp_path)
    assert (tmp_path / "fastpool/_api/minimum.pyi").read_text() == (
        '"""Types of minima."""\n\n'
        "def min_pool(kernel_shape: t.Ints = 2) -> MinPoolPlan: ...\n"
        "def adaptive_min_pool(kernel_shape: t.Ints = 2) -> MinPoolPlan: ...\n"
    )


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
