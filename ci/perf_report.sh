#!/bin/sh
# Write one HTML page of speed. It compares this checkout with an earlier version of fastpool and
# with the peers, measured in turns in one run. Works from any folder:
#     sh ci/perf_report.sh                        # against the last tag before this commit
#     sh ci/perf_report.sh v0.1.0 --quick         # against any commit; options go to perf_report.py
# The page is perf.html in the current folder, or the file of --output. The environments are
# .venv-perf next to ci/, or $FASTPOOL_VENV, and one for each earlier version in build/.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

case ${1:-} in
'' | -*)
    base=$(git -C "$root" describe --tags --abbrev=0 HEAD^ 2>/dev/null) ||
        fail "no tag before this commit: name the commit to compare with"
    ;;
*)
    base=$1
    shift
    ;;
esac
commit=$(git -C "$root" rev-parse --verify --quiet "$base^{commit}") ||
    fail "there is no commit $base"

earlier=$root/build/earlier-$commit
[ -d "$earlier" ] || {
    mkdir -p "$earlier.new"
    git -C "$root" archive "$commit" | tar -x -C "$earlier.new"
    mv "$earlier.new" "$earlier"
}
(
    root=$earlier
    venv=$earlier/.venv
    make_environment bench
)
# The code of this checkout measures both versions.
package=$("$earlier/.venv/bin/python" -P -c 'import fastpool; print(*fastpool.__path__)')
mkdir -p "$package/bench"
cp "$root"/fastpool/bench/*.py "$package/bench/"

venv=${FASTPOOL_VENV:-$root/.venv-perf}
make_environment bench
exec "$venv/bin/python" -P "$root/ci/perf_report.py" --earlier "$earlier/.venv/bin/python" \
    --names "$(git -C "$root" describe --tags --always --dirty)" "$base" "$@"
