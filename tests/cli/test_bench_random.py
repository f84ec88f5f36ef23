"""`fastpool bench random` draws the same layers everywhere, and reports distributions."""

import json
from importlib.util import find_spec

import numpy as np
import pytest

import cases
import fastpool
from fastpool.bench import layers, peers, report, worker
from fastpool.bench.workloads import make_arrays

DRAWN = layers.random_layers(5, 300)


def test_a_seed_is_a_list():
    assert DRAWN[:7] == layers.random_layers(5, 7)
    assert DRAWN[:7] != layers.random_layers(6, 7)
    assert {layer.group for layer in DRAWN} == set(layers.GROUPS)
    assert {layer.kind for layer in DRAWN} == set(layers.KINDS)
    assert {len(layer.sizes) for layer in DRAWN} == {1, 2, 3}
    assert any(layer.row_gap for layer in DRAWN) and any(layer.output_size for layer in DRAWN)
    assert len({layer.name for layer in DRAWN}) == len(DRAWN)


@pytest.mark.skipif(find_spec("ml_dtypes") is None, reason="needs bfloat16")
def test_geometry_is_that_of_a_plan():
    for layer in DRAWN:
        make, attributes = fastpool.plan_max_pool, layer.window
        if layer.output_size:
            make, attributes = fastpool.plan_adaptive_avg_pool, {"output_size": layer.output_size}
        elif layer.op == "avg":
            make = fastpool.plan_avg_pool
        plan = make(layer.shape, layer.dtype, layout=layer.layout, **attributes)
        assert layer.output_shape == plan.output_shape, layer


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_gaps_between_rows(layout):
    layer = next(w for w in DRAWN if w.row_gap and w.layout == layout and w.dtype == "float32")
    (x,) = make_arrays(layer)
    part = peers.with_gaps(x, layer)
    assert np.array_equal(part, x) and not part.flags.c_contiguous
    axis = layer.spatial_axes[-1]
    row = part.strides[axis] * (layer.sizes[-1] + layer.row_gap)
    assert axis == 1 or part.strides[axis - 1] == row


def test_fastpool_alone_gets_the_gaps(tmp_path):
    layer = next(w for w in DRAWN if w.row_gap and w.op == "max" and w.dtype == "float32")
    worker.save(tmp_path, "input", make_arrays(layer))
    contiguous = {}
    for peer in (peers.Fastpool(1), peers.NumPy(1)):
        work = worker.Worker(peer, 1)
        work.prepare({**vars(layer)}, tmp_path)
        contiguous[type(peer).__name__] = work.arrays[0].flags.c_contiguous
    assert contiguous == {"Fastpool": False, "NumPy": True}


def test_distribution():
    names = layers.GROUPS
    rows = [{"group": names[0], "ratio": n + 1, "from_limit": 2.0 * n + 1} for n in range(200)]
    rows.append({"group": names[2], "ratio": 3.0, "from_limit": None})
    many, one = report.distribution(rows, names)
    assert (many["group"], many["count"]) == (names[0], 200)
    assert (many["ratio_5"], many["ratio_1"], many["least"]) == (11, 3, 1)
    assert (many["from_limit_95"], many["from_limit_99"], many["furthest"]) == (379, 395, 399)
    assert one["count"] == 1 and np.isclose(one["ratio"], 3) and "from_limit" not in one


def test_run(monkeypatch, tmp_path):
    monkeypatch.setattr(layers, "MOST_ELEMENTS", 2**10)
    path = tmp_path / "random.json"
    arguments = ["--seed", "5", "--count", "25", "--rounds", "1", "--peer", "numpy"]
    status, printed, said = cases.command("bench", "random", *arguments, "--json", str(path))
    assert status == 0 and "/f32/" in said
    results = json.loads(path.read_text())["results"]
    assert {entry["status"] for entry in results if entry["library"] == "fastpool"} == {"exact"}
    assert "averages" in printed and "limit x" in printed
    (row, *_) = report.summary(results)
    assert row["workload"] in printed and layers.random_layers(5, 1)[0].form in printed


def test_some_layers_of_a_seed(monkeypatch):
    chosen = []
    monkeypatch.setattr(
        "fastpool.bench.measure.compare", lambda found, *_, **__: (chosen.extend(found) or [], {})
    )
    numbers = [n for n, layer in enumerate(DRAWN) if layer.dtype != "bfloat16"][:2]
    options = [word for number in numbers for word in ("--layer", str(number))]
    cases.command("bench", "random", "--seed", "5", *options)
    assert chosen == [DRAWN[number] for number in numbers]
