"""Every example of the docstrings and the README prints what is written there.

Every test that docs/promises.md names exists.
"""

import doctest
import importlib
import pathlib
import re

import pytest

# Modules that need no optional package; tests of the routes run the examples of all others. The
# examples of a package are in the modules that define its functions.
MODULES = [
    "_api.adaptive",
    "_api.average",
    "_api.lp",
    "_api.maximum",
    "_plans",
    "_running.builds",
    "_running.capi",
    "conventions",
    "onnx._averages",
    "onnx._global",
    "onnx._lp",
    "onnx._operators",
    "openvino._operator",
    "openvino._xml",
]
ROOT = pathlib.Path(__file__).parents[2]
README = ROOT / "README.md"


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    results = doctest.testmod(importlib.import_module(f"fastpool.{name}"))
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
