#!/bin/sh
# Fuzz fastpool for some minutes (default 10), guided by the coverage of its kernels and of its Python modules: attributes,
# shapes, memory layouts, element types, indices and unpool inputs, against the slow twin (fuzz.py). The kernels are built
# with AddressSanitizer and UndefinedBehaviorSanitizer. Works from any folder; further arguments go to libFuzzer, and a
# file among them is run instead:
#     sh ci/fuzz.sh 30
#     sh ci/fuzz.sh 10 -seed=7
#     sh ci/fuzz.sh 1 build/fuzz-crashes/crash-0123...
# The environment is .venv-fuzz beside ci/, or $FASTPOOL_VENV; the corpus is kept in build/fuzz-corpus. Needs, besides what
# test.sh needs, clang with its sanitizers and OpenMP (Debian and Ubuntu: apt install clang libclang-rt-14-dev libomp-14-dev,
# with clang's own version).
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

minutes=${1:-10}
[ $# -gt 0 ] && shift
command -v clang >/dev/null || fail "clang is missing (Debian and Ubuntu: apt install clang)"
venv=${FASTPOOL_VENV:-$root/.venv-fuzz}
export CC=clang
# -fno-wrapv: where Python's own flags let integers wrap, an overflow would be no error.
export FASTPOOL_CFLAGS="-O1 -g -fno-wrapv -fno-omit-frame-pointer -fno-sanitize-recover=undefined \
-fsanitize=address,undefined,fuzzer-no-link"
make_instrumented fuzz "atheris>=2.3"

mkdir -p "$root/build/fuzz-corpus" "$root/build/fuzz-crashes"
# atheris brings libFuzzer and the sanitizers' runtime in one library, which has to be loaded first.
runtime=$("$venv/bin/python" -c 'import atheris; print(atheris.path())')/asan_with_fuzzer.so
export PYTHONPATH="$site" PYTHONMALLOC=malloc PYTHONSAFEPATH=1
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
LD_PRELOAD=$runtime exec "$venv/bin/python" "$root/ci/fuzz.py" "$root/build/fuzz-corpus" \
    -max_total_time=$((minutes * 60)) -artifact_prefix="$root/build/fuzz-crashes/" -max_len=400 "$@"
