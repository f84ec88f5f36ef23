"""Check the rules of the house that a script can check: who imports whom, names, widths.

    python ci/check_house.py [ROOT]

Print each complaint as "file:line: rule: what is wrong" and exit with status 1 if there is one.
Only Python and git are needed; nothing of fastpool is imported.
"""

import ast
import re
import subprocess
import sys
from collections import Counter, deque
from pathlib import Path

WIDTH = 100
MOST_ENTRIES = 25

# What a front end imports besides the public package, _api, _plans, _planning and itself.
FRONT_ENDS = {
    "conventions": {"_showing.draw"},
    "dask": set(),
    "files": {"dask"},
    "ndimage": {"_running.interop", "_running.plan_cache"},
    "onnx": {
        "_running.activation",
        "_running.capi",
        "_running.forks",
        "_running.interop",
        "_running.outputs",
        "_running.plan_cache",
        "_running.quantized",
    },
    "openvino": {"_running.interop", "_running.plan_cache"},
    "torch": {"_running.interop", "_running.plan_cache", "_running.threads"},
    "xarray": {"dask"},
}
FOR_FRONT_ENDS = {"", "_api", "_plans", "_planning"}  # "" is fastpool/__init__.py

# Programs import anything; nothing but programs imports them.
PROGRAMS = {"__main__", "_cli", "bench"}

# What a layer does not import, besides front ends and programs, which no layer imports.
FORBIDDEN = {
    "_planning": {"_running", "_showing", "_plans", "_api", "_kernels"},
    "_running": {"_showing", "_plans", "_api"},
    "_showing": {"_plans", "_api"},
}

# Imports by string, and why they are not statements.
BY_STRING = {
    "fastpool/__init__.py": "front ends, most of which need an optional package",
    "fastpool/_cli/program.py": "the module of a command, when the command is named",
    "fastpool/_running/builds.py": "the builds that this processor runs",
    "fastpool/bench/worker.py": "the libraries that are measured, of which any may be missing",
    "fastpool/onnx/__init__.py": "parts that need onnx or onnxruntime",
    "fastpool/openvino/__init__.py": "parts that need openvino",
}

# The head of a strategy's file, and the files besides its own that name it.
HEAD = "Takes", "Reads", "Scratch", "Wins"
MAY_NAME_STRATEGIES = {
    "fastpool/_running/composites.py",
    "fastpool/_running/strategies.py",
    "fastpool/_running/tiles.py",
    "fastpool/kernels/maximum/pool.pxi",
    "fastpool/kernels/maximum/pool_tile.pxi",
    "fastpool/kernels/maximum/strategies.pxi",
}

# Text that is not written by hand, or not by us.
ANY_WIDTH = re.compile(r".*\.(json|svg|lock|ipynb)|LICENSE|licences/.*")
# Lines of pages: rows of tables, what an example prints, and single words, such as addresses.
ANY_LINE = re.compile(r"\|.*|(ValueError|TypeError): .*|<M(ax|in)PoolPlan .*|\S+")


def tracked(root):
    """Return the files that git tracks or would track, as paths relative to the root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return sorted(name for name in set(names.split("\0")) if name and (root / name).is_file())


# ----------------------------------------------------------------------------------------- imports


def module_name(path):
    """Return the dotted name of a source file: fastpool.onnx for fastpool/onnx/__init__.py."""
    parts = path.rpartition(".")[0].split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module):
    """Return the entry of fastpool/ that a module belongs to, "" for the package itself."""
    return (module.split(".") + [""])[1]


class Imports:
    """All import statements inside of fastpool, those in functions too."""

    def __init__(self, root, files):
        sources = [name for name in files if re.fullmatch(r"fastpool/.*\.(py|pyx)", name)]
        self.modules = {module_name(name): name for name in sources}
        self.trees = {
            name: ast.parse((root / name).read_text(), name)
            for name in sources
            if name.endswith(".py")
        }
        found = (
            (module, target, node.lineno)
            for module, name in self.modules.items()
            for node in ast.walk(self.trees.get(name, ast.Module([], [])))
            for target in self.targets(module, name, node)
        )
        self.found = [*dict.fromkeys(found)]

    def targets(self, module, name, node):
        """Yield the modules of fastpool that a statement imports."""
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if self.is_ours(alias.name))
        if not isinstance(node, ast.ImportFrom):
            return
        base = node.module or ""
        if node.level:
            up = node.level - name.endswith("/__init__.py")
            package = module.rsplit(".", up)[0] if up else module
            base = f"{package}.{base}" if base else package
        if self.is_ours(base):
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                yield submodule if submodule in self.modules else base

    @staticmethod
    def is_ours(name):
        return name.partition(".")[0] == "fastpool"


def check_layers(imports):
    """Each layer imports only what is below it, and front ends only what the table names."""
    for module, target, line in imports.found:
        source, part = part_of(module), part_of(target)
        inside = target.partition(".")[2]
        if source == part or source in PROGRAMS:
            continue
        if source in FRONT_ENDS:
            allowed = part in FOR_FRONT_ENDS or any(
                f"{inside}.".startswith(f"{name}.") for name in FRONT_ENDS[source]
            )
        else:
            outer = {*FRONT_ENDS, *PROGRAMS}
            allowed = part not in outer | FORBIDDEN.get(source, set())
        if not allowed:
            yield (
                imports.modules[module],
                line,
                "layers",
                f"{source or 'fastpool'} imports {inside}",
            )


def check_circles(imports):
    """No module imports itself through others, wherever the statements are."""
    edges = {}
    for module, target, line in imports.found:
        edges.setdefault(module, {}).setdefault(target, line)
    reported = set()
    for start in sorted(edges):
        circle = shortest_circle(start, edges)
        if circle and not reported & {*circle}:
            reported |= {*circle}
            line = edges[start][circle[1]]
            yield imports.modules[start], line, "circle", " -> ".join(circle)


def shortest_circle(start, edges):
    """Return the modules from `start` back to it, or None if no way leads back."""
    ways = deque([[start]])
    seen = set()
    while ways:
        way = ways.popleft()
        for target in edges.get(way[-1], ()):
            if target == start:
                return [*way, start]
            if target not in seen:
                seen.add(target)
                ways.append([*way, target])
    return None


def check_strings(imports):
    """Imports by string only where the table says why."""
    for name, tree in imports.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and name not in BY_STRING:
                function = getattr(node.func, "attr", getattr(node.func, "id", None))
                if function in ("import_module", "__import__"):
                    yield name, node.lineno, "import by string", "not in the table BY_STRING"


# ------------------------------------------------------------------------------------ files, lines


def check_widths(root, files):
    """Text is at most 100 columns wide; tables, single words and output cannot be wrapped."""
    for name in files:
        if ANY_WIDTH.fullmatch(name):
            continue
        try:
            lines = (root / name).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            fixed = name.endswith(".md") and ANY_LINE.fullmatch(line.strip())
            if len(line) > WIDTH and not fixed:
                yield name, number, "columns", f"{len(line)}, at most {WIDTH}"


def check_kernels(root, files):
    """kernels/README.md names each file, by its path there or, if it is the only one, its name."""
    folder, page = "fastpool/kernels/", "fastpool/kernels/README.md"
    found = [name.removeprefix(folder) for name in files if name.startswith(folder)]
    found = [name for name in found if name != "README.md"]
    if not found:
        return
    if page not in files:
        yield page, 1, "kernels", "is missing"
        return
    counts = Counter(Path(name).name for name in found)
    known = {*found, *(name for name, count in counts.items() if count == 1)}
    named = set()
    for number, line in enumerate((root / page).read_text().splitlines(), 1):
        for name in re.findall(r"[\w./-]*\w\.(?:pxi|pyx|pxd|h)\b", line):
            named.add(name)
            elsewhere = {name, f"fastpool/{name}", f"fastpool/include/{name}"} & {*files}
            if name not in known and not elsewhere:
                what = "is in several folders" if name in counts else "is not there"
                yield page, number, "kernels", f"{name} {what}"
    for name in found:
        only = counts[Path(name).name] == 1
        if name not in named and not (only and Path(name).name in named):
            yield page, 1, "kernels", f"{name} is not named"


def check_strategies(root, files):
    """Files of strategies have their head, and few other files name a strategy."""
    folder = "fastpool/kernels/maximum/"
    if f"{folder}pool.pxi" not in files:
        return
    enum = (root / folder / "pool.pxi").read_text().partition("cdef enum Strategy:")[2]
    names = re.findall(r"^    ([A-Z_]+)$", enum.partition("\n\n\n")[0], re.MULTILINE)
    for name in names:
        path = f"{folder}{name.lower()}.pxi"
        text = (root / path).read_text() if path in files else ""
        labels = tuple(re.findall(r"^# (\w+): ", text.partition("\n\n")[0], re.MULTILINE))
        if labels[: len(HEAD)] != HEAD:
            yield path, 1, "strategies", f"does not begin with {', '.join(HEAD)}"
    for path in files:
        if path in MAY_NAME_STRATEGIES or not path.startswith("fastpool/"):
            continue
        own = Path(path).stem if path.startswith(folder) else None
        named = {".pxi": r"\b({})\b", ".pyx": r"\b({})\b", ".py": r"[\"']({})[\"']"}
        pattern = named.get(Path(path).suffix)
        if pattern is None:
            continue
        words = [n.lower() if pattern.startswith("[") else n for n in names if n.lower() != own]
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            for word in re.findall(pattern.format("|".join(words)), line):
                yield path, number, "strategies", f"{word} is named"


def check_entries(files):
    """Few entries in fastpool/, stubs and compiled modules aside."""
    entries = {name.split("/")[1] for name in files if name.startswith("fastpool/")}
    entries = {name for name in entries if not name.endswith((".pyi", ".so", ".pyd"))}
    if len(entries) > MOST_ENTRIES:
        yield "fastpool", 1, "entries", f"{len(entries)}, at most {MOST_ENTRIES}"


def check_packages(root, files):
    """pyproject.toml lists every package. Wheels would lack others."""
    listed = (root / "pyproject.toml").read_text()
    for name in files:
        if re.fullmatch(r"fastpool/(.*/)?__init__\.py", name):
            if f'"{module_name(name)}"' not in listed:
                yield name, 1, "packages", "is not in the list of pyproject.toml"


def complaints(root):
    """Return every complaint about a checkout as (file, line, rule, text)."""
    files = tracked(root)
    imports = Imports(root, files)
    found = [*check_layers(imports), *check_circles(imports), *check_strings(imports)]
    found += [*check_widths(root, files), *check_kernels(root, files), *check_entries(files)]
    found += [*check_strategies(root, files), *check_packages(root, files)]
    return sorted(found)


def main(root):
    found = complaints(Path(root))
    for file, line, rule, text in found:
        print(f"{file}:{line}: {rule}: {text}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or [Path(__file__).resolve().parents[1]]))
