#!/bin/sh
# Build fastpool for aarch64 with a cross compiler, read the assembly of its loops
# (check_vectorised.py), and run the tests of the kernels under qemu, which emulates a processor
# with plain NEON:
#     sh ci/aarch64.sh
# Works from any folder. Arguments go to pytest and replace the list of tests. Without arguments the
# build takes some minutes, and the tests 15. Everything is in build/aarch64. Needs Debian, no
# derivative of it, and python3 of the system's version: the same version for arm64 is unpacked into
# build/aarch64. Needs root only for
#     apt install gcc-aarch64-linux-gnu qemu-user-static
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

for tool in aarch64-linux-gnu-gcc aarch64-linux-gnu-objdump qemu-aarch64-static apt-get dpkg; do
    command -v $tool >/dev/null ||
        fail "$tool is missing (Debian: apt install gcc-aarch64-linux-gnu qemu-user-static)"
done
work=$root/build/aarch64
venv=$work/host
mkdir -p "$work"
make_venv
version=$("$venv/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')

# Unpack Python for arm64, with everything it needs, into a folder. apt uses separate lists and
# state.
system=$work/system
if ! [ -x "$system/usr/bin/python$version" ]; then
    echo "fetching python$version for arm64"
    mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$system"
    arm_apt() {
        apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
            -o Dir::State="$work/apt" -o Dir::State::status=/dev/null -o Dir::Cache="$work/apt" \
            -o Debug::NoLocking=1 -o APT::Sandbox::User=root "$@"
    }
    { arm_apt update && arm_apt install -y --download-only --no-install-recommends \
        "python$version" "libpython$version-dev" libgomp1 libstdc++6; } >"$work/apt.log" 2>&1 || {
        cat "$work/apt.log" >&2
        fail "apt has no python$version for arm64; PYTHON=... names one of the system's version"
    }
    for package in "$work"/apt/archives/*.deb; do
        dpkg -x "$package" "$system"
    done
fi

# Build the wheel as CPython cross-compiles its modules: with the build data of the target's Python.
wheel=$(ls "$work"/wheels/*.whl 2>/dev/null || true)
if is_outdated "$wheel"; then
    quiet_pip install "setuptools>=77.0.3" "cython>=3.1" wheel
    echo "building fastpool for aarch64: two to four minutes"
    rm -rf "$work/wheels" "$work/data" "$root"/build/lib*aarch64*
    mkdir "$work/data"
    data=_sysconfigdata__aarch64-linux-gnu
    cp "$system/usr/lib/python$version/$data.py" "$work/data"
    (
        export _PYTHON_HOST_PLATFORM=linux-aarch64 _PYTHON_SYSCONFIGDATA_NAME=$data
        export PYTHONPATH="$work/data"
        export CFLAGS="-I$system/usr/include/python$version -I$system/usr/include"
        quiet_pip wheel --no-deps --no-build-isolation --wheel-dir "$work/wheels" "$root"
    )
    wheel=$(ls "$work"/wheels/*.whl)
fi

# Make a virtual environment of that Python. Its interpreter is a script that this machine can run,
# so that tests can start it too.
target=$work/venv
site=$target/lib/python$version/site-packages
if ! [ -d "$site/fastpool" ] || [ -n "$(find "$wheel" -newer "$site/fastpool")" ]; then
    rm -rf "$target"
    mkdir -p "$target/bin" "$site"
    echo "home = $system/usr/bin" >"$target/pyvenv.cfg"
    cat >"$target/bin/python" <<END
#!/bin/sh
exec qemu-aarch64-static -cpu cortex-a72 -L "$system" -0 "$target/bin/python" \\
    "$system/usr/bin/python$version" "\$@"
END
    chmod +x "$target/bin/python"
    arm_pip() {
        quiet_pip install --target "$site" --python-version "$version" --implementation cp \
            --only-binary=:all: --platform manylinux_2_28_aarch64 \
            --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 \
            --platform linux_aarch64 "$@"
    }
    arm_pip "numpy>=2.0" "pytest>=8" hypothesis ml_dtypes threadpoolctl
    arm_pip --no-deps "$wheel"
    touch "$site/fastpool"
fi

OBJDUMP=aarch64-linux-gnu-objdump "$venv/bin/python" "$root/ci/check_vectorised.py" "$site/fastpool"

cd "$root"
# Skip the time of the import: the emulator determines it.
[ $# -gt 0 ] || set -- tests/kernels/test_against_reference.py \
    tests/kernels/test_strategy_results.py tests/kernels/test_taps.py \
    tests/kernels/test_edges.py tests/kernels/test_guards.py \
    tests/kernels/test_unpool.py tests/process/test_build.py -k "not import_time"
export PYTHONSAFEPATH=1
exec "$target/bin/python" -m pytest --import-mode=importlib -p no:cacheprovider -q \
    --hypothesis-profile=few "$@"
