"""A pooling into memory of the caller needs scratch, and no copy of its input or results."""

import sys

import pytest

from cases import run_python

MIB = 1 << 20

# ru_maxrss is a high-water mark: all pages that the call may use are touched before it is read.
CODE = """
import resource
import numpy as np
import fastpool

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

def pool(shape):
    plan = fastpool.plan_max_pool(
        shape, "float32", (3, 3), strides=2, pads=1, layout={layout!r}, return_indices={indices}
    )
    x = np.ones(shape, np.float32)
    out = np.ones(plan.output_shape, np.float32)
    out_indices = np.ones(plan.output_shape, np.int64) if {indices} else None
    before = peak()
    plan(x, out=out, out_indices=out_indices)
    return peak() - before

pool((1, 8, 8, 8))  # what is loaded at the first call
print(pool({shape}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux only")
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("indices, mebibytes", [(False, 256), (True, 64)])
def test_scratch_is_all_that_a_call_adds(layout, indices, mebibytes):
    channels, size = 16, mebibytes * MIB // 4 // 16 // 1024
    shape = (1, channels, size, 1024) if layout == "NCHW" else (1, size, 1024, channels)
    process = run_python(CODE.format(layout=layout, indices=indices, shape=shape))
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) <= 8 * MIB
