"""`fastpool bench` lists its workloads, reports what it measured, and refuses wrong results."""

import dataclasses
import json
import os
import signal
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import cases
import fastpool
from fastpool import _reference
from fastpool.bench import (
    LIBRARIES,
    OWN,
    answers,
    means,
    measure,
    peers,
    readme,
    report,
    sweep,
    worker,
)
from fastpool.bench.workloads import GROUPS, KINDS, QUANTIZED, QUICK, WORKLOADS, make_arrays

BY_NAME = {workload.name: workload for workload in WORKLOADS}
TINY = "tiny/f32/nchw"
ALONE = """
import importlib.util, sys
sys.modules["numpy"] = None
spec = importlib.util.spec_from_file_location("workloads", {path!r})
module = sys.modules["workloads"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(len(module.WORKLOADS))
"""


def by_name(workload):
    return workload.name


def shrunk(workload):
    """The same operation on an array that is small enough for the reference."""
    window = workload.kernel_shape, workload.dilations
    spans = [(k - 1) * d + 1 for k, d in zip(*window, strict=True)]
    if workload.output_size:
        spans = [outputs + 1 for outputs in workload.output_size]
    sizes = [min(size, max(span, 7)) for size, span in zip(workload.sizes, spans, strict=True)]
    batch, channels = (2, min(workload.channels, 3)) if np.prod(spans) < 1000 else (1, 1)
    shape = (batch, *sizes, channels) if workload.channels_last else (batch, channels, *sizes)
    return dataclasses.replace(workload, shape=shape)


# ------------------------------------------------------------------------------------- the list


def test_the_list_is_sound():
    assert len(BY_NAME) == len(WORKLOADS)
    assert {workload.group for workload in WORKLOADS} == set(GROUPS)
    assert {workload.kind for workload in WORKLOADS} == set(KINDS.values())
    assert set(QUICK) <= set(BY_NAME)
    assert {BY_NAME[name].group for name in QUICK} == set(GROUPS)


@pytest.mark.parametrize("workload", WORKLOADS, ids=by_name)
def test_geometry_is_that_of_a_plan(workload):
    shape = workload.shape
    make, attributes = fastpool.plan_max_pool, workload.window
    if workload.output_size:
        make, attributes = fastpool.plan_adaptive_avg_pool, {"output_size": workload.output_size}
    elif workload.op == "avg":
        make = fastpool.plan_avg_pool
    plan = make(shape, workload.dtype, layout=workload.layout, **attributes)
    assert workload.output_shape == plan.output_shape
    begins, ends = workload.full_pads
    assert workload.output_size or begins == plan.pads[: len(begins)]
    item = np.dtype("u2" if workload.dtype == "bfloat16" else workload.dtype).itemsize
    elements, outputs = np.prod(shape), np.prod(plan.output_shape)
    if workload.kind == "unpool":
        moved = outputs * (item + 8), elements * item
    else:
        moved = elements * item, outputs * (item + 8 * (workload.kind == "indices"))
    assert (workload.bytes_read, workload.bytes_written) == moved


def test_the_list_needs_the_standard_library_alone():
    path = sys.modules[make_arrays.__module__].__file__
    process = cases.run_python(ALONE.format(path=path))
    assert process.stdout.strip() == str(len(WORKLOADS)), process.stderr


@pytest.mark.parametrize("workload", [*map(shrunk, WORKLOADS)], ids=by_name)
def test_answers(workload):
    if workload.dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    arrays = make_arrays(workload)
    again = make_arrays(workload)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(arrays, again, strict=True))
    if workload.kind == "unpool":
        attributes = {"strides": workload.strides, "output_shape": workload.shape}
        want = _reference.max_unpool(
            *arrays, workload.kernel_shape, **attributes, layout=workload.layout
        )
        want = (want,)
    elif workload.op == "avg":
        want = (averaged(workload, *arrays),)
    else:
        want = _reference.max_pool(
            *arrays, **workload.window, layout=workload.layout, return_indices=True
        )
        want = want if workload.kind == "indices" else want[:1]
    assert answers.difference(answers.expected(workload, arrays), want) == ""


def averaged(workload, x):
    """The means of the reference."""
    layout, numerics = {"layout": workload.layout}, {"numerics": workload.numerics}
    if workload.output_size:
        return _reference.adaptive_avg_pool(x, workload.output_size, **layout, **numerics)
    if workload.kind == "qlinear":
        window = {name: value for name, value in workload.window.items() if name != "dilations"}
        scales = QUANTIZED[workload.dtype]
        return _reference.qlinear_average_pool(x, *scales, **window, **layout)
    return _reference.avg_pool(x, **workload.window, **layout, **numerics)


# ------------------------------------------------------------------------------ the comparison


class Doubtful(peers.Peer):
    """A library with a right way, a wrong one, one that it refuses and one that it lacks."""

    def right(self, workload, x):
        return peers.NumPy(1).slices(workload, x)

    def wrong(self, workload, x):
        call, results = self.right(workload, x)
        return call, lambda: tuple(-result for result in results())

    def refused(self, workload, x):
        raise RuntimeError("not with\nthis stride")

    def absent(self, workload, x):
        return None

    ways = {"max": {"right": right, "wrong": wrong, "refused": refused, "absent": absent}}


def prepared(tmp_path, workload, peer):
    arrays = make_arrays(workload)
    worker.save(tmp_path, "input", arrays)
    worker.save(tmp_path, "answer", answers.expected(workload, arrays))
    one = worker.Worker(peer, 1)
    request = json.loads(json.dumps(dataclasses.asdict(workload)))
    return one, one.prepare(request, str(tmp_path))


def test_only_exact_answers_are_timed(tmp_path):
    one, found = prepared(tmp_path, BY_NAME[TINY], Doubtful(1))
    statuses = {way: outcome["status"] for way, outcome in found.items()}
    assert statuses == {"right": "exact", "wrong": "differs", "refused": "refused"}
    assert "16 of 16 differ" in found["wrong"]["message"]
    assert found["refused"]["message"] == "RuntimeError: not with this stride"
    assert [*one.prepared] == ["right"]
    assert one.time("right", 0) > 0


@pytest.mark.parametrize("kind", ["values", "indices", "unpool"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_fastpool_is_one_of_the_checked(tmp_path, kind, dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    workload = dataclasses.replace(BY_NAME[TINY], kind=kind, dtype=dtype)
    _, found = prepared(tmp_path, workload, peers.Fastpool(1))
    assert found == {"fastpool": {"status": "exact", "message": ""}}


SMALL_AVERAGES = [
    dataclasses.replace(shrunk(BY_NAME[name]), name=name)
    for name in (
        *("former/f32/nchw+avg", "adapt-7/f32/nhwc+avg", "resnetd-in/f32/nchw+avg"),
        *("dense/u8/nhwc+avg", "dense/f64/nchw+seq", "gap-2048/f16/nchw+avg"),
        *("line128/f32/nchw+avg", "dense/f32/nhwc+seq", "dense/f64/nchw+exact"),
        *("psp-3/f32/nhwc+exact", "box15/f32/nchw+exact"),
    )
]
# Its arithmetic is that of float32, or it counts what is beyond the array.
KNOWN = {("openvino", f"dense/f64/nchw+{kind}") for kind in ("seq", "exact")}
KNOWN |= {("torch-onednn", "resnetd-in/f32/nchw+avg")}


@pytest.mark.parametrize("workload", SMALL_AVERAGES, ids=by_name)
def test_averages_are_checked(tmp_path, workload):
    """fastpool's to the last bit; a peer may round in another way, and no more."""
    _, found = prepared(tmp_path, workload, peers.Fastpool(1))
    assert found == {"fastpool": {"status": "exact", "message": ""}}

    def off(x, by):
        y = answers.expected(workload, [x])[0]
        part, absolute = means.allowed(workload, x)
        return [(y + by * (part * abs(y) + absolute)).astype(y.dtype)]

    class Peer(peers.Peer):
        right = lambda self, workload, x: (int, lambda: off(x, 0.0))  # noqa: E731
        near = lambda self, workload, x: (int, lambda: off(x, 0.5))  # noqa: E731
        far = lambda self, workload, x: (int, lambda: off(x, 3.0))  # noqa: E731
        ways = {"max": {}, "avg": {"right": right, "near": near, "far": far}}

    _, found = prepared(tmp_path, workload, Peer(1))
    statuses = [found[way]["status"] for way in ("right", "near", "far")]
    assert statuses == ["exact", "exact", "differs"]
    if workload.dtype.startswith("float"):
        Peer.exact = True
        _, found = prepared(tmp_path, workload, Peer(1))
        assert found["near"]["status"] == "differs"


@pytest.mark.parametrize("name", [name for name in LIBRARIES if name not in OWN])
def test_peers_average(name):
    pytest.importorskip("ml_dtypes")
    module = {"opencv": "cv2", "litert": "ai_edge_litert"}.get(name, name)
    if find_spec(module) is None:
        pytest.skip(f"no {module}")
    libraries, _ = measure.start([name], 1, {}, pytest.fail)
    found = []
    try:
        for workload in (BY_NAME["tiny/f32/nchw+avg"], *SMALL_AVERAGES):
            found += measure.measure(workload, libraries, 1, 1, 0.0)
    finally:
        libraries[0].close()
    assert "exact" in {entry["status"] for entry in found}
    wrong = [entry for entry in found if entry["status"] not in ("exact", "refused")]
    assert {(entry["way"], entry["workload"]) for entry in wrong} <= KNOWN, wrong


def result(library, way, microseconds, status="exact", **others):
    where = {"workload": TINY, "group": "tiny", "threads": 1, "message": ""}
    timed = {"microseconds": microseconds, "rounds": [microseconds]}
    return {"library": library, "way": way, "status": status, **where, **timed, **others}


RESULTS = [
    result("fastpool", "fastpool", 2.0),
    result("limit", "limit", 1.0),
    result("torch", "torch-out", 5.0),
    result("numpy", "numpy", 8.0),
    result("jax", "jax", None, "differs", message="result: 1 of 16 differ"),
]


def test_summary_and_tables(monkeypatch):
    (row,) = report.summary(RESULTS)
    assert (row["best"], row["ratio"], row["from_limit"]) == ("torch-out", 2.5, 2.0)
    (group,) = report.groups([row])
    assert (group["count"], group["least_workload"]) == (1, TINY)
    monkeypatch.setattr(measure, "compare", lambda *_, **__: (RESULTS, {}))
    status, printed, _ = cases.command("bench", "--workload", TINY)
    assert status == 0 and "jax differs" in printed and "result: 1 of 16 differ" in printed
    assert [TINY, "1", "torch-out", "5", "2", "2.50", "2.0"] in map(str.split, printed.splitlines())
    assert report.summary(RESULTS[:2]) == []  # nobody to compare with


def test_run_with_one_peer(tmp_path):
    path = tmp_path / "results.json"
    arguments = ["--workload", "tiny/*/nchw", "--workload", "odd-c5/u8/*", "--peer", "numpy"]
    arguments += ["--quick", "--rounds", "2", "--json", str(path)]
    status, printed, said = cases.command("bench", *arguments)
    assert status == 0 and "2/3 odd-c5/u8/nchw" in said
    assert said.startswith("starting fastpool, limit, ")
    contents = json.loads(path.read_text())
    assert set(contents) == {"machine", "versions", "settings", "results"}
    assert contents["settings"]["rounds"] == 2
    assert set(contents["versions"]) == {"fastpool", "limit", "numpy"}
    names = [TINY, "odd-c5/u8/nchw", "odd-c5/u8/nhwc"]
    ways = [(r["workload"], r["way"]) for r in contents["results"]]
    assert ways == [(name, way) for name in names for way in ("fastpool", "limit", "numpy")]
    for entry in contents["results"]:
        assert entry.keys() == RESULTS[0].keys()
        assert entry["status"] == "exact" and len(entry["rounds"]) == 2
        assert entry["microseconds"] == np.median(entry["rounds"]) > 0
        assert entry["workload"] in printed


@pytest.mark.parametrize("status", ["exact", "differs", None])
def test_exit_status_tells_whether_fastpool_was_right(monkeypatch, status):
    found = [result("fastpool", "fastpool", 1.0, status)] if status else []
    monkeypatch.setattr(measure, "compare", lambda *_, **__: (found, {}))
    found, _, _ = cases.command("bench", "--workload", TINY)
    assert found == (0 if status == "exact" else 1)


def test_a_library_that_died_is_started_again():
    workload, said = BY_NAME[TINY], []
    (library,), versions = measure.start(["numpy", "nothing"], 1, {}, said.append)
    try:
        assert [*versions] == ["numpy"] and "nothing: left out" in said[0]
        os.kill(library.process.pid, signal.SIGKILL)
        library.process.wait()
        (entry,) = measure.measure(workload, [library], 1, 1, 0.0)
        assert entry["status"] == "exact"
    finally:
        library.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--peer", "numpi"], "'--peer': 'numpi' is not one of 'numpy'"),
        (["--workload", "stem"], "--workload: nothing matches 'stem'"),
        (["--op", "avg", "--workload", "stem-b1/*"], "names are like 'dense/f32/nchw+avg'"),
        (["--op", "mean"], "'--op': 'mean' is not one of 'max', 'avg'"),
        (["--threads", "0"], "'--threads': 0 is not in the range x>=1"),
        (["--rounds", "many"], "'--rounds': 'many' is not a valid integer"),
        (["--python", "/usr/bin/python"], "'--python': expected NAME=PATH"),
        (["--json", "no/such/folder.json"], "'--json': there is no folder 'no/such'"),
        (["--plot", "plot.gif"], "'--plot': expected a name that ends in .svg or .png"),
        (["--peer", "numpy", "random"], "--peer: expected after the subcommand"),
        (["--peer", "numpy", "sweep"], "--peer: not an option of sweep"),
    ],
)
def test_wrong_options(arguments, message):
    status, printed, said = cases.command("bench", *arguments)
    assert (status, printed) == (2, "") and message in said and said.count("\n") == 1


@pytest.mark.parametrize("part", [[], ["sweep"]])
def test_a_plot_without_matplotlib(monkeypatch, part):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, _, said = cases.command("bench", *part, "--plot", "plot.svg")
    assert status == 2 and 'pip install "fastpool[plot]"' in said


# ------------------------------------------------------------------------------------ the sweep


def test_sweep(monkeypatch, tmp_path):
    path = tmp_path / "sweep.json"
    monkeypatch.setattr(sweep, "SIZE", 9)
    monkeypatch.setattr(sweep, "QUICK_WINDOWS", (7, 63))
    status, printed, _ = cases.command("bench", "sweep", "--quick", "--json", str(path))
    assert status == 0
    results = json.loads(path.read_text())["results"]
    assert len(results) == 2 * len(sweep.combinations())
    assert all(entry["nanoseconds"] > 0 for entry in results)
    lines = printed.splitlines()
    assert len(lines) == 1 + 2 * 2 * 2 * 2  # kinds, types, layouts, dilations at stride 1


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    from fastpool.bench import plots

    windows = [{"kernel": kernel, "nanoseconds": 1.0} for kernel in (2, 3)]
    curves = [{**curve, **window} for curve in sweep.combinations() for window in windows]
    plots.plot_sweep(curves, tmp_path / "sweep.svg")
    other = [{**entry, "threads": 2} for entry in RESULTS]
    plots.plot_comparison(RESULTS + other, tmp_path / "comparison.svg")
    assert "float32, channels last" in (tmp_path / "sweep.svg").read_text()
    assert TINY in (tmp_path / "comparison.svg").read_text()


READMES = {
    "machine": {"processor": "Some Processor", "processors": 4},
    "versions": {"fastpool": "1.0+local", "openvino": "2026.4.1-22982"},
    "threads": [1, 4],
    "load": 0.0,
    "rows": [
        {"now": "a(x)", "then": "b(x)", "milliseconds_one_thread": [9.0, 2.0]}
        | {"milliseconds": [94.9, 5.0]}
    ],
    "calls": [["b(x)", 0.456]],
    "curves": [[op, k, name, 1e3 * k] for op in ("max", "avg") for name in "ab" for k in (3, 65)],
}


def test_the_readme(tmp_path, monkeypatch):
    """What is measured replaces what is between the marks, and nothing else."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    status, _, said = cases.command("bench", "--readme")
    assert status == 2 and "--readme: expected a checkout; there is no README.md here" in said
    Path("docs").mkdir()
    for page, block in readme.BLOCKS:
        Path(page).write_text(f"before\n{readme.START.format(block)}old\n{readme.END}after\n")
    monkeypatch.setattr(readme, "measured", lambda say: READMES)
    assert cases.command("bench", "--readme")[0] == 0
    assert json.loads(Path("docs/readme.json").read_text()) == READMES
    assert "maximum, milliseconds" in Path("docs/windows.svg").read_text()
    text = Path("README.md").read_text()
    assert text.startswith(
        "before\n<!-- measured: readme -->\n| times faster, 1 thread | 4 threads"
    )
    assert "| 4.5 | 19 | `a(x)` | `b(x)` |\n" in text and "old" not in text
    assert "4 processors, Some Processor. fastpool 1.0, openvino 2026.4.1." in text
    assert text.endswith("<!-- end -->\nafter\n")
    assert "| `b(x)` | 0.46 |\n" in Path("docs/performance.md").read_text()


def test_rows_of_the_readme_are_compared():
    """Both sides are run and compared before they are timed."""
    names = {"np": np, "a": np.arange(4.0)}
    with pytest.raises(RuntimeError, match=r"a \+ 1: the result is not that of a$"):
        readme._time_row(time.process_time, names, "a", "a + 1", 0.5)


def test_the_page_of_speed(monkeypatch):
    """ci/perf_report.py: the earlier version is no peer, and what is slower than it is marked."""
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "ci")
    import perf_report

    earlier = result("earlier", "earlier", 1.0)
    page = perf_report.page([*RESULTS, earlier], {"fastpool": "2", "earlier": "1"}, "v2", "v<1")
    assert "fastpool v2 against v&lt;1 and the peers" in page
    assert page.count("<svg") == 2 and page.endswith("</html>")
    assert "<td class='slower'>0.50</td><td class=''>torch-out</td>" in page
    assert "<td class='faster'>2.50</td>" in page
    assert "jax differs" in page


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--quick"], set(QUICK)),
        (["--quick", "--op", "avg"], {name for name in QUICK if BY_NAME[name].op == "avg"}),
        (["--op", "avg"], {name for name in BY_NAME if "+" in name and BY_NAME[name].op == "avg"}),
        (
            ["--workload", "sequential*", "--workload", "tiny/*"],
            {name for name in BY_NAME if name.endswith("+seq") or name.startswith("tiny")},
        ),
    ],
)
def test_options_choose_workloads(monkeypatch, arguments, names):
    pytest.importorskip("ml_dtypes")
    chosen = []

    def compare(workloads, *_, **__):
        chosen.extend(workload.name for workload in workloads)
        return [], {}

    monkeypatch.setattr(measure, "compare", compare)
    cases.command("bench", *arguments)
    assert len(chosen) == len(set(chosen)) and set(chosen) == names
