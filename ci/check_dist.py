"""Check that wheels and source distributions hold what they should, and nothing else.

    python ci/check_dist.py dist/*
    python ci/check_dist.py --release dist/*    # what package indexes show, too

Prints a line for each, with its size. Exits with 1 if one is wrong. --release needs
readme-renderer[md], which renders the README as PyPI does.
"""

import email
import re
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = {
    path.relative_to(ROOT).as_posix()
    for path in ROOT.glob("fastpool/**/*")
    if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyi"
}
# The stubs that setup.py writes, from those of stubs/.
STUBS = {path.relative_to(ROOT / "stubs").as_posix() for path in ROOT.glob("stubs/**/*.pyi")}
LICENCES = {"LICENSE"} | {f"licences/{path.name}" for path in ROOT.glob("licences/*")}

COMPILED = (".so", ".pyd")
WHEEL_SOURCES = (".py", "py.typed", "fastpool/__init__.pxd", "include/fastpool.h")
RUNTIME = re.compile(
    r"fastpool(\.libs|/\.dylibs)/(libgomp|libomp|msvcp|vcruntime|\.load-order)[^/]*"
)
CALLS_OPENMP = re.compile(rb"GOMP_parallel|__kmpc_fork_call")
KERNELS = {True: ("_kernels", "_kernels_avx2", "_kernels_avx512"), False: ("_kernels",)}
FLOOR = "manylinux_2_17"  # as docs/install.md promises
MOST_BYTES = 3_200_000
# What the metadata of a release has, besides what twine and validate-pyproject check.
FIELDS = "Summary", "Keywords", "Classifier", "License-Expression", "Requires-Python"
URLS = "Repository", "Documentation", "Changelog"


def wheel_complaints(path, names):
    """Yield what is wrong with a wheel.

    It holds Python sources, what compiled callers need, modules, a runtime and licences only.
    """
    tags = path.stem.split("-")
    package = {name for name in names if name.startswith("fastpool/")}
    expected = {name for name in SOURCES if name.endswith(WHEEL_SOURCES)} | STUBS
    yield from (f"{name} is missing" for name in sorted(expected - package))
    modules = sorted(name for name in package if name.endswith(COMPILED))
    x86 = tags[-1].endswith(("x86_64", "amd64")) and not tags[-1].startswith("macosx")
    found = tuple(Path(name).name.partition(".")[0] for name in modules)
    wanted = *KERNELS[x86], "_runtime"
    if found != wanted:
        yield f"expected {', '.join(wanted)}, found {', '.join(modules) or 'no module'}"
    licences = f"{'-'.join(tags[:2])}.dist-info/licenses/"
    yield from (
        f"{licences + name} is missing" for name in sorted(LICENCES) if licences + name not in names
    )
    runtimes = {name for name in names if RUNTIME.fullmatch(name)}
    openmp = uses_openmp(path, modules)
    if openmp and not tags[-1].startswith("linux_"):
        if not runtimes:
            yield "no runtime of OpenMP is in it"
        if "linux" in tags[-1] and not any("/sboms/" in name for name in names):
            yield "no list of what it bundles is in it"
    if tags[-1].startswith("manylinux"):
        if not openmp:
            yield "it was built without OpenMP"
        if FLOOR not in tags[-1]:
            yield f"it needs a newer glibc than {FLOOR}"
    known = expected | set(modules) | runtimes
    extra = {name for name in names - known if ".dist-info/" not in name}
    yield from (f"{name} does not belong there" for name in sorted(extra))
    if path.stat().st_size > MOST_BYTES:
        yield f"larger than {MOST_BYTES} bytes"


def uses_openmp(path, modules):
    """Return whether a wheel was built with OpenMP: its modules call the functions of a runtime."""
    with zipfile.ZipFile(path) as archive:
        return any(CALLS_OPENMP.search(archive.read(name)) for name in modules)


def sdist_complaints(path, names):
    """Yield what is wrong with a source distribution.

    It holds all sources, tests, pages, scripts and licences, and no built files.
    """
    folder = path.name.removesuffix(".tar.gz") + "/"
    names = {name.removeprefix(folder) for name in names}
    expected = {name for name in SOURCES if not name.endswith(COMPILED)} | LICENCES
    for pattern in (
        "tests/**/*.py",
        "tests/**/*.c",
        "tests/**/*.pyx",
        "ci/*",
        "docs/*.md",
        "stubs/**/*",
    ):
        files = (file for file in ROOT.glob(pattern) if file.is_file())
        expected |= {file.relative_to(ROOT).as_posix() for file in files}
    expected |= {"setup.py", "pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"}
    yield from (f"{name} is missing" for name in sorted(expected - names))
    for name in sorted(names):
        written = name.startswith("tests/") or name == "fastpool/onnx/_runtime.c"
        generated = name.endswith(".c") and not written or name in STUBS
        if generated or name.endswith((*COMPILED, ".pyc")) or name.startswith(("build/", ".")):
            yield f"{name} does not belong there"


def metadata_complaints(metadata):
    """Yield what package indexes would show wrongly, or lack."""
    from readme_renderer import markdown

    fields = email.message_from_bytes(metadata)
    yield from (f"the metadata has no {name}" for name in FIELDS if name not in fields)
    urls = {value.partition(",")[0] for value in fields.get_all("Project-URL", [])}
    yield from (f"[project.urls] has no {name}" for name in URLS if name not in urls)
    page = markdown.render(fields.get_payload(decode=True).decode()) or ""
    if "<h1" not in page:
        yield "the README does not render"
    links = re.findall(r'(?:href|src)="((?!https://|#)[^"]*)"', page)
    if links:
        yield f"{len(links)} links of the README are not absolute: {links[0]} ..."


def check(path, release=False):
    name = path.name.removesuffix(".tar.gz")
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            names = {name for name in archive.namelist() if not name.endswith("/")}
            metadata = archive.read(f"{'-'.join(name.split('-')[:2])}.dist-info/METADATA")
        complaints = list(wheel_complaints(path, names))
    else:
        with tarfile.open(path) as archive:
            names = {member.name for member in archive.getmembers() if member.isfile()}
            metadata = archive.extractfile(f"{name}/PKG-INFO").read()
        complaints = list(sdist_complaints(path, names))
    return [*complaints, *metadata_complaints(metadata)] if release else complaints


def main(paths):
    if not paths:
        sys.exit(__doc__)
    failed, release = False, paths[0] == "--release"
    for path in map(Path, paths[release:]):
        complaints = check(path, release)
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {len(complaints)} complaints")
        for complaint in complaints:
            print(f"    {complaint}")
        failed |= bool(complaints)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
