#!/bin/sh
# Install fastpool into a virtual environment, look for scalar loops in its modules (check_vectorised.py), and compare
# the instructions of its workloads with those stored (instructions.py). Works from any folder; the argument goes to
# instructions.py: `check`, which is the default, or `accept`, which stores what was counted. Its exit status is handed
# on: 77 where another compiler than that of the stored counts was at work.
# The environment is .venv-test beside ci/, or $FASTPOOL_VENV. Needs valgrind and objdump besides what test.sh needs.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

for tool in valgrind objdump; do
    command -v $tool >/dev/null || fail "$tool is missing (Debian and Ubuntu: apt install valgrind binutils)"
done
venv=${FASTPOOL_VENV:-$root/.venv-test}
make_environment test
"$venv/bin/python" "$root/ci/check_vectorised.py"
exec "$venv/bin/python" "$root/ci/instructions.py" "${1:-check}"
