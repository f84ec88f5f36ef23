#!/bin/sh
# Install fastpool into a virtual environment, look for scalar loops in its modules
# (check_vectorised.py), and compare the instructions of its workloads with the stored counts
# (instructions.py). Works from any folder. The argument goes to instructions.py: `check`, the
# default, or `accept`, which stores the new counts. The exit status is that of instructions.py: 77
# if no instructions were compared, because valgrind is missing or the compiler is not the one of
# the stored counts.
# The environment is .venv-test next to ci/, or $FASTPOOL_VENV. Needs everything that test.sh needs,
# and objdump.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

command -v objdump >/dev/null || fail "objdump is missing (Debian and Ubuntu: apt install binutils)"
venv=${FASTPOOL_VENV:-$root/.venv-test}
make_environment test
"$venv/bin/python" "$root/ci/check_vectorised.py"
exec "$venv/bin/python" "$root/ci/instructions.py" "${1:-check}"
