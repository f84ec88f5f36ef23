"""Write the page of speed for perf_report.sh: fastpool, an earlier version of it, and the peers.

    python ci/perf_report.py --earlier ENVIRONMENT/bin/python [--names NEW OLD] [--quick]

Each library runs in a separate process and is timed in turns with the others, so that other work on
the machine affects all of them. Exits with 1 if an answer of fastpool differs.
"""

import argparse
import datetime
import html
import io
import sys
from itertools import cycle
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from fastpool.bench import LIBRARIES, OWN, measure, plots, report
from fastpool.bench.workloads import GROUPS, QUICK, WORKLOADS

# On a shared machine, the ratio of two runs of one version can be this far from 1.
NOISE = 1.15
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 } caption { text-align: left; color: #555 }
th, td { padding: .15rem .7rem; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left }
.slower { background: #fde0d2 } .faster { background: #d9f0e3 }
svg { max-width: 100%; height: auto } .wide { overflow-x: auto }
"""


def main():
    options = _options()
    names = ["fastpool", "earlier", "limit", *(name for name in LIBRARIES if name not in OWN)]
    results, versions = measure.compare(
        [w for w in WORKLOADS if not options.quick or w.name in QUICK],
        names,
        thread_counts=options.threads or [1],
        rounds=3 if options.quick else 7,
        seconds=0.01 if options.quick else 0.03,
        pythons={"earlier": options.earlier},
        say=lambda message: print(message, file=sys.stderr, flush=True),
    )
    options.output.write_text(page(results, versions, *options.names), encoding="utf-8")
    print(options.output)
    return any(r["status"] != "exact" for r in results if r["library"] == "fastpool")


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--earlier", required=True, metavar="PYTHON", help="its interpreter")
    parser.add_argument("--names", nargs=2, default=("fastpool", "earlier"), help="of both")
    parser.add_argument("--quick", action="store_true", help="few workloads, a minute or two")
    parser.add_argument("--threads", type=int, action="append", help="[1] (repeatable)")
    parser.add_argument("--output", type=Path, default=Path("perf.html"), help="[%(default)s]")
    return parser.parse_args()


def page(results, versions, new, old):
    rows = report.summary(results)
    machine = "{processor}, {processors} processors, {system}, Python {python}".format(
        **report.machine()
    )
    title = f"fastpool {new} against {old} and the peers"
    return "\n".join(
        [
            f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{_text(title)}</title>",
            "<meta name='viewport' content='width=device-width'>",
            f"<style>{STYLE}</style><h1>{_text(title)}</h1>",
            f"<p>{datetime.date.today()}, {_text(machine)}.<br>",
            _text(", ".join(f"{name} {version}" for name, version in versions.items())) + "</p>",
            "<p>Every library was timed in turns with the others, its answer found exact first. "
            f"Ratios are other time / fastpool's: above 1 fastpool {_text(new)} is faster. "
            f"Beyond {NOISE} either way they are coloured.</p>",
            _groups_table(rows, old),
            f"<h2>Against {_text(old)}</h2>",
            _svg(lambda file: plot_gains(rows, file)),
            "<h2>Against the peers</h2>",
            _svg(lambda file: plots.plot_comparison(results, file)),
            "<h2>Every workload</h2>",
            _workloads_table(rows, old),
            "<h2>Not timed</h2><pre>",
            _text("\n".join(report.problems(results)) or "nothing"),
            "</pre></html>",
        ]
    )


def _groups_table(rows, old):
    heads = ["workloads", "threads", "count", f"{old}: geometric mean", "least"]
    heads += ["best peer: geometric mean", "least", "from the memory limit"]
    body = []
    for group in report.groups(rows):
        ratios = [group[name] for name in ("gain", "least_gain", "ratio", "least")]
        cells = [_cell(group[name]) for name in ("group", "threads", "count")]
        cells += map(_ratio, ratios)
        body.append([*cells, _cell(_number(group["from_limit"]))])
    return _table(heads, body, "Geometric means and the worst of each group")


def _workloads_table(rows, old):
    heads = ["workload", "threads", "microseconds", f"{old} / this", "best peer", "peer / this"]
    body = [
        [
            *map(_cell, (row["workload"], row["threads"], f"{row['fastpool_microseconds']:.4g}")),
            _ratio(row["gain"]),
            _cell(row["best"]),
            _ratio(row["ratio"]),
        ]
        for row in rows
    ]
    return _table(heads, body, "Medians over the rounds")


def _table(heads, body, caption):
    lines = ["".join(f"<th>{_text(head)}</th>" for head in heads), *map("".join, body)]
    rows = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f"<div class='wide'><table><caption>{caption}</caption>\n{rows}\n</table></div>"


def _cell(value, kind=""):
    return f"<td class='{kind}'>{_text(str(value))}</td>"


def _ratio(value):
    kind = "" if value is None else "slower" * (value < 1 / NOISE) or "faster" * (value > NOISE)
    return _cell(_number(value), kind)


def _number(value):
    return "-" if value is None else f"{value:.2f}"


def _text(text):
    return html.escape(text)


def _svg(plot):
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "fastpool"}):
        plot(file)
    drawn = file.getvalue().decode()
    return drawn[drawn.index("<svg") :]


def plot_gains(rows, file):
    """Draw the earlier version's time over fastpool's, workload by workload."""
    rows = sorted(
        (row for row in rows if row["gain"]),
        key=lambda row: (GROUPS.index(row["group"]), row["gain"]),
    )
    with plt.rc_context(plots.STYLE):
        figure, axes = plt.subplots(figsize=(11, 3.2), layout="constrained")
        for group, colour in zip(GROUPS, cycle(plots.COLOURS), strict=False):
            places = [i for i, row in enumerate(rows) if row["group"] == group]
            style = {"color": colour, "marker": "o", "ls": "none", "ms": 4.5, "label": group}
            if places:
                axes.plot(places, [rows[i]["gain"] for i in places], **style)
        axes.axhspan(1 / NOISE, NOISE, color="#eeeeee", zorder=0)
        axes.axhline(1, color="black", lw=1, zorder=1)
        axes.set_yscale("log")
        plots.plain_numbers(axes.yaxis, subs=(1, 1.25, 1.5, 2, 3, 5, 8))
        axes.set_xticks([])
        axes.set_ylabel("earlier time / this")
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
        figure.savefig(file, format="svg")
        plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
