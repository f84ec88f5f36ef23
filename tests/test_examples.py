"""Every example in the docstrings and the README runs, and prints what is written there."""

import doctest
import importlib
import pathlib

import pytest

MODULES = ["_api", "_plan", "_dispatch", "_threads", "onnx", "openvino"]
README = pathlib.Path(__file__).parent.parent / "README.md"


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    assert doctest.testmod(importlib.import_module(f"fastpool.{name}")).failed == 0


def test_readme():
    results = doctest.testfile(str(README), module_relative=False)
    assert results.attempted > 5 and results.failed == 0
