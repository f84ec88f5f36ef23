"""Every example of the docstrings and the README prints what is written there.

Every test that docs/promises.md names exists.
"""

import doctest
import importlib
import inspect
import pathlib
import re

import pytest

FRONT_ENDS = ("conventions", "dask", "files", "onnx", "openvino", "torch", "xarray")
ROOT = pathlib.Path(__file__).parents[2]
README = ROOT / "README.md"


@pytest.mark.parametrize("name", ["fastpool", *(f"fastpool.{name}" for name in FRONT_ENDS)])
def test_public_functions(name):
    """Each begins with one line and has an example, or pools as another one that it names."""
    try:
        module = importlib.import_module(name)
    except ImportError as missing:
        pytest.skip(str(missing))
    runner, finder = doctest.DocTestRunner(), doctest.DocTestFinder()
    for public in module.__all__:
        function = getattr(module, public)
        first, *rest = inspect.getdoc(function).splitlines()
        assert first.endswith(".") and not any(rest[:1]), public
        tries = 0
        for examples in finder.find(function, public, module=False):
            tries += runner.run(examples).attempted
        if inspect.isfunction(function) and not tries:
            other = re.match(r"\w+ as :func:`(\w+)` does", first)
            assert other and ">>>" in getattr(module, other[1]).__doc__, public
    assert runner.tries and not runner.failures


def test_methods_of_plans():
    results = doctest.testmod(importlib.import_module("fastpool._plans.base"))
    assert results.attempted and results.failed == 0


def test_readme():
    results = doctest.testfile(str(README), module_relative=False)
    assert results.attempted > 5 and results.failed == 0


def test_promises_name_tests():
    """Each row's tests are in the files that it names before them."""
    rows = (ROOT / "docs" / "promises.md").read_text().splitlines()
    seen = 0
    for row in rows:
        text = ""
        for file, name in re.findall(r"\b(test_\w+\.py)|\b(test_\w+)", row):
            if file:
                [path] = (ROOT / "tests").rglob(file)
                text = path.read_text()
            else:
                assert f"def {name}(" in text, row
            seen += 1
    assert seen > 40
