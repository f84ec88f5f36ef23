"""The examples of the pages about blocks, filters, fields, recipes and other libraries run.

A section is skipped if it needs a package that is not installed.
"""

import ast
import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("blocks", "ndimage", "microscopy", "rasters", "climate", "morphology", "recipes")
PAGES += tuple(f"coming-from/{name}" for name in ("scikit-image", "opencv", "tinybrain", "gdal"))
PAGES += ("coming-from/scipy",)


def sections(page):
    """Return heading -> text; each begins with what is above the first heading."""
    above, *parts = re.split(r"^## ", (ROOT / "docs" / f"{page}.md").read_text(), flags=re.M)
    parts = [part.partition("\n")[::2] for part in parts]
    texts = {heading: f"{above}\n{text}" for heading, text in parts if ">>> " in text}
    return texts or {"": above}


CASES = [(page, heading) for page in PAGES for heading in sections(page)]


@pytest.mark.parametrize("page, heading", CASES)
def test_section(page, heading, folder):
    text = sections(page)[heading]
    test = doctest.DocTestParser().get_doctest(text, {}, f"{page}, {heading}", None, 0)
    for example in test.examples:
        for node in ast.walk(ast.parse(example.source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module] if isinstance(node, ast.ImportFrom) else node.names
                for name in names:
                    name = getattr(name, "name", name)
                    pytest.importorskip(name, exc_type=ImportError)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_programs_in_c_are_those_that_other_tests_run():
    blocks = re.findall(r"```c\n(.*?)```", (ROOT / "docs" / "recipes.md").read_text(), re.S)
    source = (ROOT / "tests" / "external" / "c" / "images.c").read_text()
    assert len(blocks) == 2 and all(block in source for block in blocks)
