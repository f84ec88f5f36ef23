"""The types that checkers see in tests/typing are the types of the results at run time."""

import ast
import importlib
import inspect
import re
import runpy
import types
import typing
from pathlib import Path

import numpy as np
import pytest

TYPING = Path(__file__).parents[1] / "typing"
NEEDED = {"tensors": ["torch"], "chunks": ["dask", "xarray"], "wrong": ["dask", "xarray"]}


def holds(value, expected):
    """Is a value of this type? Of element types those that are known are compared."""
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if expected is typing.Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(holds(value, argument) for argument in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is np.ndarray:
        (element,) = typing.get_args(arguments[1])
        return type(value) is np.ndarray and element in (typing.Any, value.dtype.type)
    if origin is tuple and arguments[-1] is not ...:
        return len(value) == len(arguments) and all(map(holds, value, arguments))
    return isinstance(value, origin or expected)


@pytest.mark.parametrize("file", sorted(TYPING.glob("*.py")), ids=lambda file: file.stem)
def test_types_hold(file, monkeypatch, capsys):
    checked = []

    def assert_type(value, expected):
        assert holds(value, expected), (value, expected)
        checked.append(expected)

    for package in NEEDED.get(file.stem, ()):
        pytest.importorskip(package)
    monkeypatch.setattr(typing, "assert_type", assert_type)
    runpy.run_path(str(file))
    assert checked or file.stem == "wrong"


def test_what_checks_types_finds_wrong_ones():
    x = np.zeros(3, np.float32)
    assert holds(x, np.typing.NDArray[np.float32]) and not holds(x, np.typing.NDArray[np.int8])
    assert not holds((x,), tuple[np.typing.NDArray[typing.Any], int])
    assert holds(None, str | None) and not holds(x, int)
    assert not holds(True, typing.Literal[False])


@pytest.mark.parametrize(
    "name",
    [
        *("", "_api.maximum", "_api.average", "_api.adaptive"),
        *("conventions", "dask", "files", "onnx", "openvino", "xarray"),
    ],
)
def test_stubs_have_the_defaults(name):
    """stubtest compares no defaults where there are overloads."""
    if name in ("dask", "openvino", "xarray"):
        pytest.importorskip(name)
    module = importlib.import_module(f"fastpool.{name}".removesuffix("."))
    stub = Path(module.__file__).with_suffix(".pyi")
    assert stub.is_file()
    for node in ast.parse(stub.read_text()).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        given = inspect.signature(getattr(module, node.name)).parameters
        for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
            if default is not None and ast.unparse(default) != "..." and argument.arg in given:
                assert ast.literal_eval(default) == given[argument.arg].default, node.lineno


def test_types_of_arguments_can_be_imported():
    """They are what the stubs name, and at run time something that annotations may hold."""
    module = importlib.import_module("fastpool.typing")
    stubs = Path(module.__file__).parent.rglob("*.pyi")
    used = {name for stub in stubs for name in re.findall(r"\bt\.([A-Z]\w*)", stub.read_text())}
    assert used <= {*module.__all__} and "Strides" in used
    for name in module.__all__:
        assert typing.get_type_hints(annotated(getattr(module, name)))
    assert typing.get_type_hints(module.PoolAttributes)["strides"] == module.Strides | None
    assert memoryview in typing.get_args(module.Array) or module.Buffer in module.Array.__args__


def annotated(kind):
    def function(x: kind): ...

    return function
