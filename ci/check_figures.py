"""Check that README.md and the pages of docs/ state measured figures only.

    python ci/check_figures.py            # exits with 1 if one is wrong
    python ci/check_figures.py --write    # replaces them, after a measurement

Between `<!-- measured: NAME -->` and `<!-- end -->` is what this script writes from a file in docs/
that a command measured (docs/releasing.md has the commands). Outside, these are refused: times and
factors ("3 ms", "2.5 times", "10 %"), and numbers with a decimal point that are alone in a cell of
a table. Results of calls, in code, are no figures. It needs fastpool, and runs in ci/docs.sh.
"""

import functools
import json
import re
import sys
from pathlib import Path

from fastpool.bench import layers, readme, report

ROOT = Path(__file__).resolve().parents[1]
CODE = r"```.*?```|(?<=\n\n)    .*?(?=\n\n|\Z)"
BLOCK = re.compile(r"<!-- measured: (\w+) -->.*?<!-- end -->|" + CODE, re.DOTALL)
FIGURE = re.compile(
    r"(?:two|three|four|five|ten)\s+times\s+as\s+(?:fast|long)"
    r"|\d[\d.,]*\s*(?:times|[num]s|seconds?|\w+seconds?|GB/s|%)(?!\w)|\d[\d.,]* s(?!\w)"
    r"|(?<=\| )\d+\.\d+(?= \|)"
)
# Figures of the day, with the machine next to them: what was tried before, and what was dropped.
# The code that most of them were measured with is gone, so no command can repeat them.
JOURNALS = {"docs/measurements.md"}
# Figures that are constants of the code, or limits of a test, which must have that text.
FAR, THREADS = "tests/configurations/far.py", "fastpool/kernels/frame/threads.pxi"
CONSTANTS = {
    ("docs/inside.md", "2 ms"): (THREADS, "SOON_NS = 2000000 "),
    ("docs/inside.md", "50 microseconds"): (THREADS, "LOST_NS = 50000 "),
    ("docs/inside.md", "30 %"): (THREADS, "LOST_PERCENT = 30 "),
    ("docs/inside.md", "50 times"): (THREADS, "PAUSE_FACTOR = 50 "),
    ("docs/inside.md", "20 ms"): (THREADS, "SHORTEST_PAUSE_NS = 20000000\n"),
    ("docs/inside.md", "1 s"): (THREADS, "LONGEST_PAUSE_NS = 1000000000\n"),
    ("docs/promises.md", "16 times"): (FAR, "NORM_SECONDS, NORM_ARRAYS = 2, 14\n"),  # and 2
}


def random_layers(found):
    """Return the table of random layers."""
    keys = "workload", "group", "ratio", "best", "from_limit"
    rows = [dict(zip(keys, row, strict=True)) for row in found["rows"]]
    lines = [
        "| layers | count | times faster | 5 of 100 are below | least | from the memory limit "
    ]
    lines[0] += "| 5 of 100 are above |"
    lines.append("| --- |" + " --: |" * 6)
    names = "ratio", "ratio_5", "least", "from_limit", "from_limit_95"
    for group in report.distribution(rows, layers.GROUPS):
        figures = [readme.short(group[name]) if name in group else "" for name in names]
        lines.append(f"| {group['group']} | {group['count']} | {' | '.join(figures)} |")
    versions = {name: v for name, v in found["versions"].items() if name != "limit"}
    alone, where = found["count"] - len(rows), found["machine"]["processor"]
    text = f"Seed {found['seed']}, {found['count']} layers, one thread of {where}. "
    text += f"No other library has the right answer of {alone} layers. "
    return readme.paragraphs(*lines, "", text + readme.listed(versions))


def costs(found):
    """Return the table of means in pairs and exact ones."""
    lines = ["| array | window | exact | in pairs | channels last: exact | in pairs |"]
    lines.append("| --- | --- |" + " --: |" * 4)
    for shape, kernel, more, figures in found["rows"]:
        words = ["x".join([str(kernel)] * (len(shape) - 2))]
        words += ["10 % NaN left out" if key == "nan" else f"{key} {v}" for key, v in more.items()]
        form = f"| {'x'.join(map(str, shape))} | {', '.join(words)} | "
        lines.append(form + " | ".join(map(readme.short, figures)) + " |")
    where = f"Microseconds on one thread of {found['machine']['processor']}, float32."
    return readme.paragraphs(*lines, "", where)


def route(found, name):
    """Return a table of what calls take on one route."""
    found = found[name]
    most = max(microseconds for _, row in found["rows"] for microseconds in row)
    unit, size = ("milliseconds", 1e3) if most > 5e3 else ("microseconds", 1)
    titles = [f"{title}, {unit}".removeprefix(", ") for title in found["titles"]]
    lines = [f"| {' | '.join(titles)} |{' call |' * len(titles)}"]
    lines.append(f"| {' | '.join(['--:'] * len(titles))} |{' --- |' * len(titles)}")
    for codes, row in found["rows"]:
        cells = [readme.short(microseconds / size) for microseconds in row]
        lines.append(f"| {' | '.join([*cells, *(f'`{code}`' for code in codes)])} |")
    where = f"One thread of {found['machine']['processor']}, least times of calls in turns. "
    return readme.paragraphs(*lines, "", where + readme.listed(found["versions"]))


def inside(found, name):
    """Return a table of what fastpool gains in sessions of onnxruntime."""
    titles, rows = found[name]["titles"], found[name]["rows"]
    lines = [f"| {' | '.join(titles)} |", f"|{' --: |' * (len(titles) - 1)} --- |"]
    for *figures, label in rows:
        cells = ["" if x is None else f"{x:.{2 * (x < 10)}f}" for x in figures]
        lines.append(f"| {' | '.join([*cells, f'`{label}`'])} |")
    where = f"{found['machine']['processor']}. {readme.listed(found['versions'])}"
    return readme.paragraphs(*lines, "", where)


BLOCKS = {key: ("readme.json", shown) for key, shown in readme.BLOCKS.items()}
BLOCKS["docs/performance.md", "layers"] = "random.json", random_layers
BLOCKS["docs/averages.md", "costs"] = "costs.json", costs
PAGES = {"digits": "averages", "norms": "averages", "networks": "torch"}  # others: of that name
for name in json.loads((ROOT / "docs/routes.json").read_text(encoding="utf-8")):
    key = f"docs/{PAGES.get(name, name)}.md", name
    BLOCKS[key] = "routes.json", functools.partial(route, name=name)
for name in ("sessions", "nodes"):
    BLOCKS["docs/onnx.md", name] = "inside.json", functools.partial(inside, name=name)


def unmeasured(name, text):
    """Return what is wrong with a page outside of the blocks that this script writes."""
    wrong = [
        f"{name}: no command measures the block {found[1]!r}"
        for found in BLOCK.finditer(text)
        if found[1] and (name, found[1]) not in BLOCKS
    ]
    prose = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    for found in FIGURE.finditer(prose):
        file, line = CONSTANTS.get((name, " ".join(found[0].split())), ("", "-"))
        if not file or line not in (ROOT / file).read_text(encoding="utf-8"):
            at = prose.count("\n", 0, found.start()) + 1
            wrong.append(f"{name}:{at}: {found[0]!r} is not measured")
    return wrong


def main(write):
    wrong = []
    paths = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    pages = {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in paths}
    for (name, block), (file, shown) in BLOCKS.items():
        found = json.loads((ROOT / "docs" / file).read_text(encoding="utf-8"))
        new = readme.replaced(pages[name], block, shown(found))
        if new != pages[name] and not write:
            wrong.append(f"{name}: the block {block!r} is not what docs/{file} gives")
        elif new != pages[name]:
            (ROOT / name).write_text(new, encoding="utf-8")
        pages[name] = new
    for name in pages.keys() - JOURNALS:
        wrong += unmeasured(name, pages[name])
    print(*sorted(wrong), sep="\n", end="\n" * bool(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] == ["--write"]))
