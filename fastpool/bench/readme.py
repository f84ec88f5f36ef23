"""Measure the table and the picture of README.md: what people write now, and then.

The texts of the table are the code that is timed. Each number of threads has its own process,
`python -m fastpool.bench.readme THREADS`, which prints a line of JSON.
"""

import functools
import gc
import json
import os
import re
import subprocess
import sys
import textwrap
import time
import timeit
from importlib import metadata
from pathlib import Path

from . import measure, report
from .workloads import Workload

SECONDS = 2  # for one row of the table
SETUP = """
import cv2, fastpool, fastpool.ndimage, fastpool.onnx, fastpool.torch, fastpool.xarray
import numpy as np, scipy.ndimage as ndi, torch, torch.nn.functional as F, xarray
import skimage.measure
from PIL import Image

rng = np.random.default_rng(0)
x = torch.from_numpy(rng.standard_normal((1, 64, 112, 112), np.float32))
last = x.to(memory_format=torch.channels_last)
a = rng.random((2000, 2000), np.float32)
grid = xarray.DataArray(a, dims=("lat", "lon"))
box = np.ones((15, 15), np.uint8)
photo = rng.integers(0, 256, (6000, 8000, 3), np.uint8)
image = Image.fromarray(photo)
# Segments of 16 x 16, with one other label in every twentieth block: no two are equally frequent.
labels = np.kron(rng.integers(1, 1000, (125, 125), np.uint32), np.ones((16, 16), np.uint32))
labels[::2, ::2] += rng.random((1000, 1000)) < 0.05
small = np.ones((1, 1, 8, 8), np.float32)
t = torch.from_numpy(small)
plan = fastpool.plan_max_pool(small.shape, "float32", 2)
y = plan(small)

def countless(x):  # the most frequent label of 2 x 2, as tinybrain finds it
    a, b, c, d = x[::2, ::2], x[::2, 1::2], x[1::2, ::2], x[1::2, 1::2]
    found = a * ((a == b) | (a == c)) | b * (b == c)
    return found + (found == 0) * d
"""
# What the names are, of which a table shows those that its rows have.
DATA = {
    "x": "float32 of 1 x 64 x 112 x 112",
    "last": "`x` with channels last",
    "a": "float32 of 2000 x 2000",
    "grid": "`a` in xarray",
    "box": "15 x 15 ones",
    "photo": "uint8 of 6000 x 8000 x 3, 48 megapixels",
    "image": "`photo` in PIL",
    "labels": "uint32 of 2000 x 2000, without ties",
    "countless": "tinybrain's way in NumPy",
}
THUMBNAIL = 'fastpool.block_reduce(photo, (4, 4, 1), "mean")'
# What is written now, what then, and by how much results may differ.
ROWS = (
    ("F.max_pool2d(x, 2)", "fastpool.torch.max_pool2d(x, 2)", 0),
    ("F.max_pool2d(x, 3, 2, 1)", "fastpool.torch.max_pool2d(x, 3, 2, 1)", 0),
    ("F.max_pool2d(x, 13, 1, 6)", "fastpool.torch.max_pool2d(x, 13, 1, 6)", 0),
    ("F.max_pool2d(last, 3, 2, 1)", "fastpool.torch.max_pool2d(last, 3, 2, 1)", 0),
    ("F.max_pool2d(last, 13, 1, 6)", "fastpool.torch.max_pool2d(last, 13, 1, 6)", 0),
    ("F.avg_pool2d(x, 3, 2, 1)", "fastpool.torch.avg_pool2d(x, 3, 2, 1)", 1e-6),
    ("ndi.maximum_filter(a, 15)", "fastpool.ndimage.maximum_filter(a, 15)", 0),
    ("ndi.uniform_filter(a, 15)", "fastpool.ndimage.uniform_filter(a, 15)", 1e-5),
    ("ndi.grey_opening(a, 15)", "fastpool.ndimage.grey_opening(a, 15)", 0),
    ("cv2.dilate(a, box)", "fastpool.ndimage.maximum_filter(a, 15)", 0),
    ("cv2.resize(photo, (2000, 1500), interpolation=cv2.INTER_AREA)", THUMBNAIL, 1),
    ("image.reduce(4)", THUMBNAIL, 1),
    (
        "photo.reshape(1500, 4, 2000, 4, 3).max((1, 3))",
        'fastpool.block_reduce(photo, (4, 4, 1), "max")',
        0,
    ),
    (
        "skimage.measure.block_reduce(a, 2, np.median)",
        'fastpool.block_reduce(a, 2, "median")',
        1e-6,
    ),
    ("countless(labels)", 'fastpool.block_reduce(labels, 2, "mode")', 0),
    (
        "grid.coarsen(lat=4, lon=4).mean()",
        "fastpool.xarray.coarsen(grid, lat=4, lon=4).mean()",
        1e-6,
    ),
)
# What a call costs without any work to speak of.
CALLS = (
    "plan(small, out=y)",
    "fastpool.max_pool(small, 2)",
    "fastpool.max_pool(small, 2, return_indices=True)",
    "fastpool.avg_pool(small, 2)",
    "fastpool.onnx.max_pool(small, kernel_shape=[2, 2])",
    "fastpool.torch.max_pool2d(t, 2)",
    'fastpool.block_reduce(small, (1, 1, 2, 2), "max")',
)
PACKAGES = {"fastpool": "fastpool", "NumPy": "numpy", "torch": "torch", "SciPy": "scipy"}
PACKAGES |= {"OpenCV": "opencv-python-headless", "PIL": "pillow", "scikit-image": "scikit-image"}
PACKAGES |= {"xarray": "xarray"}

# The picture: the time over the window, of the fastest way of each library.
WINDOWS = 3, 5, 9, 13, 17, 33, 49, 65
CURVES = "fastpool", "torch", "onnxruntime", "openvino", "scipy", "opencv"
PLANES = (1, 16, 112, 112)

START, END = "<!-- measured: {} -->\n", "<!-- end -->\n"


def time_all(threads):
    """Check and time all rows in this process, and the calls.

    Return a list of [milliseconds now, then] and one of [call, microseconds].
    """
    names, clock = {}, time.perf_counter
    exec(SETUP, names)
    if threads == 1:
        names["cv2"].setNumThreads(1)  # the others ask the environment
        clock = time.process_time  # which other programs change little
    rows = [_time_row(clock, names, *row) for row in ROWS]
    timers = [(code, timeit.Timer(code, timer=clock, globals=names)) for code in CALLS]
    calls = [[code, round(min(timer.repeat(50, 1000)) * 1e3, 3)] for code, timer in timers]
    return rows, calls


def _time_row(clock, names, now, then, allowed):
    """Return the least milliseconds of both, in turns. Raise RuntimeError if results differ."""
    import numpy as np

    calls = [eval(f"lambda: {code}", names) for code in (now, then)]
    old, new = (np.asarray(call()) for call in calls)
    if old.shape != new.shape or not (abs(old - new.astype("f8")) <= allowed).all():
        raise RuntimeError(f"{then}: the result is not that of {now}")
    del old, new
    gc.collect()
    gc.disable()
    least, end = [float("inf")] * 2, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        for which, call in enumerate(calls):
            turn = (start := clock()) + 0.02
            while start < turn:
                call()
                start, before = clock(), start
                least[which] = min(least[which], start - before)
            time.sleep(measure.PAUSE)  # other libraries' idle threads spin for a while
    gc.enable()
    return [round(seconds * 1e3, 4) for seconds in least]


def _in_process(threads):
    """Return what `time_all` returns in a new process: with one thread, or with the default."""
    environment = os.environ | ({} if threads > 1 else dict.fromkeys(measure.THREAD_VARIABLES, "1"))
    command = [sys.executable, "-P", "-m", __name__, str(threads)]
    return json.loads(subprocess.check_output(command, env=environment, text=True))


def curves(say):
    """Return lists of operator, window, library and microseconds, on one thread."""
    workloads = [
        Workload(
            **{"name": f"{kind}-{k}", "group": op, "kind": kind, "shape": PLANES, "layout": "NCHW"},
            **{"dtype": "float32", "kernel_shape": (k, k), "strides": (1, 1), "pads": (0,) * 4},
            **{"dilations": (1, 1), "ceil_mode": False, "auto_pad": "NOTSET"},
        )
        for op, kind in (("max", "values"), ("avg", "average"))
        for k in WINDOWS
    ]
    results, _ = measure.compare(workloads, CURVES, (1,), 3, 0.01, {}, say)
    least = {}
    for result in results:
        if result["rounds"]:
            window = int(result["workload"].partition("-")[2])
            key = result["group"], window, result["library"]
            least[key] = min(*result["rounds"], least.get(key, float("inf")))
    return [[*key, microseconds] for key, microseconds in least.items()]


def measured(say):
    """Measure the table and the curves; return them with the machine and the versions."""
    found = {"machine": report.machine()}
    found["versions"] = {name: metadata.version(package) for name, package in PACKAGES.items()}
    found["threads"] = [1, len(os.sched_getaffinity(0))]
    found["load"] = round(os.getloadavg()[0], 1)  # of other programs: nothing was started yet
    say("the table, on one thread")
    one, found["calls"] = _in_process(1)
    say("the table, on the default number of threads")
    more, _ = _in_process(found["threads"][1])
    keys = "now", "then", "milliseconds_one_thread", "milliseconds"
    rows = zip(ROWS, one, more, strict=True)
    found["rows"] = [dict(zip(keys, (*row[:2], *times), strict=True)) for row, *times in rows]
    found["curves"] = curves(say)
    return found


def table(found, then=""):
    """Return the part of a page that shows the rows whose new code begins with `then`."""
    threads = found["threads"][1]
    # Phones show the first columns.
    lines = [f"| times faster, 1 thread | {threads} threads | you write now | you write then |"]
    lines.append("| --: | --: | --- | --- |")
    rows = [row for row in found["rows"] if row["then"].startswith(then)]
    codes = " ".join(row["now"] + row["then"] for row in rows)
    data = [
        f"`{name}` is {text}" for name, text in DATA.items() if re.search(rf"\b{name}\b", codes)
    ]
    for row in rows:
        ratios = (row[key][0] / row[key][1] for key in ("milliseconds_one_thread", "milliseconds"))
        lines.append(f"| {' | '.join(map(short, ratios))} | `{row['now']}` | `{row['then']}` |")
    machine, versions = found["machine"], found["versions"]
    where = f"The machine: {machine['processors']} processors, {machine['processor']}. "
    if found["load"] > 0.5:
        where += (
            f"Other programs ran (load {found['load']}), which changes {threads} threads most. "
        )
    return paragraphs(*lines, "", "; ".join(data) + ".", "", where + listed(versions))


def calls_table(found):
    """Return the part of docs/performance.md that shows what small calls cost."""
    lines = [f"| `{code}` | {short(microseconds)} |" for code, microseconds in found["calls"]]
    where = f"`small` is float32 of 8 x 8. One thread of {found['machine']['processor']}."
    return paragraphs("| call | microseconds |", "| --- | --: |", *lines, "", where)


def short(number):
    """Return two digits of a number, or all before the point."""
    return f"{number:.2g}" if number < 0.95 else f"{number:.{number < 9.95:d}f}"


def listed(versions):
    """Return a sentence of names and versions, without what builds append to them."""
    return ", ".join(f"{name} {re.split('[-+]', v)[0]}" for name, v in versions.items()) + "."


def paragraphs(*lines):
    """Return lines of a page; those that are no rows of tables are wrapped."""
    return "".join(f"{x if x[:1] == '|' else textwrap.fill(x, 100)}\n" for x in lines)


def replaced(text, name, new):
    """Return a page with other text between the marks of this name."""
    before, start, rest = text.partition(START.format(name))
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"page: expected the lines {START.format(name)!r} and {END!r}")
    return before + start + new + end + after


# Page and block -> what shows the measurements.
BLOCKS = {
    ("README.md", "readme"): table,
    ("docs/index.md", "readme"): table,
    ("docs/ndimage.md", "filters"): functools.partial(table, then="fastpool.ndimage."),
    ("docs/performance.md", "calls"): calls_table,
}


def write(folder, say):
    """Measure, and write docs/readme.json, docs/windows.svg and the blocks of the pages."""
    from .plots import plot_windows

    pages = {page: Path(folder, page) for page, _ in BLOCKS}
    if missing := [page for page, path in pages.items() if not path.is_file()]:
        raise ValueError(f"readme: expected a checkout; there is no {missing[0]} here")
    found, docs = measured(say), Path(folder, "docs")
    lines = [f" {json.dumps(key)}: {_listed(value)}" for key, value in found.items()]
    (docs / "readme.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    plot_windows(found["curves"], docs / "windows.svg")
    for (page, block), shown in BLOCKS.items():
        text = pages[page].read_text(encoding="utf-8")
        pages[page].write_text(replaced(text, block, shown(found)), encoding="utf-8")


def _listed(value):
    """Return JSON with one line for each entry of a long list."""
    if not isinstance(value, list) or len(value) < 3:
        return json.dumps(value)
    return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"


if __name__ == "__main__":
    print(json.dumps(time_all(int(sys.argv[1]))))
