#!/bin/sh
# Install fastpool into a virtual environment and run its demo. Needs python3 >= 3.11 with venv, a C
# compiler and a package index for pip. Works from any folder. Arguments go to
# `python -m fastpool demo` (--output DIR). The environment is .venv-demo next to ci/, or
# $FASTPOOL_VENV.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

venv=${FASTPOOL_VENV:-$root/.venv-demo}
make_environment demo
# -P keeps the current folder off sys.path. In the checkout it would hide the installed package.
exec "$venv/bin/python" -P -m fastpool demo "$@"
