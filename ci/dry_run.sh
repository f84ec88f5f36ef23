#!/bin/sh
# Try a release of the last commit, and publish nothing: the source distribution, a wheel from it
# alone, what both hold, what package indexes will show, and the wheel in an empty environment.
#     sh ci/dry_run.sh                 # five minutes on two cores
#     sh ci/dry_run.sh fastpool.whl    # checks this wheel, and builds none
# Works from any folder. The files are left in build/dry-run. The tools are in .venv-release next to
# ci/, or in $FASTPOOL_VENV. build_wheels.sh makes the wheels of a release.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

folder=$root/build/dry-run
venv=${FASTPOOL_VENV:-$root/.venv-release}
make_venv
install_tools auditwheel build check-wheel-contents "readme-renderer[md]" twine \
    "validate-pyproject[all]"
rm -rf "$folder"
mkdir -p "$folder/dist"
git clone --quiet "$root" "$folder/checkout" # only what is committed
wrong=
project=$folder/checkout/pyproject.toml
if ! grep -q '^\[project.urls\]' "$project"; then
    wrong=yes
    echo "[project.urls] is missing in pyproject.toml; the rest is tried with an example of it" >&2
    printf '\n[project.urls]\n' >>"$project"
    for name in Repository Documentation Changelog; do
        echo "$name = \"https://example.org/fastpool\"" >>"$project"
    done
fi
"$venv/bin/python" -m build --sdist --outdir "$folder/dist" "$folder/checkout" \
    >"$folder/sdist.log" 2>&1 || {
    cat "$folder/sdist.log" >&2
    fail "the source distribution cannot be built"
}
if [ $# -gt 0 ]; then
    cp "$1" "$folder/dist"
else
    echo "building a wheel from the source distribution: two to four minutes"
    quiet_pip wheel --no-deps --wheel-dir "$folder/dist" "$folder"/dist/*.tar.gz
fi

"$venv/bin/python" "$root/ci/check_dist.py" --release "$folder"/dist/* || wrong=yes
"$venv/bin/validate-pyproject" "$project" || wrong=yes
"$venv/bin/twine" check --strict "$folder"/dist/* || wrong=yes
"$venv/bin/check-wheel-contents" --config "$root/pyproject.toml" "$folder"/dist/*.whl || wrong=yes
venv=$folder/empty
make_venv
quiet_pip install "$(ls "$folder"/dist/*.whl)[cli]"
cd "$folder" # away from the sources
"$venv/bin/fastpool" --version
"$venv/bin/fastpool" check || wrong=yes
"$venv/bin/python" -m doctest "$root/README.md" || wrong=yes
[ -z "$wrong" ] || fail "this is no release yet: see above"
