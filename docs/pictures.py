"""Draw the pictures of the pages while the site is built. Each function returns a figure.

Where possible, fastpool or its planning of passes computes what a picture shows. For the others,

    python -P docs/pictures.py [costs] [layers]

measures these, or without names everything, and writes the figures of the pages. docs/releasing.md
has the steps.
"""

import functools
import json
import math
import subprocess
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyArrowPatch, Rectangle

import fastpool
from fastpool._running.passes import chain
from fastpool.bench.layers import GROUPS

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, SKY, ORANGE, YELLOW, GREEN, PINK, GREY = (
    *("#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#009E73", "#CC79A7", "#777777"),
)
COLOURS = (BLUE, ORANGE, GREEN, PINK, YELLOW, SKY)

HERE = Path(__file__).parent
SEED, LAYERS = 2004, 200  # a seed that nobody looked at


def canvas(width, height, x, y):
    """Return a figure of this size in inches. Its axes count cells, and y points down."""
    figure, axes = plt.subplots(figsize=(width, height))
    axes.set(xlim=x, ylim=y[::-1], aspect="equal")
    axes.set_axis_off()
    return figure, axes


def cell(axes, x, y, text="", fill="white", edge="#444444", **style):
    style = {"lw": 0.8, **style}
    axes.add_patch(Rectangle((x, y), 1, 1, facecolor=fill, edgecolor=edge, **style))
    axes.text(x + 0.5, y + 0.5, text, ha="center", va="center")


def outline(axes, x, y, width, height, colour, **style):
    style = {"lw": 2, "fill": False, **style}
    axes.add_patch(Rectangle((x, y), width, height, edgecolor=colour, **style))


def arrow(axes, start, end, colour=GREY, **style):
    style = {"arrowstyle": "-|>", "mutation_scale": 12, "lw": 1.2, **style}
    axes.add_patch(FancyArrowPatch(start, end, color=colour, shrinkA=0, shrinkB=0, **style))


def grid(axes, x, y, values, fills=None):
    for (row, column), value in np.ndenumerate(values):
        fill = "white" if fills is None else fills.get((row, column), "white")
        cell(axes, x + column, y + row, str(value), fill)


# ------------------------------------------------------------------------------- quick start


def pooling():
    """Draw 4 x 4 elements, their 2 x 2 windows, and the maximum and index of each window."""
    x = np.array([[1, 3, 2, 4], [5, 6, 8, 7], [3, 2, 1, 0], [1, 2, 3, 4]])
    y, where = fastpool.max_pool(x, 2, strides=2, layout="HW", return_indices=True)
    tints = {int(i): f"{colour}44" for i, colour in zip(where.flat, COLOURS, strict=False)}
    figure, axes = canvas(5, 2.15, (-0.2, 12.2), (-0.9, 4.2))
    grid(axes, 0, 0, x, {divmod(i, 4): tint for i, tint in tints.items()})
    for i, colour in enumerate(COLOURS[:4]):
        outline(axes, i % 2 * 2 + 0.05, i // 2 * 2 + 0.05, 1.9, 1.9, colour)
    for left, values, title in ((6, y, "maxima"), (9.8, where, "indices")):
        fills = dict(zip(np.ndindex(2, 2), tints.values(), strict=True))
        grid(axes, left, 1, values, fills)
        axes.text(left + 1, 0.6, title, ha="center")
    axes.text(2, -0.4, "x", ha="center")
    arrow(axes, (4.3, 2), (5.7, 2))
    return figure


# ---------------------------------------------------------------------------------- averages


def padded_means():
    """Draw the windows of a padded row, and each mean, without and with padding that counts."""
    row = np.array([3.0, 6.0, 9.0])
    padded = np.pad(row.astype(int), 1)
    figure, axes = canvas(6.5, 2.8, (-0.2, 13.2), (-0.9, 5.1))
    for left, include in ((0, False), (8, True)):
        y = fastpool.avg_pool(row, 3, pads=1, layout="W", count_include_pad=include)
        axes.text(left + 2.5, -0.4, f"count_include_pad={include}", ha="center")
        for place, value in enumerate(padded):
            is_padding = place in (0, 4)
            style = {"ls": ":", "edge": "#999999"} if is_padding else {"fill": "#f4f4f4"}
            cell(axes, left + place, 0, "0" if is_padding else str(value), **style)
        for output, mean in enumerate(y):
            colour, top = COLOURS[output], 1.3 + output * 1.3
            axes.plot([left + output + 0.1, left + output + 2.9], [top, top], color=colour, lw=3)
            places = [place for place in range(output, output + 3) if include or 0 < place < 4]
            taps = " + ".join(str(padded[place]) for place in places)
            text = f"({taps}) / {len(places)} = {mean:g}"
            axes.text(left + output + 1.5, top + 0.5, text, ha="center", va="center", color=colour)
    return figure


# --------------------------------------------------------------------------------- semantics


def index_spaces():
    """Draw both readings of ONNX's example of MaxUnpool with output_shape."""
    x = np.array([[[[5, 6], [7, 8]]]])
    where = np.array([[[[5, 7], [13, 15]]]])
    figure, axes = canvas(6.5, 3.3, (-0.2, 12.2), (-1.2, 5.2))
    for left, space in ((0, "inferred"), (7, "output")):
        y = fastpool.max_unpool(
            x, where, 2, strides=2, output_shape=(1, 1, 5, 5), index_space=space
        )[0, 0]
        counted = 4 if space == "inferred" else 5
        for row, column in np.ndindex(5, 5):
            there = y[row, column] > 0
            cell(axes, left + column, row, str(y[row, column]) if there else "",
                 f"{BLUE}44" if there else "white")  # fmt: skip
            if max(row, column) < counted:
                number = row * counted + column
                axes.text(left + column + 0.06, row + 0.1, number, fontsize=6, va="top", color=GREY)
        outline(axes, left, 0, counted, counted, ORANGE)
        axes.text(left + 2.5, -0.4, f'index_space="{space}"', ha="center")
    return figure


# ------------------------------------------------------------------------------------ inside


def two_passes():
    """Draw the maximum over a box as a pass over rows, then a pass over columns."""
    rng = np.random.default_rng(4)
    x = rng.integers(0, 100, (5, 8))
    band = fastpool.max_pool(x, (3, 1), layout="HW")
    y = fastpool.max_pool(band, (1, 3), layout="HW")
    figure, axes = canvas(6.5, 5.4, (-0.2, 12.2), (-0.7, 11.6))
    for top, values, title in (
        (0, x, "input"),
        (5.8, band, "band: maxima of\n3 rows each\n\n3 loads an element"),
        (9.6, y[:1], "first output row:\nmaxima of 3 columns\n\n3 loads an element"),
    ):
        grid(axes, 0, top, values)
        axes.text(8.5, top + len(values) / 2, title, va="center")
    outline(axes, 2.05, 0.05, 0.9, 2.9, BLUE)
    outline(axes, 2.05, 5.85, 0.9, 0.9, BLUE)
    arrow(axes, (2.5, 3), (2.5, 5.8), BLUE)
    outline(axes, 4.05, 5.85, 2.9, 0.9, ORANGE)
    outline(axes, 4.05, 9.65, 0.9, 0.9, ORANGE)
    arrow(axes, (5.5, 6.8), (4.6, 9.6), ORANGE)
    axes.set_ylim(10.8, -0.2)
    return figure


def bands():
    """Draw tiles of output rows, the overlapping input rows that they read, and their bands."""
    figure, axes = canvas(6.5, 3.6, (-0.3, 16.4), (-1.4, 8.4))
    axes.add_patch(Rectangle((0, 0), 5, 8, facecolor="#f4f4f4", edgecolor="#444444"))
    axes.add_patch(Rectangle((12, 0.5), 4, 7, facecolor="#f4f4f4", edgecolor="#444444"))
    for i, colour in enumerate((BLUE, ORANGE, GREEN)):
        top = i * 2.45
        axes.add_patch(Rectangle((0.1 + i * 0.14, top + 0.05), 4.6, 3, facecolor=f"{colour}33",
                                 edgecolor=colour, lw=1.5))  # fmt: skip
        axes.add_patch(Rectangle((7, i * 2.7 + 0.3), 3.2, 2, facecolor=f"{colour}33",
                                 edgecolor=colour, lw=1.5))  # fmt: skip
        axes.add_patch(Rectangle((12, 0.5 + i * 7 / 3), 4, 7 / 3, facecolor=f"{colour}33",
                                 edgecolor=colour, lw=1.5))  # fmt: skip
        arrow(axes, (5.1, top + 1.5), (6.9, i * 2.7 + 1.3), colour)
        arrow(axes, (10.3, i * 2.7 + 1.3), (11.9, 0.5 + (i + 0.5) * 7 / 3), colour)
    for x, text in (
        (2.5, "input plane"),
        (8.6, "bands, in the\nfirst-level cache"),
        (14, "output"),
    ):
        axes.text(x, -0.25, text, ha="center", va="bottom")
    for x, text in ((6, "row\npass"), (11.1, "column\npass")):
        axes.text(x, 0.3, text, ha="center", va="center", color=GREY, fontsize=8)
    return figure


def doubling(kernel=13):
    """Draw the chain of passes of a long window, and what one output covers after each pass."""
    steps = chain(kernel, 1)
    size = kernel + 2
    figure, axes = canvas(6.5, 2.9, (-4.3, size + 0.2), (-0.6, 2.6 * len(steps) + 1.6))
    for i in range(size):
        cell(axes, i, 0, str(i))
    axes.text(-0.3, 0.5, "elements", ha="right", va="center")
    covered = 1
    for number, step in enumerate(steps):
        y = 2.6 * (number + 1)
        reach = covered + step.last
        shifts = [min(t * step.shift, step.last) for t in range(step.taps)]
        for t, shift in enumerate(shifts):
            colour = COLOURS[t % len(COLOURS)]
            drop = 0.28 * (t % 2)  # those that overlap stay apart
            axes.plot([shift + 0.12, shift + covered - 0.12], [y - 0.75 + drop] * 2,
                      color=colour, lw=5, solid_capstyle="butt")  # fmt: skip
        axes.plot([0.05, reach - 0.05], [y + 0.2] * 2, color="#444444", lw=5,
                  solid_capstyle="butt")  # fmt: skip
        text = f"pass {number + 1}: {step.taps} taps,\n{step.shift} apart"
        axes.text(-0.3, y - 0.3, text, ha="right", va="center")
        axes.text(reach + 0.2, y + 0.2, f"{reach}", va="center", color="#444444")
        covered = reach
    return figure


def loads():
    """Plot the loads per output of three methods, over windows of 2 to 129 taps."""
    kernels = range(2, 130)
    chains = [sum(step.taps for step in chain(k, 1)) for k in kernels]
    figure, axes = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
    axes.plot(kernels, kernels, color=ORANGE, label="every tap")
    axes.plot(kernels, chains, color=BLUE, label="chain of passes")
    axes.plot(kernels, [3 for _ in kernels], color=GREEN, label="running maxima")
    axes.set(xscale="log", yscale="log", xlabel="taps of the window", ylabel="loads per output")
    ticks = [2, 4, 8, 16, 32, 64, 128]
    axes.set_xticks(ticks, labels=ticks)
    axes.set_yticks(ticks, labels=ticks)
    axes.minorticks_off()
    axes.grid(color="#dddddd", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def running_maxima():
    """Draw windows of five elements around a middle, and the running maxima on both sides."""
    x = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5])
    kernel = 5
    before = np.maximum.accumulate(x[:kernel][::-1])[::-1]
    after = np.maximum.accumulate(x[kernel:])
    y = fastpool.max_pool(x, kernel, layout="W")
    figure, axes = canvas(6.5, 3.4, (-3.4, 9.3), (-0.9, 6.2))
    for i, value in enumerate(x):
        cell(axes, i, 0, str(value))
    axes.plot([kernel] * 2, [-0.6, 3.2], color="black", lw=1.5, ls="--")
    axes.text(kernel, -0.65, "middle", ha="center", va="bottom")
    for i, value in enumerate(before):
        cell(axes, i, 2, str(value), f"{BLUE}33")
    for i, value in enumerate(after):
        cell(axes, kernel + i, 2, str(value), f"{ORANGE}33")
    arrow(axes, (kernel - 0.2, 1.6), (0.2, 1.6), BLUE)
    arrow(axes, (kernel + 0.2, 1.6), (len(x) - 0.2, 1.6), ORANGE)
    for i, value in enumerate(y):
        cell(axes, i, 4.4, str(value))
    outline(axes, 2.04, 0.04, kernel - 0.08, 0.92, GREEN)
    outline(axes, 2.04, 2.04, 0.92, 0.92, GREEN)
    outline(axes, 6.04, 2.04, 0.92, 0.92, GREEN)
    outline(axes, 2.04, 4.44, 0.92, 0.92, GREEN)
    arrow(axes, (2.5, 3), (2.5, 4.4), GREEN)
    arrow(axes, (6.5, 3), (3, 4.5), GREEN)
    for y_text, text in ((0.5, "elements"), (2.5, "running\nmaxima"), (4.9, "output")):
        axes.text(-0.3, y_text, text, ha="right", va="center")
    axes.set_ylim(5.6, -1.3)
    return figure


def taps():
    """Draw the order in which taps are compared with indices, and which equal maximum wins."""
    x = np.array([[2, 7, 1], [7, 3, 7], [0, 5, 6]])
    figure, axes = canvas(6.5, 3.0, (-0.2, 13.2), (-0.9, 4.4))
    grid(axes, 0, 0.4, x, {(0, 1): f"{BLUE}44"})
    for number, (row, column) in enumerate(np.ndindex(3, 3)):
        axes.text(column + 0.06, row + 0.5, number, fontsize=7, va="top", color=GREY)
    axes.text(1.5, 0.1, "a window", ha="center")
    best, place, shown = -math.inf, -1, []
    for number, value in enumerate(x.flat):
        taken = value > best
        best, place = (value, number) if taken else (best, place)
        shown.append((number, value, best, place, taken))
    for title, x_text in (("tap", 4.6), ("value", 6.2), ("best so far", 8.6), ("its place", 11.4)):
        axes.text(x_text, -0.35, title, ha="center", fontsize=9)
    for line, (number, value, best, place, taken) in enumerate(shown):
        y = 0.12 + line * 0.46
        style = {"color": BLUE, "weight": "bold"} if taken else {"color": "#444444"}
        for x_text, text in ((4.6, number), (6.2, value), (8.6, best), (11.4, place)):
            axes.text(x_text, y, text, ha="center", va="center", fontsize=9, **style)
    axes.set_ylim(4.1, -0.8)
    return figure


def short_rows():
    """Draw 21 elements in vectors of eight, the last one overlapping or masked."""
    figure, axes = canvas(6.5, 2.1, (-0.2, 24.2), (-1, 6.2))
    for top, pieces, text in (
        (0.4, ((0, 8), (8, 8), (13, 8)), "the last vector overlaps the one before"),
        (4.0, ((0, 8), (8, 8), (16, 8)), "the last vector is masked (AVX-512)"),
    ):
        axes.text(0, top - 0.3, text, fontsize=9)
        for i in range(24):
            if i < 21:
                cell(axes, i, top, fill="#f4f4f4", edge="#aaaaaa")
            elif top > 1:
                cell(axes, i, top, edge="#cccccc", ls=":")
        for number, (first, lanes) in enumerate(pieces):
            low = 0.18 if number == 2 and first == 13 else 0
            outline(axes, first + 0.08, top + 0.08 + low, lanes - 0.16, 0.84 - 0, COLOURS[number])
    return figure


# ------------------------------------------------------------------------------- performance


def random_layers():
    """Plot random.json: the fastest other library's time over fastpool's, and geometric means."""
    rows = json.loads((HERE / "random.json").read_text())["rows"]
    groups = {}
    for _, group, ratio, *_ in sorted(rows, key=lambda row: GROUPS.index(row[1])):
        groups.setdefault(group.replace(" ", "\n", 1), []).append(ratio)
    figure, axes = plt.subplots(figsize=(4.6, 4), layout="constrained")
    for place, ratios in enumerate(groups.values()):
        spread = [place + 0.5 * (i * 0.618 % 1 - 0.5) for i in range(len(ratios))]
        axes.plot(ratios, spread, "o", color=BLUE, mew=0, ms=4, alpha=0.5)
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        axes.plot([mean] * 2, [place - 0.3, place + 0.3], color=ORANGE, lw=2)
    axes.axvline(1, color="black", lw=1, zorder=0)
    axes.set(xscale="log", xlabel="times as fast as the fastest other library")
    ticks = [0.01, 0.1, 1, 10, 100]
    axes.set_xticks(ticks, labels=map("{:g}".format, ticks))
    axes.minorticks_off()
    axes.set_yticks(range(len(groups)), labels=groups)
    axes.invert_yaxis()
    axes.grid(axis="x", color="#dddddd", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def errors():
    """Plot errors.json: the error of means over the extent of the window, and over planes."""
    found = json.loads((HERE / "errors.json").read_text())
    at = found["figures"].index("99th percentile")
    shown = {
        "sequential": ("element by element", GREY),
        "torch": ("torch", SKY),
        "litert": ("LiteRT", YELLOW),
        "numpy": ("NumPy", GREEN),
        "jax": ("JAX", PINK),
        "pairwise": ("fastpool", BLUE),
        "exact": ('fastpool, numerics="exact"', ORANGE),
    }
    figure, panels = plt.subplots(2, figsize=(4.6, 5.6), sharey=True, layout="constrained")
    for axes, form in zip(panels, ("window", "plane"), strict=True):
        for name, (label, colour) in shown.items():
            points = [
                (extent, figures[at])
                for data, kind, extent, way, figures in found["rows"]
                if (data, kind, way) == ("uniform", form, name)
            ]
            style = {"color": colour, "lw": 2 if name in ("pairwise", "exact") else 1}
            axes.plot(*zip(*points, strict=True), "o-", ms=3, label=label, **style)
        ticks = sorted({extent for extent, _ in points})
        if form == "window":
            ticks = [2, 3, 5, 9, 16, 32, 64]
        axes.set(xscale="log", yscale="log", xlabel=f"{form}, along both axes")
        axes.set_xticks(ticks, labels=map(str, ticks))
        axes.set_yticks([0.5, 1, 2, 5, 10, 100, 1000], labels="0.5 1 2 5 10 100 1000".split())
        axes.minorticks_off()
        axes.grid(color="#dddddd", lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylabel("error of 99 of 100 means")
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def measure_layers():
    """Measure random layers on one thread, and write random.json."""
    from fastpool._cli.bench import PEERS
    from fastpool.bench import layers, measure, report

    names, drawn = ["fastpool", "limit", *PEERS], layers.random_layers(SEED, LAYERS)
    results, versions = measure.compare(drawn, names, (1,), 3, 0.01, {}, print)
    rows = [
        json.dumps([r["workload"], r["group"], round(r["ratio"], 3), r["best"], r["from_limit"]])
        for r in report.summary(results)
    ]
    facts = {"machine": report.machine(), "versions": versions, "seed": SEED, "count": LAYERS}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in facts.items()]
    lines.append(' "rows": [\n  ' + ",\n  ".join(rows) + "\n ]")
    (HERE / "random.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


# Means of these shapes (channels first) under these windows, and what else the call says.
COSTS = (
    ((1, 96, 56, 56), 3, {"pads": 1}),
    ((1, 128, 56, 56), 2, {"strides": 2}),
    ((1, 64, 112, 112), 3, {"strides": 2, "pads": 1}),
    ((1, 256, 80, 80), 2, {}),
    ((1, 16, 224, 224), 15, {}),
    ((1, 4, 224, 224), 65, {}),
    ((1, 2048, 7, 7), 7, {}),
    ((1, 64, 56, 56), 56, {}),
    ((1, 256, 14, 14), 14, {}),
    ((1, 16, 16, 28, 28), 3, {"pads": 1}),
    ((1, 1, 1_000_000), 100, {}),
    ((1, 96, 56, 56), 3, {"pads": 1, "nan": "ignore"}),
)


def measure_costs():
    """Measure means in pairs and exact ones on one thread, in turns, and write costs.json."""
    from fastpool.bench import report

    rows = []
    for shape, kernel, more in COSTS:
        x = np.random.default_rng(0).random(shape, np.float32)
        if "nan" in more:
            x[np.random.default_rng(1).random(shape) < 0.1] = np.nan
        calls = []
        axes = "DHW"[5 - x.ndim :]
        for array, layout in ((x, f"NC{axes}"), (np.moveaxis(x, 1, -1).copy(), f"N{axes}C")):
            for numerics in ("exact", "pairwise"):
                how = {"layout": layout, "numerics": numerics, "num_threads": 1, **more}
                plan = fastpool.plan_avg_pool(array.shape, "float32", kernel, **how)
                calls.append(functools.partial(plan, array, out=plan(array)))
        least = [math.inf] * len(calls)
        for which in [*range(len(calls))] * 50:
            start = time.process_time()
            calls[which]()
            least[which] = min(least[which], time.process_time() - start)
        rows.append([list(shape), kernel, more, [round(seconds * 1e6, 1) for seconds in least]])
    lines = ",\n  ".join(map(json.dumps, rows))
    machine = json.dumps(report.machine())
    (HERE / "costs.json").write_text(f'{{\n "machine": {machine},\n "rows": [\n  {lines}\n ]\n}}\n')


if __name__ == "__main__":
    names = sys.argv[1:]
    for name, measure_it in (("costs", measure_costs), ("layers", measure_layers)):
        if name in names or not names:
            measure_it()
    commands = (
        ["ci/errors.py", "--json", "docs/errors.json"],
        ["docs/routes.py"],
        ["examples/inside_onnxruntime.py", "--json", "docs/inside.json"],
        ["-m", "fastpool", "bench", "--readme"],
    )
    for command in (*(() if names else commands), ["ci/check_figures.py", "--write"]):
        subprocess.check_call([sys.executable, "-P", *command], cwd=HERE.parent)
