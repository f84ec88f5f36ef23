#!/bin/sh
# Install fastpool with its test extra into a virtual environment, and run the test suite on the
# installed package. Works from any folder. Arguments go to pytest, with paths relative to the
# checkout:
#     sh ci/test.sh tests/planning/test_plan.py -k ceil
#     sh ci/test.sh -n 2 --dist worksteal              # all, in two processes
# The environment is .venv-test next to ci/, or $FASTPOOL_VENV.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

venv=${FASTPOOL_VENV:-$root/.venv-test}
make_environment test
run_pytest "$@"
