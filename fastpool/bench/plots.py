"""Draw the measurements."""

import math
from itertools import cycle

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402  (the backend must be set first)

from .report import summary  # noqa: E402
from .workloads import AVERAGE_GROUPS, MAXIMUM_GROUPS  # noqa: E402

# Colour-blind safe, by Okabe and Ito.
COLOURS = ("#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#009E73", "#CC79A7", "#000000", "#888888")
MIDDLING = ("#1f8ad2", *COLOURS[2:6], COLOURS[7])  # can be read on white and on black
MARKERS = "os^Dv"
NAMED = 40  # if there are more workloads, there is no room for their names

STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "svg.fonttype": "none",
}


def plot_comparison(results, path):
    """Draw the ratio to the best peer and the distance from the memory limit, by group.

    Maxima and averages have a part of the picture each. `path` may be a binary file, which gets
    SVG.
    """
    rows = sorted(summary(results), key=lambda row: row["ratio"])
    named = {row["group"] for row in rows}
    parts = [part for part in (MAXIMUM_GROUPS, AVERAGE_GROUPS) if named & {*part}]
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(11, 6.5 * max(1, len(parts))), layout="constrained")
        areas = figure.subfigures(len(parts), squeeze=False).flat if parts else ()
        for area, groups in zip(areas, parts, strict=True):
            _draw_comparison(area, [row for row in rows if row["group"] in groups], groups)
        figure.savefig(path, dpi=150, format="svg" if hasattr(path, "write") else None)
        plt.close(figure)


def _draw_comparison(area, rows, groups):
    names = [
        name
        for group in groups
        for name in dict.fromkeys(row["workload"] for row in rows if row["group"] == group)
    ]
    where = {name: position for position, name in enumerate(names)}
    thread_counts = sorted({row["threads"] for row in rows})
    upper, lower = area.subplots(2, sharex=True, height_ratios=(3, 2))
    for threads, marker in zip(thread_counts, MARKERS, strict=False):
        for group, colour in zip(groups, cycle(COLOURS), strict=False):
            members = [r for r in rows if (r["group"], r["threads"]) == (group, threads)]
            x = [where[row["workload"]] for row in members]
            style = {"color": colour, "marker": marker, "ls": "none", "ms": 4.5}
            upper.plot(x, [row["ratio"] for row in members], **style)
            lower.plot(x, [row["from_limit"] or float("nan") for row in members], **style)
        if len(thread_counts) > 1:
            label = f"{threads} thread{'s' if threads > 1 else ''}"
            upper.plot([], [], color="#444444", marker=marker, ls="none", label=label)
    if len(thread_counts) > 1:
        upper.legend(loc="upper left", frameon=False, ncols=len(thread_counts))
    upper.set_ylabel("best peer's time / fastpool's")
    lower.set_ylabel("fastpool's time /\nmemory limit")
    for axes in (upper, lower):
        axes.set_yscale("log")
        axes.axhline(1, color="black", lw=1, zorder=1)
        axes.grid(axis="x", visible=False)
        plain_numbers(axes.yaxis)
    _label_groups(upper, lower, rows, groups, where)


def _label_groups(upper, lower, rows, groups, where):
    """Name the groups above the points, and the workloads (or least ratios, if many) below."""
    lower.set_xlim(-1, len(where))
    few = len(where) <= NAMED
    lower.set_xticks([])
    if few:
        style = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
        lower.set_xticks([*where.values()], [*where], **style)
    for group, colour in zip(groups, cycle(COLOURS), strict=False):
        members = [row for row in rows if row["group"] == group]
        if not members:
            continue
        x = [where[row["workload"]] for row in members]
        for axes in (upper, lower):
            axes.axvline(max(x) + 0.5, color="#dddddd", lw=0.8, zorder=0)
        label = group.removeprefix("average: ").replace(", channels ", "\nchannels\n")
        short_words = ("exact: ", "exact"), ("sequential: ", "seq. ")
        for word, short in (("other ",) * 2, ("windows ",) * 2, *short_words):
            label = label.replace(word, f"{short.rstrip()}\n")
        style = {"ha": "center", "va": "bottom", "color": colour, "fontsize": 8}
        upper.text(
            (min(x) + max(x)) / 2, 1.02, label, transform=upper.get_xaxis_transform(), **style
        )
        if not few:
            side, shift = ("left", 3) if x[0] < 0.8 * len(where) else ("right", -3)
            upper.annotate(
                members[0]["workload"],
                (x[0], members[0]["ratio"]),
                (shift, -5),
                textcoords="offset points",
                **{"ha": side, "va": "top", "color": colour, "fontsize": 7},
            )


def plain_numbers(axis, subs=(1, 2, 5)):
    """Label the ticks of a logarithmic axis 0.5, 1, 2, ..., not as powers."""
    axis.set_major_locator(matplotlib.ticker.LogLocator(10, subs=subs))
    axis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def plot_sweep(results, path):
    """Draw the time per output over the window: a panel per kind, element type and layout."""
    columns = [(d, layout) for d in ("float32", "uint8") for layout in ("NCHW", "NHWC")]
    kinds = ("values", "indices")
    with plt.rc_context(STYLE):
        figure, grid = plt.subplots(
            *(len(kinds), len(columns)),
            **{"sharex": True, "sharey": "row", "figsize": (11, 5.5), "layout": "constrained"},
        )
        for kind, panels in zip(kinds, grid, strict=True):
            for (dtype, layout), axes in zip(columns, panels, strict=True):
                panel = {"kind": kind, "dtype": dtype, "layout": layout}
                _draw_curves(axes, [r for r in results if panel.items() <= r.items()])
            panels[0].set_ylabel(f"{kind}\nns per output")
        for (dtype, layout), axes in zip(columns, grid[0], strict=True):
            order = "last" if layout == "NHWC" else "first"
            axes.set_title(f"{dtype}, channels {order}", fontsize=9)
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
        figure.supxlabel("window (taps along each of two axes)", fontsize=9)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def _draw_curves(axes, results):
    for stride, colour in zip((1, 2, 3), COLOURS[::2], strict=False):
        for dilation, style in ((1, "-"), (2, ":")):
            curve = [r for r in results if (r["stride"], r["dilation"]) == (stride, dilation)]
            axes.plot(
                *([r["kernel"] for r in curve], [r["nanoseconds"] for r in curve]),
                **{"color": colour, "ls": style, "lw": 1.2},
                label=f"stride {stride}, dilation {dilation}",
            )
    axes.set_xscale("log", base=2)
    axes.set_xticks([2, 4, 8, 16, 32, 64, 128], labels=[2, 4, 8, 16, 32, 64, 128])
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.set_yscale("log")
    plain_numbers(axes.yaxis)


def plot_windows(curves, path):
    """Draw the time over the window: a panel for maxima and one for means, a curve per library.

    The picture has no background.
    """
    grey = "#7f7f7f"
    style = {"font.size": 10, "text.color": grey, "axes.labelcolor": grey, "axes.edgecolor": grey}
    style |= {"xtick.color": grey, "ytick.color": grey, "grid.color": grey, "grid.alpha": 0.3}
    with plt.rc_context(STYLE | style | {"svg.hashsalt": "fastpool"}):
        figure, panels = plt.subplots(2, figsize=(4.6, 5), sharex=True, layout="constrained")
        for op, axes in zip(("max", "avg"), panels, strict=True):
            libraries = [*dict.fromkeys(name for of, _, name, _ in curves if of == op)]
            ends = []
            for name, colour in zip(libraries, cycle(MIDDLING), strict=False):
                points = [(k, t / 1e3) for of, k, peer, t in curves if (of, peer) == (op, name)]
                axes.plot(*zip(*points, strict=True), color=colour, lw=1 + (name == "fastpool"))
                ends.append((points[-1][1], name, colour))
            axes.set(xscale="log", yscale="log")
            _name_ends(axes, ends)
            axes.set_title({"max": "maximum", "avg": "mean"}[op] + ", milliseconds", fontsize=10)
            plain_numbers(axes.yaxis, subs=(1,))
        axes.set_xticks([3, 5, 9, 17, 33, 65], labels=[3, 5, 9, 17, 33, 65])
        axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        axes.set_xlabel("window, along both axes")
        figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)


def _name_ends(axes, ends):
    """Write the names of curves at the right, next to their ends but a line apart."""
    low, top = map(math.log, axes.get_ylim())
    place = -1
    for value, name, colour in sorted(ends):
        place = max((math.log(value) - low) / (top - low), place + 0.08)
        style = {"color": colour, "va": "center", "transform": axes.transAxes}
        axes.text(1.03, place, name, **style)
