"""Print machine code, and compile time, of one build by the file that its functions come from.

    python ci/code_size.py _avx2
    python ci/code_size.py _avx2 --compile gcc ... -c build/cython/_kernels_avx2.c -o ...

The first argument is the end of a build's name ("" is the baseline). `--compile` takes a command
that `setup.py build_ext` prints, of gcc, and compiles again. The table of
fastpool/kernels/README.md is made by this. It needs Linux, nm, and a build that is not stripped.
What a file inlines counts for that file: most of vectors/ does.
"""

import argparse
import os
import re
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "fastpool"
MODULE = "8fastpool_8_kernels_"  # Cython's prefix of names that the module defines
OURS = re.compile(rf"(?:__pyx_fuse_\w+?)?__pyx_f_{MODULE}")
SUFFIX = re.compile(r"\.(constprop|isra|part|cold|_omp_fn).*")
CYTHON = re.compile(r"^\s*cdef (?:inline )?[\w ]+?[ *]+(\w+)\(", re.MULTILINE)
HEADER = re.compile(r"^\s*(?:STATIC|static) [\w \*#]*?([\w#]+)\(", re.MULTILINE)
LEAST = 10_000  # bytes: smaller files share a line
CLOCK = os.sysconf("SC_CLK_TCK")


def definitions():
    """Return (regular expression of names, file) for what the sources define."""
    files = [PACKAGE / "_kernels.pyx", *sorted((PACKAGE / "kernels").rglob("*.[ph]*"))]
    for path in files:
        found = HEADER if path.suffix == ".h" else CYTHON
        for name in found.findall(path.read_text()):
            # A macro pastes its arguments into names: `name##_L##W##_load`.
            parts = [part for part in name.split("##") if part]
            pasted = "".join(part if "_" in part else r"\w+" for part in parts)
            yield re.compile(name if len(parts) == 1 else pasted), str(path.relative_to(PACKAGE))


class Files:
    def __init__(self):
        self.defined = list(definitions())

    def of(self, symbol):
        """Return the file that a compiled function comes from."""
        name = SUFFIX.sub("", symbol)
        own = OURS.sub("", name)
        for pattern, file in self.defined:
            if pattern.fullmatch(own):
                return file
        if MODULE in name or name.startswith("__pyx_pymod"):
            return "_kernels.pyx"
        return "Cython's own" if name.lower().startswith("__pyx") else "other"


def code_bytes(build, files):
    code = Counter()
    lines = subprocess.check_output(["nm", "-S", "--defined-only", build], text=True).splitlines()
    for fields in map(str.split, lines):
        if len(fields) == 4 and fields[2] in "tT":
            code[files.of(fields[3])] += int(fields[1], 16)
    return code


def processor_seconds(process):
    """Return the time of a compiler that gcc has started."""
    try:
        (child,) = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return sum(map(int, Path(f"/proc/{child}/stat").read_text().split()[13:15])) / CLOCK
    except (OSError, ValueError):
        return None  # it has ended


def compile_seconds(command, files):
    """Compile, and return the seconds of each file.

    With -Q, gcc prints the name of a function when it begins to optimise and assemble it. What it
    does before (parsing, and passes over all functions) has a line of its own.
    """
    spent, last, now, begun = Counter(), "parsing, and passes over the whole program", 0.0, False
    at = command.index("-o")
    command = [*command[:at], *command[at + 2 :], "-Q", "-S", "-o", os.devnull]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as gcc:
        while text := os.read(gcc.stderr.fileno(), 1 << 16).decode():
            before, now = now, processor_seconds(gcc.pid) or now
            spent[last] += now - before
            begun |= "Assembling functions" in text
            names = re.findall(r"\w{4,}[\w.]*", text)
            if begun and names:
                last = files.of(names[-1])
    if gcc.returncode:
        sys.exit("the command fails: start it in the root of the checkout")
    return spent


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", help="the end of a build's name, such as _avx2")
    parser.add_argument("--compile", nargs=argparse.REMAINDER, help="a command of gcc")
    options = parser.parse_args()
    build = PACKAGE / f"_kernels{options.build}{sysconfig.get_config_var('EXT_SUFFIX')}"
    files = Files()
    code = code_bytes(build, files) if build.exists() else None
    if not code:
        sys.exit(f"{build} is missing, or stripped")
    spent = compile_seconds(options.compile, files) if options.compile else Counter()
    small = [name for name, size in code.items() if size < LEAST]
    for counts in (code, spent):
        counts[f"{len(small)} smaller files"] = sum(counts.pop(name, 0) for name in small)
    rows = [(name, code[name], spent[name]) for name in {**code, **spent}]
    rows.sort(key=lambda row: row[1:], reverse=True)
    print("| file | kB of code | s to compile |\n|---|---|---|")
    for name, size, seconds in [*rows, ("all", code.total(), spent.total())]:
        kilobytes = f"{size / 1000:.0f}" if size else ""
        print(f"| {name} | {kilobytes} | {f'{seconds:.1f}' if seconds else ''} |")


if __name__ == "__main__":
    main()
