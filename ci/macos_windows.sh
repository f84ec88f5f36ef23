#!/bin/sh
# Compile the modules for macOS and Windows with clang from the package ziglang. A warning is an
# error. Nothing is linked or run:
#     sh ci/macos_windows.sh                       # all three: a few minutes
#     sh ci/macos_windows.sh aarch64-macos         # or x86_64-macos, x86_64-windows-gnu
# Works from any folder. The headers are those of the Python that runs this, with what differs on
# Windows written below, and those of Apple and MinGW in ziglang. Everything is in build/zig, also
# the environment, unless $FASTPOOL_VENV names one.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

work=$root/build/zig
venv=${FASTPOOL_VENV:-$work/host}
case $venv in /*) ;; *) venv=$PWD/$venv ;; esac
mkdir -p "$work/include"
make_venv
install_tools ziglang==0.16.0 "setuptools>=77.0.3" "cython>=3.1"
tar -C "$root" --exclude='*.so' -cf - setup.py pyproject.toml README.md LICENSE licences fastpool \
    stubs | tar -C "$work" -xf -

# All of OpenMP that the sources call; clang itself has the pragmas.
echo "int omp_get_max_threads(void); double omp_get_wtime(void);" >"$work/include/omp.h"
cat >"$work/include/windows.h" <<'END'
#define Py_PYCONFIG_H /* instead of pyconfig.h of this system; as in PC/pyconfig.h of CPython */
#define MS_WIN64
#define MS_WINDOWS
#define NT_THREADS
#define HAVE_PY_SSIZE_T 1
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_WCHAR_T 2
#define PY_SSIZE_T_MAX 0x7fffffffffffffffLL
typedef long long Py_ssize_t;
END

cd "$work"
[ $# -gt 0 ] || set -- aarch64-macos x86_64-macos x86_64-windows-gnu
for target; do
    echo "compiling for $target"
    flags="-Wall -Werror -I$work/include"
    case $target in
    aarch64-macos) platform=macosx-11.0-arm64 ;;
    x86_64-macos) platform=macosx-11.0-x86_64 ;;
    x86_64-windows-gnu) platform=win-amd64 flags="$flags -include $work/include/windows.h" ;;
    *) fail "no target $target: see the top of $0" ;;
    esac
    # setup.py chooses builds and flags by the platform. Full optimisation finds nothing more.
    _PYTHON_HOST_PLATFORM=$platform CC="$venv/bin/python -m ziglang cc -target $target" \
        CFLAGS=$flags LDSHARED=true FASTPOOL_CFLAGS=-O1 \
        "$venv/bin/python" setup.py build_ext --force --build-lib out >"$target.log" 2>&1 || {
        cat "$target.log" >&2
        fail "fastpool does not compile for $target"
    }
    grep -o "^fastpool: built.*" "$target.log"
done
