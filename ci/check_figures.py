"""Check that README.md and pages of docs/ state measured figures only.

    python ci/check_figures.py            # exits with 1 if one is wrong
    python ci/check_figures.py --write    # replaces them, after a measurement

Between `<!-- measured: NAME -->` and `<!-- end -->` is what this script writes from a file in docs/
that a command measured. Outside, times and factors ("3 ms", "2.5 times", "10 %") are refused. It
needs fastpool, and runs in ci/docs.sh.
"""

import json
import re
import sys
from pathlib import Path

from fastpool.bench import layers, readme, report

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r"<!-- measured: \w+ -->.*?<!-- end -->|```.*?```|^    .*?$", re.DOTALL | re.MULTILINE
)
FIGURE = re.compile(r"\d[\d.,]*\s*(?:[num]s|seconds?|\w+seconds?|GB/s|times|%)(?!\w)")


def random_layers(found):
    """Return the table of random layers."""
    keys = "workload", "group", "ratio", "best", "from_limit"
    rows = [dict(zip(keys, row, strict=True)) for row in found["rows"]]
    lines = [
        "| layers | count | times faster | 5 of 100 are below | least | from the memory limit "
        "| 5 of 100 are above |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    names = "ratio", "ratio_5", "least", "from_limit", "from_limit_95"
    for group in report.distribution(rows, layers.GROUPS):
        figures = [readme.short(group[name]) if name in group else "" for name in names]
        lines.append(f"| {group['group']} | {group['count']} | {' | '.join(figures)} |")
    versions = {name: v for name, v in found["versions"].items() if name != "limit"}
    alone, where = found["count"] - len(rows), found["machine"]["processor"]
    text = (
        f"Seed {found['seed']}, {found['count']} layers, one thread of {where}. No other library "
    )
    text += f"has the right answer of {alone} layers. "
    return readme.paragraphs(*lines, "", text + readme.listed(versions))


def costs(found):
    """Return the table of means in pairs and exact ones."""
    lines = [
        "| array | window | exact | in pairs | channels last: exact | in pairs |",
        "| --- | --- | --: | --: | --: | --: |",
    ]
    for shape, kernel, more, figures in found["rows"]:
        words = ["x".join([str(kernel)] * (len(shape) - 2))]
        words += ["10 % NaN left out" if key == "nan" else f"{key} {v}" for key, v in more.items()]
        form = f"| {'x'.join(map(str, shape))} | {', '.join(words)} | "
        lines.append(form + " | ".join(map(readme.short, figures)) + " |")
    where = f"Microseconds on one thread of {found['machine']['processor']}, float32."
    return readme.paragraphs(*lines, "", where)


BLOCKS = {key: ("readme.json", shown) for key, shown in readme.BLOCKS.items()}
BLOCKS["docs/performance.md", "layers"] = "random.json", random_layers
BLOCKS["docs/averages.md", "costs"] = "costs.json", costs
UNMEASURED = {"docs/averages.md"}  # its text has figures that no command writes yet


def main(write):
    wrong = []
    pages = {name: (ROOT / name).read_text(encoding="utf-8") for name, _ in BLOCKS}
    for (name, block), (file, shown) in BLOCKS.items():
        found = json.loads((ROOT / "docs" / file).read_text(encoding="utf-8"))
        new = readme.replaced(pages[name], block, shown(found))
        if new != pages[name] and not write:
            wrong.append(f"{name}: the block {block!r} is not what docs/{file} gives")
        pages[name] = new
    for name, text in pages.items():
        if write:
            (ROOT / name).write_text(text, encoding="utf-8")
        prose = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
        wrong += [
            f"{name}:{prose.count(chr(10), 0, found.start()) + 1}: {found[0]!r} is not measured"
            for found in FIGURE.finditer(prose)
            if name not in UNMEASURED
        ]
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] == ["--write"]))
