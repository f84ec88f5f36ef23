#!/bin/sh
# Run the tests of the kernels, every instruction-set build of them, under a sanitizer:
#     sh ci/sanitize.sh address        AddressSanitizer, with redzones between the areas of scratch
#     sh ci/sanitize.sh undefined      UndefinedBehaviorSanitizer
#     sh ci/sanitize.sh thread         ThreadSanitizer; LLVM's archer tells it about barriers
#     sh ci/sanitize.sh memcheck       valgrind, on random cases; it does not support AVX-512
# Works from any folder. Further arguments go to pytest and replace the list of tests (memcheck:
# they go to compare.py). The first error ends the run, with a status other than 0.
# The environment is .venv-sanitize next to ci/, or $FASTPOOL_VENV. The build is
# build/sanitize-MODE. Needs everything that test.sh needs, and: undefined: gcc; address: clang and
# its sanitizers; thread: gcc, clang and setarch; memcheck: valgrind (Debian and Ubuntu: apt install
# clang libclang-rt-14-dev libomp-14-dev valgrind, with the version of clang in place of 14).
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

need_clang() {
    command -v clang >/dev/null ||
        fail "clang is missing (Debian and Ubuntu: apt install clang libomp-14-dev)"
    export CC=clang
}

mode=${1:-}
[ $# -gt 0 ] && shift
venv=${FASTPOOL_VENV:-$root/.venv-sanitize}
# -fno-wrapv: Python's flags may let integers wrap, and then an overflow would not be an error.
flags="-O1 -g -fno-wrapv -fno-omit-frame-pointer"
case $mode in
address)
    # gcc's AddressSanitizer does not check masked loads of AVX-512. Checks as calls compile in half
    # the time.
    need_clang
    export FASTPOOL_CFLAGS="$flags -fsanitize=address \
-mllvm -asan-instrumentation-with-call-threshold=0"
    ;;
undefined)
    export FASTPOOL_CFLAGS="$flags -fsanitize=undefined -fno-sanitize-recover=undefined"
    export LDFLAGS=-fsanitize=undefined
    ;;
thread)
    # gcc's OpenMP does not tell ThreadSanitizer about barriers: every barrier would be a race.
    need_clang
    archer=$(clang -print-resource-dir)/../../libarcher.so
    [ -f "$archer" ] || fail "$archer is missing (Debian and Ubuntu: apt install libomp-14-dev)"
    export FASTPOOL_CFLAGS="$flags -fsanitize=thread"
    ;;
memcheck)
    command -v valgrind >/dev/null ||
        fail "valgrind is missing (Debian and Ubuntu: apt install valgrind)"
    # (gcc 12 fails at -O1: an internal error where vectors are compared.)
    export FASTPOOL_CFLAGS="$flags -O2"
    ;;
*)
    fail "expected address, undefined, thread or memcheck, got '$mode'"
    ;;
esac
make_instrumented "sanitize-$mode"

cd "$root"
unset LDFLAGS FASTPOOL_CFLAGS
# PYTHONMALLOC: CPython's own allocator would hide the ends of its blocks.
export PYTHONPATH="$site" PYTHONMALLOC=malloc
if [ "$mode" = memcheck ]; then
    [ $# -gt 0 ] || set -- --count 2000
    exec valgrind --error-exitcode=1 --quiet --suppressions="$root/ci/memcheck.supp" \
        "$venv/bin/python" "$root/ci/compare.py" --in-process "$@"
fi

if [ $# -eq 0 ]; then
    if [ "$mode" = thread ]; then
        # What runs on several threads, in this process.
        set -- tests/process/test_threads.py tests/kernels/test_unpool.py \
            tests/kernels/test_strategy_results.py tests/kernels/test_tiles.py \
            tests/kernels/test_far.py tests/kernels/test_sums.py \
            tests/kernels/test_narrow_sums.py tests/kernels/test_interleaved_planes.py \
            -k "one_to_eight or duplicate or python_threads or blocks or outside or parts or \
(tiles and uint8) or running_maxima or interleaved or digits"
    else
        # Without the tests of time, which a sanitizer multiplies.
        set -- tests/kernels/test_strategy_results.py tests/kernels/test_guards.py \
            tests/kernels/test_edges.py tests/kernels/test_unpool.py tests/kernels/test_bool.py \
            tests/kernels/test_tiles.py tests/kernels/test_against_reference.py \
            tests/kernels/test_sweep.py tests/kernels/test_far.py \
            tests/kernels/test_sums.py tests/kernels/test_narrow_sums.py \
            tests/kernels/test_interleaved_planes.py tests/kernels/test_average_exactness.py \
            tests/kernels/test_float_state.py tests/kernels/test_averages.py \
            tests/kernels/test_composites.py tests/kernels/test_digits.py \
            tests/kernels/test_pairwise.py tests/kernels/test_small_planes.py \
            tests/kernels/test_fewer_axes.py \
            tests/kernels/test_minima.py tests/kernels/test_borders.py \
            tests/kernels/test_blocks.py tests/kernels/test_block_statistics.py \
            tests/routes/test_onnx_quantized.py \
            -k 'not takes_seconds'
    fi
fi
export PYTHONSAFEPATH=1
# -s: pytest would hold back the report of a sanitizer that ends the process.
set -- "$venv/bin/python" -m pytest --import-mode=importlib -p no:cacheprovider -q -s "$@"
case $mode in
address)
    # handle_segv=0: tests access guard pages on purpose.
    export ASAN_OPTIONS=detect_leaks=0:handle_segv=0:allocator_may_return_null=1
    LD_PRELOAD=$(clang -print-file-name="libclang_rt.asan-$(uname -m).so") exec "$@"
    ;;
undefined)
    export UBSAN_OPTIONS=print_stacktrace=1
    LD_PRELOAD=$(gcc -print-file-name=libubsan.so) exec "$@"
    ;;
thread)
    export OMP_TOOL_LIBRARIES="$archer"
    export TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:exitcode=66
    # gcc's runtime, because clang 14's crashes if it is preloaded. setarch, because the addresses
    # of the runtime may be in use.
    exec setarch -R env LD_PRELOAD="$(gcc -print-file-name=libtsan.so)" "$@"
    ;;
esac
