"""fastpool.files.pyramid writes OME-Zarr images with the bits of fastpool.pyramid, or nothing."""

import doctest
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import block_cases
import cases
import fastpool
import fastpool.files
from fastpool._running import builds as running

zarr = pytest.importorskip("zarr")

X = np.random.default_rng(0).integers(0, 1000, (9, 21, 17)).astype(np.uint16)
FUNCTIONS = block_cases.FUNCS
AXES = {2: ["yx", "xy"], 3: ["zyx", "cyx", "tyx", "yxc", "xyz"], 4: ["czyx", "tzyx", "zcyx"]}
AXES[5] = ["tczyx", "tzcyx"]
needs_posix = pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    return tmp_path


def write(source="x.npy", target="y.zarr", levels=2, factor=2, func="mean", axes="zyx", **more):
    fastpool.files.pyramid(source, target, levels, factor, func, axes=axes, **more)
    return zarr.open_group(target, mode="r")


def attributes_of(group):
    attributes = dict(group.attrs)
    return attributes.get("ome", attributes)["multiscales"][0]


def assert_holds(group, x, levels, factor, func, axes=None, **more):
    """Compare an image with `x`, whose axes are `axes`, and its levels in memory."""
    axes = axes or "tczyx"[-x.ndim :]
    order = sorted(range(x.ndim), key=lambda axis: "tczyx".index(axes[axis]))
    x = x.transpose(order)
    factor = (factor,) * x.ndim if isinstance(factor, int) else [factor[axis] for axis in order]
    expected = [x.astype(x.dtype.newbyteorder("="))]
    expected += fastpool.pyramid(x, levels, factor, func, **more)
    assert sorted(group.array_keys()) == [str(level) for level in range(levels + 1)]
    for level, want in enumerate(expected):
        cases.assert_same(group[str(level)][:], want, f"level {level}")
        shape = zip(group[str(level)].shape, group["0"].chunks, strict=True)
        assert group[str(level)].chunks == tuple(max(1, min(pair)) for pair in shape)
    image = attributes_of(group)
    assert [axis["name"] for axis in image["axes"]] == [axes[axis] for axis in order]
    for level, data in enumerate(image["datasets"]):
        scale, shift = data["coordinateTransformations"]
        steps = [f**level for f in factor]
        assert data["path"] == str(level) and scale == {"type": "scale", "scale": steps}
        assert shift == {"type": "translation", "translation": [(f - 1) / 2 for f in steps]}
    assert image["type"] == func


# ------------------------------------------------------------------------------------------ results


def drawn(rng):
    """Return an array, its axes, levels, a factor, a statistic and attributes, which may not agree."""
    rank = int(rng.integers(2, 6))
    shape = tuple(rng.integers(rng.random() < 0.97, [0, 9, 9, 17, 25, 25][6 - rank :]).tolist())
    shape = tuple(rng.integers(rng.random() < 0.97, 40 if rank == 2 else 12, rank).tolist())
    x = (rng.standard_normal(shape) * 4).astype(rng.choice([*cases.INTEGER_NAMES, "bool", "float16", "float32", "float64"]))
    if x.dtype.kind == "f":
        x[rng.random(shape) < 0.2] = rng.choice([np.nan, -0.0])
    x = cases.arranged(x, rng.choice(cases.ARRANGEMENTS))
    factor = tuple(rng.integers(1, 4, rank).tolist()) if rng.random() < 0.7 else 2
    more = {"edge": str(rng.choice(["keep", "keep", "trim", "exact"]))}
    for name, value in (
        ("nan", "ignore"),
        ("nodata", int(rng.integers(2))),
        ("min_count", int(rng.integers(1, 3))),
        ("ddof", 1),
        ("rounding", "half_away"),
        ("numerics", "exact"),
        ("dtype", rng.choice(["float64", "float32", "int64"])),
        ("num_threads", 1),
    ):
        if rng.random() < 0.2:
            more[name] = value
    return x, str(rng.choice(AXES[rank])), int(rng.integers(1, 4)), factor, str(rng.choice(FUNCTIONS)), more


@pytest.mark.parametrize("seed", range(150))
def test_any_array_and_attributes(folder, seed):
    rng = np.random.default_rng(seed)
    x, axes, levels, factor, func, more = drawn(rng)
    np.save("x.npy", x)
    version, sizes = str(rng.choice(["0.5", "0.4"])), {}
    if rng.random() < 0.8:
        sizes["chunks"] = rng.integers(1, 9, x.ndim).tolist() if rng.random() < 0.7 else 4
    given = {**more, **sizes, "ome_version": version}
    try:
        fastpool.pyramid(x, levels, factor, func, **more)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            write(levels=levels, factor=factor, func=func, axes=axes, **given)
        assert cases.names(folder) == ["x.npy"]
        return
    try:
        group = write(
            levels=levels, factor=factor, func=func, axes=axes, max_bytes=2000, **given
        )
    except ValueError as error:
        least = int(re.search("max_bytes: expected at least ([0-9]+)", str(error))[1])
        assert least > 2000
        group = write(
            levels=levels, factor=factor, func=func, axes=axes, max_bytes=least, **given
        )
    assert group.metadata.zarr_format == (2 if version == "0.4" else 3)
    assert_holds(group, x, levels, factor, func, axes, **more)
    assert cases.names(folder) == ["x.npy", "y.zarr"]
