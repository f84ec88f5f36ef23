"""Measure how far means of float32 are from the true ones, in units of the last place (ulps).

    python ci/errors.py --json docs/errors.json    # what docs/averages.md draws; some minutes
    python ci/errors.py --quick --library torch    # few windows, and one other library

Prints the median error, the 99th percentile and the greatest one, of every window of a random array
and of one window over each of many planes. The libraries are those of `fastpool bench` that are
installed, in all their ways; NumPy takes `mean` of a view of the windows. At the end it lists where
the 99th percentile of fastpool's default is above that of another library.
"""

import argparse
import importlib
import json
import math
import sys

import numpy as np

import fastpool
from fastpool.bench import LIBRARIES, OWN
from fastpool.bench.workloads import Workload

WINDOWS = (2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 23, 31, 32, 33, 49, 64, 65)
PLANES = (7, 14, 28, 56, 112, 224, 512, 1024)
QUICK = (3, 15), (7, 112)
OUTPUTS, CHANNELS = 24, 32  # windows along each axis; planes
DATA = {
    "uniform": lambda rng, shape: rng.random(shape, np.float32),
    "normal": lambda rng, shape: rng.standard_normal(shape, np.float32),
}
NUMERICS = ("pairwise", "exact", "sequential")
FIGURES = {"median": 50, "99th percentile": 99, "greatest": 100}


def workload(shape, kernel, layout):
    n, c, *sizes = shape
    return Workload(
        name="errors",
        group="errors",
        kind="average",
        shape=(n, *sizes, c) if layout == "NHWC" else shape,
        layout=layout,
        dtype="float32",
        kernel_shape=kernel,
        strides=(1, 1),
        pads=(0,) * 4,
        dilations=(1, 1),
        ceil_mode=False,
        auto_pad="NOTSET",
    )


def true_means(x, kernel):
    """Return the means, off by two roundings of float64 at most."""
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))
    means = np.empty(windows.shape[:4])
    for place in np.ndindex(means.shape):
        means[place] = math.fsum(windows[place].ravel().tolist())
    return means / math.prod(kernel)


def results(x, kernel, libraries):
    """Yield (name of a way, means, channels first)."""
    for numerics in NUMERICS:
        yield numerics, fastpool.avg_pool(x, kernel, numerics=numerics)
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))
    yield "numpy", windows.mean((4, 5))
    for peer in libraries:
        for name, way in peer.ways["avg"].items():
            for layout in ("NCHW", "NHWC"):
                array = x if layout == "NCHW" else np.ascontiguousarray(np.moveaxis(x, 1, -1))
                try:
                    prepared = way(peer, workload(x.shape, kernel, layout), array)
                except Exception as refusal:  # a library may raise anything
                    print(f"{name}, {kernel}: {refusal}"[:100], file=sys.stderr)
                    continue
                if prepared:
                    call, found = prepared
                    call()
                    (y,) = found()
                    yield name, y if layout == "NCHW" else np.moveaxis(y, -1, 1)
                    break


def started(names):
    """Return the peers that are installed."""
    for name in names:
        module, peer = LIBRARIES[name]
        try:
            yield getattr(importlib.import_module(f"fastpool.bench.{module}"), peer)(1)
        except ImportError as missing:
            print(f"left out: {name} ({missing})", file=sys.stderr)


def measured(windows, planes, libraries):
    """Yield (data, "window" or "plane", extent, way, figures)."""
    shapes = [("window", (1, CHANNELS, k + OUTPUTS - 1, k + OUTPUTS - 1), k) for k in windows]
    for size in planes:
        count = max(128, min(8192, 2**23 // size**2)) // 16 * 16
        shapes.append(("plane", (1, count, size, size), size))
    for data, draw in DATA.items():
        for form, shape, extent in shapes:
            x = draw(np.random.default_rng(extent), shape)
            means = true_means(x, (extent, extent))
            units = np.spacing(abs(means).astype(np.float32)).astype(np.float64)
            for way, y in results(x, (extent, extent), libraries):
                errors = abs(y.astype(np.float64) - means) / units
                yield data, form, extent, way, np.percentile(errors, [*FIGURES.values()]).tolist()


def show(rows):
    """Print a table for each kind of data, of windows and of planes, and each figure."""
    for data, form in dict.fromkeys((data, form) for data, form, *_ in rows):
        some = [row for row in rows if row[:2] == (data, form)]
        ways = [*dict.fromkeys(way for *_, way, _ in some)]
        by_place = {(extent, way): figures for _, _, extent, way, figures in some}
        for number, figure in enumerate(FIGURES):
            print(f"\n{data} numbers, {form}s, {figure}, ulps")
            print(f"{form:>7}", *(f"{way:>10}" for way in ways))
            for extent in dict.fromkeys(extent for extent, _ in by_place):
                cells = ((by_place.get((extent, way)), max(10, len(way))) for way in ways)
                texts = (f"{f'{found[number]:.2f}' if found else '-':>{n}}" for found, n in cells)
                print(f"{extent:7}", *texts)


def worse(rows):
    """Return where the 99th percentile of the default is above that of a library."""
    default = {row[:3]: row[4][1] for row in rows if row[3] == NUMERICS[0]}
    return [
        f"{data} {form} {extent}: {default[data, form, extent]:.3f}, {way} {figures[1]:.3f}"
        for data, form, extent, way, figures in rows
        if way not in NUMERICS and figures[1] < default[data, form, extent]
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    peers = [name for name in LIBRARIES if name not in (*OWN, "numpy")]
    parser.add_argument("--library", action="append", choices=peers, help="only these; repeatable")
    parser.add_argument("--quick", action="store_true", help="few windows and planes")
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args()
    libraries = [*started(options.library or peers)]
    windows, planes = QUICK if options.quick else (WINDOWS, PLANES)
    rows = []
    for row in measured(windows, planes, libraries):
        rows.append(row)
        print(*row[:4], file=sys.stderr)
    show(rows)
    if options.json:
        with open(options.json, "w") as file:
            lines = ",\n".join(json.dumps([*r[:4], [round(f, 3) for f in r[4]]]) for r in rows)
            file.write(f'{{"figures": {json.dumps([*FIGURES])}, "rows": [\n{lines}\n]}}\n')
    print(
        "\nThe default has a greater 99th percentile here:",
        *(worse(rows) or ["nowhere"]),
        sep="\n  ",
    )


if __name__ == "__main__":
    main()
