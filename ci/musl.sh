#!/bin/sh
# Build CPython and fastpool for musl, the C library of Alpine, as a wheel without OpenMP, and run
# the tests of wheels there:
#     sh ci/musl.sh
# Works from any folder. Arguments go to pytest and replace the list of tests. The builds take 15
# minutes on two cores. The tests take as long as elsewhere. Everything is in build/musl. Python,
# musl and the libraries come from the sources and packages of Debian's release below, and NumPy
# from its wheel for musl. That wheel needs musl 1.2.4: its libraries have DT_RELR.
# Needs Debian on x86-64. Install as root:
#     apt install gcc make autoconf automake libtool texinfo
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"
release=trixie version=3.13

for tool in gcc make autoreconf libtoolize makeinfo apt-get dpkg; do
    command -v $tool >/dev/null ||
        fail "$tool is missing (Debian: apt install gcc make autoconf automake libtool texinfo)"
done
work=$root/build/musl
venv=$work/host
mkdir -p "$work/apt" "$work/sources"
make_venv

musl_apt() {
    own_apt "$work/apt" "$@" >>"$work/apt.log" 2>&1 || {
        cat "$work/apt.log" >&2
        fail "apt failed: $*"
    }
}

# Unpack musl. Its specs tell gcc where it is, and Python's interpreter says so to the system.
libc=$work/system/usr/lib/x86_64-linux-musl
if ! [ -x "$work/cc" ]; then
    echo "fetching musl and the sources of python$version"
    mirror=$(debian_mirror)
    printf '%s %s %s main\n' deb "$mirror" $release deb-src "$mirror" $release \
        >"$work/apt/sources.list"
    musl_apt update
    (
        cd "$work/sources"
        musl_apt download musl musl-dev
        musl_apt source --download-only --tar-only python$version libffi zlib
        for package in ./*.deb; do
            dpkg -x "$package" "$work/system"
        done
        for archive in ./*.orig.tar.?z; do
            tar -xf "$archive"
        done
    )
    sed -e "s,/usr/lib/x86_64-linux-musl,$libc,g" \
        -e "s,/usr/include/x86_64-linux-musl,$work/system&,g" \
        -e "s,/lib/ld-musl-x86_64.so.1,$libc/libc.so," "$libc/musl-gcc.specs" >"$work/musl.specs"
    cat >"$work/cc.new" <<END
#!/bin/sh
# Python's configure compares this name with its own.
[ "\$*" != --print-multiarch ] || exec echo x86_64-linux-musl
exec gcc "\$@" -specs "$work/musl.specs"
END
    chmod +x "$work/cc.new"
    mv "$work/cc.new" "$work/cc"
fi

target=$work/target
python=$target/bin/python$version
if ! [ -f "$target/.complete" ]; then
    echo "building python$version for musl: ten minutes"
    (
        export CC="$work/cc" CFLAGS="-O2 -fPIC" PKG_CONFIG=false
        cd "$work"/sources/zlib-*/ && ./configure --static --prefix="$target" && make install &&
            cd "$work"/sources/libffi-*/ && autoreconf -fi &&
            ./configure --prefix="$target" --disable-shared --disable-docs \
                --disable-multi-os-directory --disable-exec-static-tramp && make install &&
            cd "$work"/sources/Python-*/ &&
            ./configure --prefix="$target" --disable-test-modules --without-ensurepip \
                CPPFLAGS="-I$target/include" LDFLAGS="-L$target/lib" \
                ZLIB_CFLAGS="-I$target/include" ZLIB_LIBS="-L$target/lib -lz" \
                LIBFFI_CFLAGS="-I$target/include" LIBFFI_LIBS="-L$target/lib -lffi" &&
            make -j"$(nproc)" && make install && touch "$target/.complete"
    ) >"$work/python.log" 2>&1 || fail "python$version does not build: see $work/python.log"
fi

site=$target/lib/python$version/site-packages
musl_pip() {
    quiet_pip install --upgrade --target "$site" --python-version $version --implementation cp \
        --only-binary=:all: --platform musllinux_1_2_x86_64 "$@"
}
[ -f "$site/.complete" ] || {
    musl_pip "setuptools>=77.0.3" "cython>=3.1" wheel pip "numpy>=2.0" "pytest>=8.2" hypothesis \
        threadpoolctl
    touch "$site/.complete"
}

wheel=$(ls "$work"/wheels/*.whl 2>/dev/null || true)
if is_outdated "$wheel"; then
    echo "building fastpool for musl: two to four minutes"
    rm -rf "$work/wheels" "$root"/build/lib*cpython-313*
    mkdir "$work/wheels"
    FASTPOOL_OPENMP=0 LDFLAGS=-Wl,-s "$python" -m pip -q wheel --disable-pip-version-check \
        --no-deps --no-index --no-build-isolation --wheel-dir "$work/wheels" "$root"
    # There is nothing to repair, as nothing is bundled: only the name must say where it runs.
    "$python" -m wheel tags --remove --platform-tag musllinux_1_2_x86_64 "$work"/wheels/*.whl
    wheel=$(ls "$work"/wheels/*.whl)
fi
musl_pip --no-deps "$wheel"

cd "$root"
# Skip the time of the import: this interpreter is not optimised as others are. And skip what loads
# libgomp or libstdc++, which Debian has for glibc only.
[ $# -gt 0 ] || set -- @ci/wheel_tests.txt -k "not import_time and not inside_a_parallel_region \
    and not after_another_runtime and not the_cpp_example"
export PYTHONSAFEPATH=1
exec "$python" -m pytest --import-mode=importlib -p no:cacheprovider -q "$@"
