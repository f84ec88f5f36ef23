#!/bin/sh
# Write one HTML page of speed. It compares this checkout, or a commit, with an earlier version of
# fastpool and with the peers, measured in turns in one run. Works from any folder:
#     sh ci/perf_report.sh                    # against the last tag before this commit
#     sh ci/perf_report.sh v0.1.0 --quick     # against any commit; options go to perf_report.py
#     sh ci/perf_report.sh e05275d main~3     # any two commits, the earlier one first
# The page is perf.html in the current folder, or the file of --output. The environments are
# .venv-perf next to ci/, or $FASTPOOL_VENV, and one for each commit in build/.
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
case ${1:-} in
'' | -*) new= ;;
*)
    new=$1
    shift
    ;;
esac

# install_commit NAME: install a commit, and set $python. The code of this checkout measures it.
install_commit() {
    commit=$(git -C "$root" rev-parse --verify --quiet "$1^{commit}") ||
        fail "there is no commit $1"
    tree=$root/build/earlier-$commit
    [ -d "$tree" ] || {
        mkdir -p "$tree.new"
        git -C "$root" archive "$commit" | tar -x -C "$tree.new"
        mv "$tree.new" "$tree"
    }
    (
        root=$tree
        venv=$tree/.venv
        make_environment bench
    )
    python=$tree/.venv/bin/python
    package=$("$python" -P -c 'import fastpool; print(*fastpool.__path__)')
    mkdir -p "$package/bench"
    cp "$root"/fastpool/bench/*.py "$package/bench/"
}

install_commit "$base"
earlier=$python
if [ -n "$new" ]; then
    install_commit "$new"
else
    new=$(git -C "$root" describe --tags --always --dirty)
    venv=${FASTPOOL_VENV:-$root/.venv-perf}
    make_environment bench
    python=$venv/bin/python
fi
exec "$python" -P "$root/ci/perf_report.py" --earlier "$earlier" --names "$new" "$base" "$@"
