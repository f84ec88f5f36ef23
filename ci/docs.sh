#!/bin/sh
# Build the documentation site into build/docs/html. Its examples must run. Warnings, broken links
# within the site, and figures of speed that were not measured are errors. asv adds the history of
# counts. The tests of the routes run the pages that need torch, onnxruntime, OpenVINO or OpenCV.
# Works from any folder, and without a network once the environment exists. The environment is
# .venv-docs next to ci/, or $FASTPOOL_VENV.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

venv=${FASTPOOL_VENV:-$root/.venv-docs}
case $venv in /*) ;; *) venv=$PWD/$venv ;; esac
make_environment docs
cd "$root"
"$venv/bin/python" -P ci/check_figures.py
rm -rf build/docs docs/gallery docs/_generated # earlier builds, also of pages that were removed
"$venv/bin/python" -P -m doctest docs/start.md docs/semantics.md docs/averages.md docs/inside.md \
    docs/blocks.md docs/ndimage.md docs/microscopy.md docs/rasters.md docs/climate.md \
    docs/morphology.md docs/coming-from/index.md docs/coming-from/scipy.md \
    docs/coming-from/scikit-image.md docs/coming-from/tensorflow.md
"$venv/bin/python" -P -m sphinx -q -n -W --keep-going -b html \
    -d build/docs/doctrees docs build/docs/html
(cd asv_benchmarks && "$venv/bin/asv" publish --html-dir ../build/docs/html/asv) \
    >build/docs/asv.log 2>&1 || {
    cat build/docs/asv.log >&2
    fail "asv cannot write the history of counts"
}
"$venv/bin/python" -P ci/check_links.py build/docs/html
echo "build/docs/html/index.html"
