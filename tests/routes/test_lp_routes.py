"""Lp norms by every route are those of fastpool.lp_pool: chunks, names, files, commands, words."""

import importlib

import numpy as np
import pytest

import fastpool
import fastpool.files
from cases import assert_same, command
from fastpool._running import threads

X = np.random.default_rng(0).standard_normal((2, 3, 9, 8))
ATTRIBUTES = {"strides": 2, "ceil_mode": True, "partial": "scale", "nan": "ignore"}
ORDERS = [1, 2, 2.5, np.inf]


@pytest.mark.parametrize("p", ORDERS)
def test_chunks(p):
    da = pytest.importorskip("dask.array")
    x = da.from_array(X, chunks=(1, 2, 4, 3))
    y = fastpool.lp_pool(x, 3, p, **ATTRIBUTES)
    assert isinstance(y, da.Array)
    assert_same(y.compute(), fastpool.lp_pool(X, 3, p, **ATTRIBUTES))
    whole = fastpool.global_lp_pool(x, p, keepdims=False)
    assert_same(whole.compute(), fastpool.global_lp_pool(X, p, keepdims=False))
    with pytest.raises(TypeError, match="^x: expected one of float16"):
        fastpool.lp_pool(x.astype(int), 3, p)


@pytest.mark.parametrize("p", ORDERS)
def test_names(p):
    xarray = pytest.importorskip("xarray")
    module = importlib.import_module("fastpool.xarray")
    x = xarray.DataArray(X, dims=list("abcd"), coords={"d": np.arange(8.0)}, name="field")
    y = fastpool.lp_pool(x, {"c": 3, "d": 3}, p, **{**ATTRIBUTES, "strides": {"c": 2, "d": 2}})
    assert_same(y.values, fastpool.lp_pool(X, 3, p, **ATTRIBUTES))
    assert y.name == "field" and y.d.values[:3].tolist() == [1, 3, 5]
    whole = module.global_lp_pool(x, ["c", "d"], p, keepdims=False)
    assert whole.dims == ("a", "b")
    with pytest.raises(TypeError, match="^x: expected one of float16, .*, got dtype int64"):
        module.global_lp_pool(x.astype(int), "c", p)
    assert_same(whole.values, fastpool.global_lp_pool(X, p, keepdims=False))
    with pytest.raises(ValueError, match="^dims: expected dimensions among"):
        module.global_lp_pool(x, "e")


def test_files_and_commands(tmp_path):
    source, target = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(source, X)
    plan = fastpool.files.lp_pool(source, target, 3, 2, max_bytes=500, **ATTRIBUTES)
    assert plan == fastpool.plan_lp_pool(X.shape, X.dtype, 3, 2, **ATTRIBUTES)
    assert_same(np.load(target), fastpool.lp_pool(X, 3, 2, **ATTRIBUTES))
    fastpool.files.global_lp_pool(source, target, np.inf, keepdims=False)
    assert_same(np.load(target), fastpool.global_lp_pool(X, np.inf, keepdims=False))
    pytest.importorskip("click")
    names = map(str, (source, target))
    code, _, errors = command("pool", *names, "--op", "lp", "--kernel", "3", "--p", "inf")
    assert (code, errors) == (0, "")
    assert_same(np.load(target), fastpool.lp_pool(X, 3, np.inf))


def explained(*arguments, **attributes):
    return " ".join(fastpool.plan_lp_pool(*arguments, **attributes).explain().split())


def test_explanations():
    text = explained((1, 2, 9, 8), "float32", 3, **ATTRIBUTES)
    assert text.startswith("LpPoolPlan: float32 NCHW (1, 2, 9, 8) -> (1, 2, 4, 4)")
    assert "float32, p 2: the p-th root of the sum of magnitudes ** p, rounded once" in text
    assert 'partial "scale": last sums along W are multiplied by 3 / 2' in text
    assert 'nan "ignore": NaN adds nothing' in text
    assert "p 2: the p-th root of the sum of magnitudes ** p, within 5 ulp" in explained(
        (9,), "float64", 3, layout="W"
    )
    text = explained((3,), "float16", 1, np.inf, pads=3, layout="W")
    assert "p inf: the greatest magnitude" in text and "6 empty, which give 0" in text


@pytest.mark.parametrize("p", ORDERS)
def test_threads_are_those_of_the_kernel_of_a_part(p, monkeypatch):
    """A part moves less than what wakes other threads, unless one window is larger."""
    shape, of_part = (1, 16, 512, 512), "for the kernel of each part; NumPy takes 1"
    monkeypatch.setattr(threads, "why_paused", lambda kernels: None)
    monkeypatch.setattr(threads, "effective_threads", lambda asked, work, limit: asked or 2)
    few = "1 (a call that moves less than 512 KiB takes no other)"
    if p not in (1, np.inf):  # their kernels take float64, twice the bytes
        few = "2 (within 2 ms of another call of 512 KiB or more, else 1: a call that moves less"
        few += " than 3 MiB does not wake threads)"
    assert f"threads {few} {of_part}" in explained(shape, "float32", 3, p)
    assert f"threads 2 (set by num_threads) {of_part}" in (
        explained(shape, "float32", 3, p, num_threads=2)
    )
    assert of_part in explained((1, 16, 2048, 2048), "float32", 2048, p, pads=1)


def test_drawings():
    pytest.importorskip("matplotlib")
    plan = fastpool.plan_lp_pool((6, 6), "float32", 3, 1.5, layout="HW")
    assert "p 1.5" in " ".join(text.get_text() for text in plan.draw().texts)
    assert "LpPoolPlan" in plan._repr_html_()
