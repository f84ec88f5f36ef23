"""ci/check_figures.py finds figures that no command measured, and blocks that were changed."""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "ci" / "check_figures.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="needs ci/check_figures.py")

FIGURES = ("takes 3 ms", "takes 22 s", "2.5 times as fast", "three\ntimes as long", "10 % faster")
FIGURES += ("0.1 microseconds", "12 GB/s", "| 1x1x8x8 k2 | 0.12 | many |", "3 to 5 times")
FIGURES += (
    "- a\n  - b\n    in 3 ms",
    "<!-- measured: nothing -->\n2 ms\n<!-- end -->",
)
OTHERS = ("In 3-D", "k3 s2 d2", "| 0 | exit | 2 |", "| `0.5` | a mean |", "```\n3 ms\n```")
OTHERS += ("    sleep 3 s", "opset 12", "16 bits", "2026.4 and 1.5")


@pytest.fixture
def check(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("check_figures", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    shutil.copy(ROOT / "README.md", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for file, _ in module.CONSTANTS.values():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    return module


@pytest.mark.parametrize("text", FIGURES)
def test_a_figure_in_the_text(check, text):
    assert check.unmeasured("docs/start.md", f"A sentence.\n\n{text}\n")


@pytest.mark.parametrize("text", OTHERS)
def test_other_numbers(check, text):
    assert not check.unmeasured("docs/start.md", f"A sentence.\n\n{text}\n")


def test_pages_as_they_are(check, capsys):
    assert not check.main(write=False), capsys.readouterr().out


def test_a_figure_that_was_changed(check, tmp_path, capsys):
    for name in ("README.md", "docs/torch.md", "docs/onnx.md"):
        page = tmp_path / name
        text = page.read_text()
        start = text.index("<!-- measured: ")
        page.write_text(text[:start] + re.sub(r"\| (\d)", r"| 9\1", text[start:], count=1))
        assert check.main(write=False) and name in capsys.readouterr().out
        assert not check.main(write=True) and page.read_text() == text


def test_a_constant_that_was_changed(check, tmp_path, capsys):
    file = tmp_path / check.THREADS
    file.write_text(file.read_text().replace("PAUSE_FACTOR = 50 ", "PAUSE_FACTOR = 60 "))
    assert check.main(write=False) and "50 times" in capsys.readouterr().out
