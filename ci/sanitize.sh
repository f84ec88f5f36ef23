#!/bin/sh
# Run the tests of the kernels, every instruction-set build of them, under a sanitizer:
#     sh ci/sanitize.sh address        AddressSanitizer, with redzones between the areas of scratch (redzones.h)
#     sh ci/sanitize.sh undefined      UndefinedBehaviorSanitizer
#     sh ci/sanitize.sh thread         ThreadSanitizer, which sees OpenMP's barriers by way of LLVM's archer
#     sh ci/sanitize.sh memcheck       valgrind, on random cases; it knows no AVX-512
# Works from any folder; further arguments go to pytest in the place of the list of tests (memcheck: to compare.py). The
# first error ends the run, with a status other than 0.
# The environment is .venv-sanitize beside ci/, or $FASTPOOL_VENV, the build is build/sanitize-MODE. Needs, besides what
# test.sh needs, undefined: gcc; address: clang and its sanitizers; thread: gcc, clang and setarch; memcheck: valgrind
# (Debian and Ubuntu: apt install clang libclang-rt-14-dev libomp-14-dev valgrind, with clang's own version).
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

need_clang() {
    command -v clang >/dev/null || fail "clang is missing (Debian and Ubuntu: apt install clang libomp-14-dev)"
    export CC=clang
}

mode=${1:-}
[ $# -gt 0 ] && shift
venv=${FASTPOOL_VENV:-$root/.venv-sanitize}
# -fno-wrapv: where Python's own flags let integers wrap, an overflow would be no error.
flags="-O1 -g -fno-wrapv -fno-omit-frame-pointer"
case $mode in
address)
    # gcc's does not look at AVX-512's masked loads. (Checks as calls: they are compiled in half the time.)
    need_clang
    export FASTPOOL_CFLAGS="$flags -fsanitize=address -mllvm -asan-instrumentation-with-call-threshold=0"
    ;;
undefined)
    export FASTPOOL_CFLAGS="$flags -fsanitize=undefined -fno-sanitize-recover=undefined" LDFLAGS=-fsanitize=undefined
    ;;
thread)
    # gcc's OpenMP has no words for ThreadSanitizer: every barrier would be a race.
    need_clang
    archer=$(clang -print-resource-dir)/../../libarcher.so
    [ -f "$archer" ] || fail "$archer is missing (Debian and Ubuntu: apt install libomp-14-dev)"
    export FASTPOOL_CFLAGS="$flags -fsanitize=thread"
    ;;
memcheck)
    command -v valgrind >/dev/null || fail "valgrind is missing (Debian and Ubuntu: apt install valgrind)"
    export FASTPOOL_CFLAGS="$flags"
    ;;
*)
    fail "expected address, undefined, thread or memcheck, got '$mode'"
    ;;
esac
make_instrumented "sanitize-$mode"

cd "$root"
unset LDFLAGS FASTPOOL_CFLAGS
# PYTHONMALLOC: CPython's own allocator would hide the ends of what it hands out.
export PYTHONPATH="$site" PYTHONMALLOC=malloc
if [ "$mode" = memcheck ]; then
    [ $# -gt 0 ] || set -- --count 2000
    exec valgrind --error-exitcode=1 --quiet --suppressions="$root/ci/memcheck.supp" \
        "$venv/bin/python" "$root/ci/compare.py" --in-process "$@"
fi

if [ $# -eq 0 ]; then
    if [ "$mode" = thread ]; then
        # What runs on several threads, in this process.
        set -- tests/test_threads.py tests/test_unpool.py tests/test_forms.py tests/test_tiles.py tests/test_far.py -k \
            'one_to_eight or duplicate or python_threads or blocks or outside or parts or (tiles and uint8) or running_maxima'
    else
        # Without the tests of time, which a sanitizer multiplies.
        set -- tests/test_forms.py tests/test_guards.py tests/test_edges.py tests/test_unpool.py tests/test_bool.py \
            tests/test_tiles.py tests/test_against_reference.py tests/test_sweep.py tests/test_far.py -k 'not takes_seconds'
    fi
fi
export PYTHONSAFEPATH=1
# -s: pytest would keep what a sanitizer says before it ends the process.
set -- "$venv/bin/python" -m pytest --import-mode=importlib -p no:cacheprovider -q -s "$@"
case $mode in
address)
    # Guard pages are for the tests to hit (handle_segv).
    export ASAN_OPTIONS=detect_leaks=0:handle_segv=0:allocator_may_return_null=1
    LD_PRELOAD=$(clang -print-file-name="libclang_rt.asan-$(uname -m).so") exec "$@"
    ;;
undefined)
    export UBSAN_OPTIONS=print_stacktrace=1
    LD_PRELOAD=$(gcc -print-file-name=libubsan.so) exec "$@"
    ;;
thread)
    export OMP_TOOL_LIBRARIES="$archer" TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:exitcode=66
    # gcc's runtime, as clang 14's crashes where it is preloaded; setarch, as it may find its addresses taken.
    exec setarch -R env LD_PRELOAD="$(gcc -print-file-name=libtsan.so)" "$@"
    ;;
esac
