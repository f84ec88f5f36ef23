# shellcheck shell=sh disable=SC2154,SC2164 # $root, $venv and set -e are those of the scripts
# Sourced by scripts beside it, which set $root, the checkout, and $venv, the virtual environment.

# make_environment EXTRA: the environment with "fastpool[EXTRA]" of this checkout installed in it. The wheel is
# built only when a source is newer, and both scripts share it.
make_environment() {
    make_venv
    wheels=$root/build/wheels-$("$venv/bin/python" -c 'import sys; print(sys.implementation.cache_tag)')
    wheel=$(ls "$wheels"/*.whl 2>/dev/null || true)
    if is_outdated "$wheel"; then
        echo "building fastpool: some minutes"
        # setuptools would pack everything that earlier builds left in build/lib, deleted modules too.
        rm -rf "$wheels" "$root"/build/lib*
        quiet_pip wheel --no-deps --wheel-dir "$wheels" "$root"
        wheel=$(ls "$wheels"/*.whl)
        "$venv/bin/python" "$root/ci/check_dist.py" "$wheel"
    fi

    stamp=$venv/.installed-$1
    if ! [ -f "$stamp" ] || [ -n "$(find "$wheel" -newer "$stamp")" ]; then
        echo "installing fastpool[$1] into $venv"
        quiet_pip install "${wheel}[$1]"
        quiet_pip install --no-deps --force-reinstall "$wheel" # the version of an older wheel may be the same
        touch "$stamp"
    fi
}

# is_outdated WHEEL: is there none ("") or is a source newer?
is_outdated() {
    [ -z "$1" ] || [ -n "$(find "$root/setup.py" "$root/pyproject.toml" "$root/fastpool" \
        \( -name '*.py' -o -name '*.pyi' -o -name '*.toml' -o -name '*.pyx' -o -name '*.pxi' -o -name '*.pxd' -o -name '*.h' \) -newer "$1")" ]
}

make_venv() {
    [ -x "$venv/bin/pip" ] && return
    echo "creating the virtual environment $venv"
    "${PYTHON:-python3}" -m venv "$venv" ||
        fail "'python3 -m venv' does not work here (Debian and Ubuntu: apt install python3-venv)"
}

# run_pytest ARGUMENT...: the tests, on the installed package.
run_pytest() {
    case $venv in /*) ;; *) venv=$PWD/$venv ;; esac
    cd "$root"
    # Not -P, which stops at this process: the tests start interpreters of their own, also on the installed package.
    export PYTHONSAFEPATH=1
    exec "$venv/bin/python" -m pytest --import-mode=importlib "$@"
}

# make_instrumented NAME PACKAGE...: $site, a folder with fastpool built in place, with $CC, $FASTPOOL_CFLAGS and
# $LDFLAGS (setup.py says how they are used); and in $venv what the tests of kernels need, and those packages. Only
# what changed is built again: delete build/NAME after a change of flags.
make_instrumented() {
    site=$root/build/$1
    shift
    make_venv
    stamp=$venv/.installed-$(echo "$@" | tr -c 'a-z0-9\n' -)
    if ! [ -f "$stamp" ]; then
        echo "installing what the tests need into $venv"
        quiet_pip install "setuptools>=77.0.3" "cython>=3.1" "numpy>=2.0" "pytest>=8" hypothesis ml_dtypes "$@"
        touch "$stamp"
    fi
    mkdir -p "$site"
    # (no module that was built in the checkout)
    tar -C "$root" --exclude='*.so' -cf - setup.py pyproject.toml README.md LICENSE fastpool | tar -C "$site" -xf -
    echo "building fastpool in $site: some minutes"
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

fail() {
    echo "$0: $1" >&2
    exit 1
}
