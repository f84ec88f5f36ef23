# shellcheck shell=sh disable=SC2154,SC2164 # $root, $venv and set -e are those of the scripts
# The scripts in this folder source this file. They set $root, the checkout, and $venv, the virtual
# environment.

# make_environment EXTRA: make $venv and install "fastpool[EXTRA]" of this checkout into it. The
# wheel is built only if a source is newer. All scripts share it.
make_environment() {
    make_venv
    tag=$("$venv/bin/python" -c 'import sys; print(sys.implementation.cache_tag)')
    wheels=$root/build/wheels-$tag
    wheel=$(ls "$wheels"/*.whl 2>/dev/null || true)
    if is_outdated "$wheel"; then
        echo "building fastpool: two to four minutes"
        # setuptools would pack everything from earlier builds in build/lib, also deleted modules.
        rm -rf "$wheels" "$root"/build/lib*
        quiet_pip wheel --no-deps --wheel-dir "$wheels" "$root"
        wheel=$(ls "$wheels"/*.whl)
        "$venv/bin/python" "$root/ci/check_dist.py" "$wheel"
    fi

    stamp=$venv/.installed-$1
    if ! [ -f "$stamp" ] || [ -n "$(find "$wheel" -newer "$stamp")" ]; then
        echo "installing fastpool[$1] into $venv"
        quiet_pip install "${wheel}[$1]"
        # An older wheel may have the same version.
        quiet_pip install --no-deps --force-reinstall "$wheel"
        touch "$stamp"
    fi
}

# is_outdated WHEEL: succeed if there is no wheel ("") or a source is newer.
is_outdated() {
    [ -z "$1" ] || [ -n "$(cd "$root" && find setup.py pyproject.toml fastpool stubs \
        \( -name '*.py' -o -path 'stubs/*.pyi' -o -name '*.toml' -o -name '*.pyx' -o -name '*.pxi' \
        -o -name '*.pxd' -o -name '*.[ch]' \) -newer "$1")" ]
}

make_venv() {
    [ -x "$venv/bin/pip" ] && return
    echo "creating the virtual environment $venv"
    "${PYTHON:-python3}" -m venv "$venv" ||
        fail "'python3 -m venv' does not work here (Debian and Ubuntu: apt install python3-venv)"
}

# install_tools NAME==VERSION...: install them into $venv, once.
install_tools() {
    stamp=$venv/.installed-tools
    [ "$(cat "$stamp" 2>/dev/null)" = "$*" ] && return
    echo "installing $* into $venv"
    quiet_pip install "$@"
    echo "$*" >"$stamp"
}

# run_pytest ARGUMENT...: run the tests on the installed package.
run_pytest() {
    case $venv in /*) ;; *) venv=$PWD/$venv ;; esac
    cd "$root"
    # Not -P, which affects this process only: the tests start further interpreters, which must also
    # use the installed package.
    export PYTHONSAFEPATH=1
    exec "$venv/bin/python" -m pytest --import-mode=importlib "$@"
}

# make_instrumented NAME PACKAGE...: build fastpool in place in a folder, $site, with $CC,
# $FASTPOOL_CFLAGS and $LDFLAGS (setup.py says how it uses them). Install what the tests of kernels
# need, and the packages, into $venv. Only changed sources are built again: delete build/NAME after
# a change of flags.
make_instrumented() {
    site=$root/build/$1
    shift
    make_venv
    stamp=$venv/.installed-$(echo "$@" | tr -c 'a-z0-9\n' -)
    if ! [ -f "$stamp" ]; then
        echo "installing what the tests need into $venv"
        quiet_pip install "setuptools>=77.0.3" "cython>=3.1" "numpy>=2.0" "pytest>=8" \
            hypothesis ml_dtypes "$@"
        touch "$stamp"
    fi
    mkdir -p "$site"
    # Leave out modules that were built in the checkout.
    tar -C "$root" --exclude='*.so' -cf - setup.py pyproject.toml README.md LICENSE fastpool stubs |
        tar -C "$site" -xf -
    echo "building fastpool in $site: two to four minutes"
    (cd "$site" && "$venv/bin/python" setup.py build_ext --inplace) >"$site/build.log" 2>&1 || {
        cat "$site/build.log" >&2
        fail "the build failed (needed: python3 >= 3.11 and ${CC:-a C compiler}; see the top of $0)"
    }
}

quiet_pip() {
    "$venv/bin/python" -m pip --disable-pip-version-check "$@" >"$venv/pip.log" 2>&1 || {
        cat "$venv/pip.log" >&2
        fail "pip $1 failed (needed: python3 >= 3.11, a C compiler, a package index)"
    }
}

# debian_mirror: print the mirror of Debian that apt uses, on other systems that of debootstrap
debian_mirror() {
    # shellcheck disable=SC2016 # (apt replaces it)
    apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' | head -n 1 |
        grep . || echo http://deb.debian.org/debian
}

# own_apt FOLDER ARGUMENT...: run apt-get with the lists and the state in a folder, which has a
# sources.list. Accept expired lists: a mirror may be days old.
own_apt() {
    state=$1
    shift
    mkdir -p "$state/lists/partial" "$state/archives/partial"
    apt-get -q -o Dir::State="$state" -o Dir::State::status=/dev/null -o Dir::Cache="$state" \
        -o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::Etc::PreferencesParts=/dev/null -o Debug::NoLocking=1 \
        -o APT::Sandbox::User="$(id -un)" -o Acquire::Check-Valid-Until=false "$@"
}

fail() {
    echo "$0: $1" >&2
    exit 1
}
