#!/bin/sh
# Run the tests that need PyTorch, JAX or LiteRT, which are large (with CUDA, if the package index
# has no build for CPUs alone): fastpool.torch, arrays of other libraries, the bits of LiteRT, and
# fastpool and torch in one process. It also runs the pages about other libraries with these.
# Otherwise this script works as test.sh does. The environment is .venv-torch next to ci/, or
# $FASTPOOL_VENV.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/ci/environment.sh"

venv=${FASTPOOL_VENV:-$root/.venv-torch}
make_venv
[ -n "$(find "$venv/.installed-torch" -newer "$root/ci/torch.sh" 2>/dev/null)" ] ||
    quiet_pip install "torch==2.13.0" expecttest jax onnxscript scikit-learn ai-edge-litert \
        opencv-python-headless rasterio scikit-image tinybrain
touch "$venv/.installed-torch"
make_environment test,torch
[ $# -gt 0 ] || set -- -n 2 tests/routes/test_torch.py tests/routes/test_torch_graphs.py \
    tests/routes/test_torch_errors.py tests/routes/test_torch_averages.py \
    tests/routes/test_torch_average_graphs.py tests/routes/test_torch_lp.py \
    tests/routes/test_torch_samples.py tests/routes/test_torch_select.py \
    tests/routes/test_torch_exports.py tests/routes/test_foreign.py \
    tests/routes/test_conventions.py tests/routes/test_peers.py tests/routes/test_operators.py \
    tests/routes/test_litert.py tests/routes/test_examples.py tests/routes/test_pages.py \
    tests/routes/test_ceil_mode.py::test_torch_on_every_small_row \
    tests/kernels/test_reference_average.py::test_sequential_is_torch \
    tests/process/test_process.py::test_together_with_another_parallel_library \
    tests/process/test_process.py::test_workers_of_a_data_loader \
    tests/process/test_threads.py::test_a_forked_child_pools_next_to_another_openmp \
    tests/process/test_threads.py::test_several_openmp_runtimes_in_one_process
run_pytest "$@"
