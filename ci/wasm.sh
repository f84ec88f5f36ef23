#!/bin/sh
# Compile the kernels to WebAssembly, count their vector instructions, load them in Pyodide (CPython
# for WebAssembly) under node, and compare their results with loops of Python (wasm_check.py):
#     sh ci/wasm.sh
# Works from any folder. Takes some minutes. Everything is in build/wasm. There is no NumPy for
# Pyodide in the registries of packages, so the tests that need it do not run. Pyodide's own data
# give pyconfig.h; the other headers of Python come from the package libpython3.14-dev of a Debian
# that has it. Install as root:
#     apt install emscripten nodejs npm
# emscripten: 3.1.69 or newer (Debian 13). HEADERS=FOLDER names the headers of Python 3.14.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

for tool in emcc node npm; do
    command -v $tool >/dev/null ||
        fail "$tool is missing (Debian 13: apt install emscripten nodejs npm)"
done
headers=${HEADERS:-/usr/include/python3.14}
[ -f "$headers/Python.h" ] || fail "HEADERS=FOLDER must name a folder with Python.h of Python 3.14"
work=$root/build/wasm
venv=$work/host
mkdir -p "$work/include" "$work/packages"
make_venv
[ -x "$venv/bin/cython" ] || quiet_pip install "cython>=3.1"
[ -f "$work/node_modules/.package-lock.json" ] || # (npm writes it last)
    npm install --silent --no-save --prefix "$work" pyodide@314

# pyconfig.h from what Pyodide's Python says of itself.
cp -R "$headers/." "$work/include"
rm -f "$work/include/pyconfig.h"
"$venv/bin/python" - "$work" <<'END'
import sys, zipfile
stdlib = zipfile.ZipFile(f"{sys.argv[1]}/node_modules/pyodide/python_stdlib.zip")
name, = (name for name in stdlib.namelist() if name.startswith("_sysconfigdata"))
names = {}
exec(stdlib.read(name), names)
with open(f"{sys.argv[1]}/include/pyconfig.h", "w") as file:
    for key, value in names["build_time_vars"].items():
        if isinstance(value, int) and value and key.isidentifier():
            print("#define", key, value, file=file)
END

module=$work/packages/fastpool/_kernels.cpython-314-wasm32-emscripten.so
if [ -z "$(find "$module" -newer "$root/setup.py" 2>/dev/null)" ] || is_outdated "$module"; then
    echo "compiling: two to four minutes"
    rm -rf "$work/packages/fastpool"
    cp -R "$root/fastpool" "$work/packages"
    find "$work/packages" -name '*.so' -delete
    cd "$work/packages"
    "$venv/bin/cython" -3 fastpool/_kernels.pyx -o "$work/_kernels.c"
    # The flags of setup.py.
    emcc -c -O3 -g0 -fPIC -msimd128 -ffp-contract=off -Wall -fwrapv -Wno-unused-function \
        -DNDEBUG -DPY_CALL_TRAMPOLINE \
        '-DCYTHON_INLINE=inline __attribute__((always_inline))' \
        -Ifastpool -Ifastpool/include -I. -I"$work/include" "$work/_kernels.c" \
        -o "$work/_kernels.o"
    emcc -O2 -sSIDE_MODULE=2 -sWASM_BIGINT -sEXPORTED_FUNCTIONS=_PyInit__kernels \
        "$work/_kernels.o" -o "$module"
fi

wasm-dis "$module" 2>/dev/null | awk '
    / \(?(v128|i8x16|i16x8|i32x4|i64x2|f32x4|f64x2)\./ { vectors++ }
    END { print vectors + 0, "vector instructions"; exit vectors < 1000 }' ||
    fail "the kernels have no vector instructions"
exec node "$root/ci/wasm.mjs" "$work/node_modules/pyodide" "$work/packages" \
    "$root/ci/wasm_check.py"
