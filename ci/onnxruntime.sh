#!/bin/sh
# Run the tests of fastpool's kernels inside onnxruntime with the oldest onnxruntime that they work
# with. (ci/test.sh runs them with the newest.) Otherwise this script works as test.sh does.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

version=1.20.1
venv=${FASTPOOL_VENV:-$root/.venv-test}
make_environment test
if "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 14))'; then
    echo "onnxruntime $version does not exist for this Python"
    exit
fi
oldest=$venv/onnxruntime-$version
[ -d "$oldest" ] || quiet_pip install --no-deps --target "$oldest" "onnxruntime==$version"
export PYTHONPATH="$oldest"
# Not compared with it: what it does in another way than the newest.
other="maxima_are_those_of_onnxruntime or bits_of_onnxruntime or no_kernel or explain or ort_files"
[ $# -gt 0 ] || set -- -q -k "not ($other or constants)" tests/routes/test_onnx_inside.py \
    tests/routes/test_onnx_inside_sessions.py tests/routes/test_onnx_inside_processes.py \
    tests/routes/test_onnx_inside_hostile.py tests/routes/test_onnx_inside_models.py::test_networks
run_pytest "$@"
