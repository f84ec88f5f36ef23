#!/bin/sh
# Fuzz fastpool for some minutes (default 10), guided by the coverage of its kernels and of its
# Python modules. The cases vary attributes, shapes, memory layouts, element types, indices, unpool
# inputs, changed plans and sequences of calls; fuzz.py compares them with the slow twin. The
# kernels are built with AddressSanitizer and UndefinedBehaviorSanitizer. Before that, proportion.py
# measures the time and memory of 1000 calls per minute, with attributes far from their arrays, on
# a plain build in the environment of test.sh. Works from any folder.
# Further arguments go to libFuzzer; if one is a file, that case is run instead:
#     sh ci/fuzz.sh 30
#     sh ci/fuzz.sh 10 -seed=7
#     sh ci/fuzz.sh 1 build/fuzz-crashes/crash-0123...
# The environment is .venv-fuzz next to ci/, or $FASTPOOL_VENV. The corpus stays in
# build/fuzz-corpus. Needs everything that test.sh needs, and clang with its sanitizers and OpenMP
# (Debian and Ubuntu: apt install clang libclang-rt-14-dev libomp-14-dev, with the version of clang
# in place of 14).
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

minutes=${1:-10}
[ $# -gt 0 ] && shift
command -v clang >/dev/null || fail "clang is missing (Debian and Ubuntu: apt install clang)"
[ -f "${1:-}" ] || ( # (not if one case is run)
    venv=$root/.venv-test
    make_environment test
    PYTHONSAFEPATH=1 "$venv/bin/python" "$root/ci/proportion.py" \
        --draws "$((minutes * 1000))" --seed "$(date +%s)"
)
venv=${FASTPOOL_VENV:-$root/.venv-fuzz}
export CC=clang
# -fno-wrapv: Python's flags may let integers wrap, and then an overflow would not be an error.
# AddressSanitizer checks pointers, in calls, and comparisons are not traced. Otherwise clang takes
# ten minutes for one module.
export FASTPOOL_CFLAGS="-O1 -g -fno-wrapv -fno-omit-frame-pointer -fsanitize=address,undefined \
-fno-sanitize=null,alignment,object-size,pointer-overflow -fno-sanitize-recover=undefined \
-fsanitize-coverage=inline-8bit-counters,pc-table \
-mllvm -asan-instrumentation-with-call-threshold=0"
make_instrumented fuzz "atheris>=2.3"

mkdir -p "$root/build/fuzz-corpus" "$root/build/fuzz-crashes"
# atheris has libFuzzer and the runtime of the sanitizers in one library, which must be loaded
# first.
runtime=$("$venv/bin/python" -c 'import atheris; print(atheris.path())')/asan_with_fuzzer.so
export PYTHONPATH="$site" PYTHONMALLOC=malloc
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=64
export UBSAN_OPTIONS=print_stacktrace=1
export KMP_BLOCKTIME=0 # waiting threads would take the processor from the fuzzer
LD_PRELOAD=$runtime exec "$venv/bin/python" "$root/ci/fuzz.py" \
    "$minutes" "$root/build/fuzz-corpus" \
    -artifact_prefix="$root/build/fuzz-crashes/" "$@"
