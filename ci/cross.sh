#!/bin/sh
# Build the wheel for another architecture with a cross compiler, and run tests under qemu, which
# emulates its processor:
#     sh ci/cross.sh aarch64|ppc64le|riscv64|s390x [pytest arguments]
# Works from any folder. Without arguments for pytest, run some tests of kernels. The build takes
# some minutes, the tests 15 to 60. Everything is in build/cross/ARCHITECTURE.
# $RELEASE names the Debian release whose Python is built for, instead of the one in the table.
# Needs Debian, a package index, and python3 >= 3.11 ($PYTHON names another). Install as root:
#     apt install debian-archive-keyring qemu-user-static gcc-aarch64-linux-gnu
# or gcc-powerpc64le-linux-gnu, gcc-riscv64-linux-gnu, gcc-s390x-linux-gnu.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

# Debian's and GNU's names of the architecture, a processor, and where NumPy comes from: wheels, or
# packages of the release. (bookworm has no riscv64, and its NumPy is too old.)
machine=${1:-}
case $machine in
aarch64) debian=arm64 triplet=aarch64-linux-gnu cpu=cortex-a72 numpy=wheels release=bookworm ;;
ppc64le) debian=ppc64el triplet=powerpc64le-linux-gnu cpu=power9 numpy=debian release=forky ;;
riscv64) debian=riscv64 triplet=riscv64-linux-gnu cpu=rv64 numpy=debian release=forky ;;
s390x) debian=s390x triplet=s390x-linux-gnu cpu=max numpy=debian release=forky ;;
*) fail "name an architecture: aarch64, ppc64le, riscv64 or s390x" ;;
esac
shift
release=${RELEASE:-$release}
qemu=$(command -v "qemu-$machine-static" || command -v "qemu-$machine" || true)
[ -n "$qemu" ] || fail "qemu-$machine-static is missing (Debian: apt install qemu-user-static)"
for tool in "$triplet-gcc" "$triplet-objdump"; do
    command -v "$tool" >/dev/null || fail "$tool is missing (Debian: apt install gcc-$triplet)"
done
for tool in apt-get dpkg; do
    command -v $tool >/dev/null || fail "$tool is missing: this script needs Debian"
done
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -f $keyring ] || fail "$keyring is missing (apt install debian-archive-keyring)"

work=$root/build/cross/$machine
venv=$work/host
mkdir -p "$work"
make_venv

# Unpack the release's Python, with everything it needs, into a folder.
system=$work/system-$release
if ! [ -f "$system/.complete" ]; then
    echo "fetching python3 of $release for $debian"
    apt=$work/apt-$release
    rm -rf "$system"
    mkdir -p "$apt" "$system"
    mirror=$(debian_mirror)
    echo "deb [signed-by=$keyring] $mirror $release main" >"$apt/sources.list"
    target_apt() {
        own_apt "$apt" -o APT::Architecture="$debian" -o APT::Architectures="$debian" "$@"
    }
    packages="python3 libpython3-dev libgomp1 libstdc++6"
    [ $numpy = wheels ] || packages="$packages python3-numpy python3-ml-dtypes"
    # shellcheck disable=SC2086
    { target_apt update && target_apt install -y --download-only \
        --no-install-recommends $packages; } >"$apt/apt.log" 2>&1 || {
        cat "$apt/apt.log" >&2
        fail "apt cannot fetch python3 of $release for $debian (RELEASE=... names another release)"
    }
    for package in "$apt"/archives/*.deb; do
        dpkg -x "$package" "$system"
    done
    for folder in lib lib64; do # (links that come with no package)
        [ -e "$system/$folder" ] || ln -s "usr/$folder" "$system/$folder"
    done
    for library in "$system/usr/lib/$triplet"/*/lib*.so.3; do # (dpkg's alternatives: BLAS, LAPACK)
        [ ! -e "$library" ] || ln -sf "$library" "$system/usr/lib/$triplet/"
    done
    touch "$system/.complete"
fi
version=$(readlink "$system/usr/bin/python3") # python3.14, say
version=${version#python}

# Build the wheel as CPython cross-compiles its modules: with the build data of the target's Python.
wheels=$work/wheels-$version
wheel=$(ls "$wheels"/*.whl 2>/dev/null || true)
if is_outdated "$wheel"; then
    quiet_pip install "setuptools>=77.0.3" "cython>=3.1" wheel
    echo "building fastpool for $machine: two to four minutes"
    rm -rf "$wheels" "$work/raw" "$work/data" "$work/include" "$root"/build/lib*"$machine"* \
        "$root"/build/temp*"$machine"*
    mkdir -p "$wheels" "$work/data" "$work/include/$triplet"
    # Only Python's headers: those of the release's C library may be too new for this compiler.
    ln -s "$system/usr/include/$triplet/python$version" "$work/include/$triplet/"
    data=_sysconfigdata__$triplet
    cp "$system/usr/lib/python$version/$data.py" "$work/data"
    (
        export _PYTHON_HOST_PLATFORM="linux-$machine" _PYTHON_SYSCONFIGDATA_NAME="$data"
        export PYTHONPATH="$work/data" CC="$triplet-gcc" LDSHARED="$triplet-gcc -shared"
        export CFLAGS="-Wall -I$system/usr/include/python$version -I$work/include"
        quiet_pip wheel -v --no-deps --no-build-isolation --wheel-dir "$work/raw" "$root"
    )
    if grep "[0-9]: warning:" "$venv/pip.log" >&2; then fail "$triplet-gcc warns"; fi
    # setuptools names the version of the Python that runs it.
    tag=cp$(echo "$version" | tr -d .)
    "$venv/bin/wheel" tags --remove --python-tag "$tag" --abi-tag "$tag" "$work"/raw/*.whl \
        >/dev/null
    mv "$work"/raw/*.whl "$wheels"
    wheel=$(ls "$wheels"/*.whl)
fi

# Make a virtual environment of that Python. Its interpreter is a script that this machine can run,
# so that tests can start it too.
target=$work/venv-$version
site=$target/lib/python$version/site-packages
if ! [ -d "$site/fastpool" ] || [ -n "$(find "$wheel" -newer "$site/fastpool")" ]; then
    rm -rf "$target"
    mkdir -p "$target/bin" "$site"
    echo "home = $system/usr/bin" >"$target/pyvenv.cfg"
    cat >"$target/bin/python" <<END
#!/bin/sh
exec "$qemu" -cpu $cpu -L "$system" -0 "$target/bin/python" \\
    "$system/usr/bin/python$version" "\$@"
END
    chmod +x "$target/bin/python"
    target_pip() {
        quiet_pip install --target "$site" --python-version "$version" --implementation cp \
            --only-binary=:all: --platform "manylinux_2_28_$machine" \
            --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine" \
            --platform "linux_$machine" "$@"
    }
    target_pip "pytest>=8" hypothesis threadpoolctl
    if [ $numpy = wheels ]; then
        target_pip "numpy>=2.0" ml_dtypes
    else
        echo "$system/usr/lib/python3/dist-packages" >"$site/debian.pth"
    fi
    target_pip --no-deps "$wheel"
    touch "$site/fastpool"
fi

if [ "$machine" = aarch64 ]; then
    OBJDUMP=$triplet-objdump "$venv/bin/python" "$root/ci/check_vectorised.py" "$site/fastpool"
fi

cd "$root"
# Skip the time of the import: the emulator determines it.
[ $# -gt 0 ] || set -- tests/kernels/test_against_reference.py \
    tests/kernels/test_strategy_results.py tests/kernels/test_taps.py tests/kernels/test_edges.py \
    tests/kernels/test_guards.py tests/kernels/test_unpool.py tests/process/test_build.py \
    -k "not import_time"
export PYTHONSAFEPATH=1
exec "$target/bin/python" -m pytest --import-mode=importlib -p no:cacheprovider -q \
    --hypothesis-profile=few "$@"
