#!/bin/sh
# Build the documentation site into build/docs/html: its examples run, no warnings, no broken links within it. Pages
# that need torch, onnxruntime or OpenVINO are run by the tests of those routes. Works from any folder, without a
# network once the environment is there; that is .venv-docs beside ci/, or $FASTPOOL_VENV.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

venv=${FASTPOOL_VENV:-$root/.venv-docs}
case $venv in /*) ;; *) venv=$PWD/$venv ;; esac
make_environment docs
cd "$root"
rm -rf build/docs docs/gallery docs/_generated # what earlier builds made, of pages that are gone too
"$venv/bin/python" -P -m doctest docs/start.md docs/semantics.md docs/inside.md docs/coming-from/scipy.md docs/coming-from/tensorflow.md
"$venv/bin/python" -P -m sphinx -q -n -W --keep-going -b html -d build/docs/doctrees docs build/docs/html
"$venv/bin/python" -P ci/check_links.py build/docs/html
echo "build/docs/html/index.html"
