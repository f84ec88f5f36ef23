#!/bin/sh
# Test a wheel on the system where this script runs, and print a row of the table of
# build_wheels.sh: Python, C library, architecture, NumPy, tests passed, failed and skipped.
#     sh ci/test_wheel.sh WHEEL PYTHON NUMPY [pytest arguments]
# NUMPY is a version, "oldest" or "newest". The tests are those of wheel_tests.txt, unless arguments
# replace them: "suite" installs the test extra and runs the whole suite. The example of README.md
# runs before them. The folder above ci/ has the tests, and may be an unpacked source distribution.
# What the tests print is in $FASTPOOL_LOGS, by default a new folder. Exits with 1 if a test failed.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

[ $# -ge 3 ] || {
    echo "usage: sh $0 WHEEL PYTHON NUMPY [pytest arguments]" >&2
    exit 2
}
wheel=$1
python=$2
numpy=$3
shift 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
logs=${FASTPOOL_LOGS:-$(mktemp -d)}
venv=$scratch/venv
# The tests start further interpreters, which must use the installed package.
export PYTHONSAFEPATH=1 PIP_DISABLE_PIP_VERSION_CHECK=1

# install REQUIREMENT...: make a new environment that has them
install() {
    rm -rf "$venv"
    "$python" -m venv "$venv" &&
        "$venv/bin/python" -m pip install --only-binary=:all: "$@" >"$scratch/pip.log" 2>&1
}

few="pytest>=8.2 hypothesis threadpoolctl cython setuptools>=77.0.3"
if [ "${1:-}" = suite ]; then
    set -- tests
    few="${wheel}[test]"
fi
[ $# -gt 0 ] || set -- "@$root/ci/wheel_tests.txt"
case $numpy in
oldest) versions="==2.0.0 ==2.1.0 ==2.3.2 ==2.4.0 ==2.5.2" ;; # the first with a wheel for PYTHON
newest) versions=">=2.0" ;;
*) versions="==$numpy" ;;
esac
installed=
for version in $versions; do
    for more in ml_dtypes ""; do # which not every system has a wheel of
        # shellcheck disable=SC2086
        install "$wheel" "numpy$version" $few $more && installed=yes && break 2
        grep -qE "No matching distribution|ResolutionImpossible" "$scratch/pip.log" || break 2
    done
done
if [ -z "$installed" ]; then
    cat "$scratch/pip.log" >&2
    exit 1
fi

where=$("$venv/bin/python" - <<'END'
import platform, sys, sysconfig
import numpy
libc = " ".join(platform.libc_ver())
if "musl" in (sysconfig.get_config_var("SOABI") or ""):
    libc = "musl"
threads = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print(f"{platform.python_version()}{threads} | {libc} | {platform.machine()} | {numpy.__version__}")
END
)
log=$logs/$(echo "$where" | tr -d ' ' | tr '|' '-').log
cd "$root"
result=0
# Skip the time of the import: it is that of an optimised interpreter.
{
    "$venv/bin/python" -m doctest README.md &&
        "$venv/bin/python" -m pytest --import-mode=importlib -p no:cacheprovider -q \
            -k "not import_time" "$@"
} >"$log" 2>&1 || result=1
# count WORD: what the last line of pytest's summary says before the word
count() {
    found=$(grep -E ' in [0-9.]+s' "$log" | tail -n 1 | grep -oE "[0-9]+ $1" | cut -d ' ' -f 1)
    echo "${found:-0}"
}
passed=$(count passed)
failed=$(count failed)
if [ $result != 0 ] || [ "$passed" = 0 ]; then
    result=1
    failed="$failed, FAILED" # (also a crash, or an error outside of the tests)
    cat "$log" >&2
fi
echo "all that the tests printed: $log" >&2
echo "| $where | $passed | $failed | $(count skipped) |"
exit $result
