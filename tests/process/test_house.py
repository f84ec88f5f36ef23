"""ci/check_house.py finds each violation of its rules in a small tree, and none in a clean one."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "ci" / "check_house.py"
SPEC = importlib.util.spec_from_file_location("check_house", SCRIPT)

pytestmark = pytest.mark.skipif(
    not (SCRIPT.exists() and shutil.which("git")), reason="needs ci/check_house.py and git"
)

KERNELS = "| `maximum/tiles.pxi` | tiles |\n| keys.h | keys |\nincluded by _kernels.pyx\n"
HEAD = "# Takes: all\n# Reads:   x\n#          y\n# Scratch: none\n# Wins:    1\n"
CLEAN = {
    "README.md": "| {0} |\nhttps://{0}\nValueError: {0}\n".format(120 * "x"),
    "pyproject.toml": 'packages = ["fastpool", "fastpool._cli", "fastpool._planning",\n'
    '"fastpool._running", "fastpool._showing", "fastpool.onnx"]\n',
    "docs/speed.json": 200 * "1",
    "docs/picture.png": b"\xff\xd8" + 200 * b"\xff",
    "fastpool/__init__.py": "import importlib\n\nfrom ._api import max_pool\n"
    "onnx = importlib.import_module('.onnx', __name__)\n",
    "fastpool/__init__.pyi": "",
    "fastpool/__main__.py": "from ._cli import main\n",
    "fastpool/_api.py": "from . import _plans\n",
    "fastpool/_plans.py": "from ._planning import geometry\n\n\ndef explain():\n"
    "    from ._showing.explain import explain\n",
    "fastpool/_kernels.pyx": "",
    "fastpool/_planning/__init__.py": "",
    "fastpool/_planning/geometry.py": "import math\n\nfrom . import arguments\n",
    "fastpool/_planning/arguments.py": "",
    "fastpool/_running/__init__.py": "",
    "fastpool/_running/interop.py": "from .. import _kernels\nfrom .._planning import arguments\n",
    "fastpool/_showing/__init__.py": "",
    "fastpool/_showing/explain.py": "from .._running import interop\n",
    "fastpool/_cli/__init__.py": "import fastpool.onnx\nfrom .._running import interop\n",
    "fastpool/onnx/__init__.py": "from .. import _api, max_pool\nfrom . import _nodes\n",
    "fastpool/onnx/_nodes.py": "from .._running.interop import as_array\n",
    "fastpool/xarray.py": "from .dask import pool\n",
    "fastpool/dask.py": "from ._planning.geometry import Axis\n",
    "fastpool/kernels/README.md": KERNELS,
    "fastpool/kernels/maximum/tiles.pxi": "",
    "fastpool/kernels/frame/tiles.pxi": "",
    "fastpool/kernels/vectors/keys.h": "",
    "fastpool/kernels/maximum/pool.pxi": "cdef enum Strategy:  # all\n    BANDS\n    TAPS\n"
    "\n\nTAPS\n",
    "fastpool/kernels/maximum/bands.pxi": HEAD + "\ncdef int BANDS\n",
    "fastpool/kernels/maximum/taps.pxi": HEAD,
    "fastpool/_running/strategies.py": "NAMES = 'bands', 'taps'\n",
}
CLEAN["fastpool/kernels/README.md"] += "frame/tiles.pxi: areas\npool.pxi, bands.pxi, taps.pxi\n"

GEOMETRY, INTEROP = "fastpool/_planning/geometry.py", "fastpool/_running/interop.py"
EXPLAIN, NODES = "fastpool/_showing/explain.py", "fastpool/onnx/_nodes.py"
PAGE, TILES = "fastpool/kernels/README.md", "fastpool/kernels/maximum/more.pxi"

# What is changed, and the complaint: the file, the line, the rule, and words of the text.
VIOLATIONS = {
    "planning, running": ({GEOMETRY: "from .._running import interop"}, 1, "layers", "_running"),
    "planning, absolute": ({GEOMETRY: "\nimport fastpool._api"}, 2, "layers", "_api"),
    "planning, from": ({GEOMETRY: "from fastpool import _plans"}, 1, "layers", "_plans"),
    "planning, compiled": ({GEOMETRY: "from .. import _kernels"}, 1, "layers", "_kernels"),
    "planning, front end": ({GEOMETRY: "from ..onnx import _nodes"}, 1, "layers", "onnx._nodes"),
    "in a function": (
        {GEOMETRY: "def f():\n    if 1:\n        from .._showing import explain\n"},
        *(3, "layers", "_planning imports _showing.explain"),
    ),
    "running, plans": ({INTEROP: "from .._plans import MaxPoolPlan"}, 1, "layers", "_plans"),
    "running, showing": ({INTEROP: "from .._showing import explain"}, 1, "layers", "_showing"),
    "running, program": ({INTEROP: "from .._cli import main"}, 1, "layers", "_cli"),
    "showing, api": ({EXPLAIN: "from .. import _api"}, 1, "layers", "_api"),
    "front end, running": ({NODES: "from .._running import tiles"}, 1, "layers", "_running"),
    "front end, part": ({"fastpool/dask.py": "from ._running import interop"}, 1, "layers", "dask"),
    "front end, front end": ({"fastpool/dask.py": "from . import xarray"}, 1, "layers", "xarray"),
    "front end, showing": ({NODES: "from .._showing import draw"}, 1, "layers", "_showing"),
    "api, front end": (
        {"fastpool/_api.py": "from . import onnx"},
        1,
        "layers",
        "_api imports onnx",
    ),
    "circle of two": (
        {"fastpool/_planning/arguments.py": "def f():\n    from .geometry import g\n"},
        *(2, "circle", "arguments -> fastpool._planning.geometry -> fastpool._planning.arguments"),
    ),
    "circle by the package": (
        {"fastpool/_planning/arguments.py": "from fastpool import __version__\n"},
        *(None, "circle", "fastpool._planning.arguments -> fastpool"),
    ),
    "itself": ({INTEROP: "from . import interop"}, 1, "circle", "interop -> fastpool._running"),
    "import_module": (
        {GEOMETRY: "import importlib\nimportlib.import_module('x')"},
        *(2, "import by string", "BY_STRING"),
    ),
    "import_module by its name": (
        {GEOMETRY: "from importlib import import_module\nimport_module('x')"},
        *(2, "import by string", "BY_STRING"),
    ),
    "__import__": ({EXPLAIN: "x = __import__('x')"}, 1, "import by string", "BY_STRING"),
    "101 columns": ({"ci/a.sh": "\n" + 101 * "x"}, 2, "columns", "101, at most 100"),
    "of letters": ({"docs/a.md": 60 * "é " + "x"}, 1, "columns", "121, at most 100"),
    "file not named": ({TILES: ""}, 1, "kernels", "maximum/more.pxi is not named"),
    "file not there": ({PAGE: CLEAN[PAGE] + "frame/a.h"}, 6, "kernels", "a.h is not"),
    "file in two folders": ({PAGE: CLEAN[PAGE] + "tiles.pxi"}, 6, "kernels", "in several folders"),
    "no README": ({PAGE: None}, 1, "kernels", "is missing"),
    "strategy in Python": (
        {EXPLAIN: "text = {\n    'taps': 1}"},
        *(2, "strategies", "taps is named"),
    ),
    "strategy of another file": (
        {"fastpool/kernels/maximum/bands.pxi": HEAD + "if TAPS:\n"},
        *(6, "strategies", "TAPS is named"),
    ),
    "strategy without its head": (
        {"fastpool/kernels/maximum/taps.pxi": HEAD.replace("# Scratch: none\n", "")},
        *(1, "strategies", "does not begin with Takes, Reads, Scratch, Wins"),
    ),
    "strategy without a file": (
        {"fastpool/kernels/maximum/taps.pxi": None, PAGE: CLEAN[PAGE].replace(", taps.pxi", "")},
        *(1, "strategies", "does not begin with"),
    ),
    "package not listed": (
        {"fastpool/more/__init__.py": ""},
        *(1, "packages", "not in the list of pyproject.toml"),
    ),
    "entries": (
        {f"fastpool/more{n}.py": "" for n in range(13)},
        *(1, "entries", "26, at most 25"),
    ),
}


def complaints(folder, changes):
    """What the script says about the clean tree with these changes; None deletes a file."""
    subprocess.run(["git", "init", "-q", folder], check=True)
    for name, text in {**CLEAN, **changes}.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    script = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(script)
    return script.complaints(folder), script.main


def test_a_clean_tree(tmp_path, capsys):
    found, main = complaints(tmp_path, {})
    assert (found, main(tmp_path), capsys.readouterr().out) == ([], 0, "")


def test_stubs_and_compiled_modules_are_no_entries(tmp_path):
    more = {f"fastpool/more{n}.{end}": "" for n in range(9) for end in ("pyi", "so")}
    assert complaints(tmp_path, more)[0] == []


@pytest.mark.parametrize("what", VIOLATIONS)
def test_violations(what, tmp_path, capsys):
    changes, line, rule, words = VIOLATIONS[what]
    found, main = complaints(tmp_path, changes)
    wanted = [entry for entry in found if entry[2] == rule and words in entry[3]]
    assert wanted, found
    file, at, *_ = wanted[0]
    if line is not None:
        assert at == line and file in (*changes, "fastpool", PAGE)
    assert main(tmp_path) == 1
    assert f"{file}:{at}: {rule}: " in capsys.readouterr().out
