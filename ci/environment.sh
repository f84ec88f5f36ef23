# Sourced by test.sh and demo.sh.

# make_environment FOLDER EXTRA: a virtual environment in FOLDER with ".[EXTRA]" of this checkout installed in it.
# Needs $root. Installs again only when a source is newer than the last installation.
make_environment() {
    if ! [ -x "$1/bin/pip" ]; then
        echo "creating the virtual environment $1"
        "${PYTHON:-python3}" -m venv "$1" || {
            echo "$0: 'python3 -m venv' does not work here (Debian and Ubuntu: apt install python3-venv)" >&2
            return 1
        }
    fi
    if [ -f "$1/.installed-$2" ] && [ -z "$(find "$root/setup.py" "$root/pyproject.toml" "$root/fastpool" \
        \( -name '*.py' -o -name '*.pyx' -o -name '*.pxi' -o -name '*.h' -o -name '*.toml' \) -newer "$1/.installed-$2")" ]; then
        return 0
    fi
    echo "installing fastpool[$2] into $1: downloads and compiles, some minutes the first time"
    # What is compiled is used again where nothing changed, but modules deleted since must not be packed once more.
    find "$root/build" -name '*.py' -exec rm -f {} + 2>/dev/null || true
    "$1/bin/python" -m pip install --disable-pip-version-check "$root[$2]" >"$1/install.log" 2>&1 || {
        cat "$1/install.log" >&2
        echo "$0: the installation failed (python3 >= 3.11, a C compiler and pip's registry are needed)" >&2
        return 1
    }
    touch "$1/.installed-$2"
}
