#!/bin/sh
# Build CPython from Debian's source packages, within the oldest Debian that can be had, so that
# the interpreters also run on every newer system:
#     sh ci/pythons.sh 3.13t 3.11          t: free-threaded
# Works from any folder. Each is in build/pythons/VERSION, with the libraries that it needs.
# Debian's patches and profile-guided optimisation are left out, so interpreted code is slower than
# in Debian's own Python. apt must be able to fetch the source package: a mirror may lack one that
# its lists name. RELEASE names another Debian to build in. Needs root, and on Debian or Ubuntu
#     apt install debootstrap debian-archive-keyring
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"
. "$root/ci/sandbox.sh"

[ $# -gt 0 ] || fail "expected versions of Python, such as 3.13 or 3.13t"
release=${RELEASE:-$oldest}
pythons=$root/build/pythons
sources=$pythons/sources
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# fetch VERSION: print the path of its source, from the oldest release that has it. apt checks it
# against the signed lists of the release.
fetch() {
    if ! [ -d "$sources/$1" ]; then
        mkdir -p "$sources/apt"
        rm -rf "$sources/new"
        mkdir "$sources/new"
        mirror=$(debian_mirror)
        for name in bookworm trixie forky sid; do
            echo "deb-src [signed-by=$keyring] $mirror $name main"
        done >"$sources/apt/sources.list"
        own_apt "$sources/apt" update >"$sources/apt.log" 2>&1 || fail "$(cat "$sources/apt.log")"
        for name in bookworm trixie forky sid; do
            (cd "$sources/new" &&
                own_apt "$sources/apt" source --download-only "python$1/$name") \
                >>"$sources/apt.log" 2>&1 && mv "$sources/new" "$sources/$1" && break
        done
    fi
    ls "$sources/$1"/*.orig.tar.?z 2>/dev/null || {
        grep -E '^(E|Err)' "$sources/apt.log" >&2 || true
        fail "apt cannot fetch the source of python$1 from any release of Debian"
    }
}

# shellcheck disable=SC2086
make_sandbox "$release" $oldest_packages
for version in "$@"; do
    target=$pythons/$version
    python=$target/bin/python${version%t}
    [ -f "$target/.complete" ] && continue
    tarball=$(fetch "${version%t}")
    echo "building Python $version in Debian $release"
    work=$pythons/work-$version
    rm -rf "$work" "$target"
    mkdir -p "$work/source"
    tar -C "$work/source" --strip-components=1 -xf "$tarball"
    # shellcheck disable=SC2016 # expanded by the shell in the sandbox
    in_sandbox "$release" sh -eu -c '
        version=$1 target=$2
        cd "$3"
        gil=
        [ "$version" = "${version%t}" ] || gil=--disable-gil
        source/configure --prefix="$target" ${gil:+"$gil"} --without-static-libpython \
            --disable-test-modules OPT="-DNDEBUG -fwrapv -O3 -Wall"
        make -j2
        make install
        # Copy the libraries that newer systems lack, and let the modules find them.
        mkdir -p "$target/lib"
        for module in "$target"/lib/python3*/lib-dynload/*.so; do
            ldd "$module" |
                awk "\$3 ~ /lib(ssl|crypto|ffi|bz2|lzma|sqlite3|z)[.]so/ { print \$3 }" |
                xargs -r cp -Lt "$target/lib"
            patchelf --set-rpath "\$ORIGIN/../.." "$module"
        done
    ' sh "$version" "$target" "$work" >"$pythons/$version.log" 2>&1 || {
        rm -rf "$target"
        tail -n 30 "$pythons/$version.log" >&2
        fail "Python $version does not build in Debian $release"
    }
    rm -rf "$work"
    { "$python" -c 'import bz2, ctypes, lzma, sqlite3, ssl, zlib' &&
        "$python" -m pip --version; } || fail "Python $version does not run on this system"
    touch "$target/.complete"
done
