"""A call adds only scratch, leaves nothing in memory, and raises MemoryError if there is none."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cases
import limits
from cases import run_python

MIB = 1 << 20

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads and limits memory as Linux")

IMPORTS = """
import numpy as np
import fastpool
"""

POOL = """
def pool(shape):
    plan = fastpool.plan_max_pool(
        shape, "float32", (3, 3), strides=2, pads=1, layout={layout!r}, return_indices={indices}
    )
    x = np.ones(shape, np.float32)
    out = np.ones(plan.output_shape, np.float32)
    out_indices = np.ones(plan.output_shape, np.int64) if {indices} else None
    return added(lambda: plan(x, out=out, out_indices=out_indices))

pool((1, 8, 8, 8))  # what is loaded at the first call
print(pool({shape}))
"""


@needs_linux
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("indices, mebibytes", [(False, 256), (True, 64)])
def test_scratch_is_all_that_a_call_adds(layout, indices, mebibytes):
    channels, size = 16, mebibytes * MIB // 4 // 16 // 1024
    shape = (1, channels, size, 1024) if layout == "NCHW" else (1, size, 1024, channels)
    code = POOL.format(layout=layout, indices=indices, shape=shape)
    process = run_python(limits.ADDED + IMPORTS + code)
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) <= 8 * MIB


ACTIVATED = """
def pool(shape):
    plan = fastpool.plan_max_pool(shape, {dtype!r}, (3, 3), strides=2, pads=1, activation={name!r})
    x = np.ones(shape, {dtype!r})
    out = np.ones(plan.output_shape, {dtype!r})
    return added(lambda: plan(x, out=out))

def unpool(shape):
    y, indices = fastpool.max_pool(np.ones(shape, {dtype!r}), 2, strides=2, return_indices=True)
    out = np.ones(shape, {dtype!r})
    attributes = dict(kernel_shape=[2, 2], strides=[2, 2], activation={name!r}, out=out)
    return added(lambda: fastpool.onnx.max_unpool(y, indices, **attributes))

shape = (1, 16, 64 * 2**20 // np.dtype({dtype!r}).itemsize // 16 // 1024, 1024)
pool((1, 8, 8, 8)), unpool((1, 8, 8, 8))
print(pool(shape), unpool(shape))
"""


@needs_linux
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8"])
def test_an_activation_needs_no_copy(dtype):
    name = "Relu" if dtype == "int8" else "Silu"
    process = run_python(limits.ADDED + IMPORTS + ACTIVATED.format(dtype=dtype, name=name))
    assert process.returncode == 0, process.stderr
    assert max(map(int, process.stdout.split())) <= 8 * MIB


# ------------------------------------------------------------------------------- when there is none

# Poolings of every way that a call can take, and what is asked for memory on the way. Each entry is
# a function of the arrays for results, and these.
CALLS = """
import ctypes, gc, os, resource
import numpy as np
import fastpool

x = np.arange(2 * 4 * 40 * 1000, dtype=np.float32).reshape(2, 4, 40, 1000)
last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
row = np.arange(200_000, dtype=np.float32)
rows = np.arange(32 * 200 * 200, dtype=np.float32).reshape(1, 32, 200, 200)
y, z = fastpool.max_pool(x, 2, strides=2, return_indices=True)
strays = z[:, ::-1].copy()

def gaps(shape, dtype):
    # Half of a larger array.
    return np.empty((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]

def unaligned(shape, dtype):
    count = np.prod(shape) * np.dtype(dtype).itemsize
    return np.empty(count + 1, np.uint8)[1:].view(dtype).reshape(shape)

def pool(x, kernel, make=np.empty, **attributes):
    plan = fastpool.plan_max_pool(x.shape, x.dtype, kernel, **attributes)
    outs = [make(plan.output_shape, x.dtype)]
    if plan.return_indices:
        outs.append(np.empty(plan.output_shape, plan.index_dtype))
    def call(out=None, out_indices=None):
        plan(x, out=out, out_indices=out_indices)
    return call, outs

def unpool(function, *arrays, **attributes):
    attributes = dict(kernel_shape=[2, 2], strides=[2, 2]) | attributes
    out = np.empty_like(function(*arrays, **attributes), order="C")
    return lambda out=None: function(*arrays, out=out, **attributes), [out]

CALLS = {
    "values": pool(x, 3, pads=1),
    "indices": pool(x, 3, pads=1, return_indices=True),
    "threads": pool(x, 3, pads=1, return_indices=True, num_threads=2),
    "channels last": pool(last, 3, layout="NHWC", return_indices=True),
    "copied": pool(x[..., ::2], 3, return_indices=True),
    "scratch of many threads": pool(rows, 63, pads=31, return_indices=True, num_threads=32),
    "running maxima": pool(row, 150_001, layout="W", return_indices=True),
    "activation": pool(x, 3, activation="Sigmoid"),
    "activation, indices": pool(x, 3, activation="LeakyRelu", activation_params=[0.5],
                                return_indices=True),
    "activation, gaps": pool(x, 3, gaps, activation="Silu"),
    "activation, unaligned": pool(x, 3, unaligned, activation="Sigmoid"),
    "activation, float16": pool(x.astype(np.float16), 3, activation="LeakyRelu",
                                activation_params=[0.5]),
    "activation, float16, gaps": pool(x.astype(np.float16), 3, gaps, activation="Tanh"),
    "activation, float16, unaligned": pool(x.astype(np.float16), 3, unaligned, activation="Relu"),
    "activation, int16": pool(x.astype(np.int16), 3, activation="Clip", activation_params=[3, 999]),
    "activation, int16, unaligned": pool(x.astype(np.int16), 3, unaligned, activation="Relu"),
    "volume": pool(x, (2, 3, 3), layout="NDHW", return_indices=True),
    "unpool": unpool(fastpool.max_unpool, y, z),
    "unpool anywhere": unpool(fastpool.max_unpool, y, strays),
    "unpool copied": unpool(fastpool.max_unpool, y[:, ::-1], z[:, ::-1]),
    "unpool a block": unpool(fastpool.onnx.max_unpool, y, z, output_shape=(2, 4, 44, 1004)),
    "unpool, activation": unpool(fastpool.onnx.max_unpool, y, z, activation="Sigmoid"),
}
for call, outs in CALLS.values():
    call(*outs)
expected = {name: [out.copy() for out in outs] for name, (_, outs) in CALLS.items()}

def refused(call, *arguments):
    try:
        call(*arguments)
    except MemoryError:
        return True
    return False

def fill(outs):
    for out in outs:
        out.fill(7)

def check(name, outs, refusal):
    # Results are as they were, or right.
    for out, right in zip(outs, expected.get(name, [])):
        assert (out == 7).all() if refusal else np.array_equal(out, right), name
"""

EVERY_ALLOCATION = (
    CALLS
    + """
failing = ctypes.CDLL(os.environ["LD_PRELOAD"])
failing.watch.argtypes, failing.arm.argtypes = [ctypes.c_size_t], [ctypes.c_long]
failing.watch(600)  # Python has its own memory for objects of up to 512 bytes

def trial(name, call, outs):
    # Refuse the first block that a call asks for, then the second, until it asks for no more.
    for n in range(1, 1000):
        fill(outs)
        gc.collect()
        failing.arm(n)
        refusal = refused(call, *outs)
        if not failing.disarm():
            assert not refusal
            return n - 1
        check(name, outs, refusal)

def rounds():
    for name, (call, outs) in CALLS.items():
        yield name, trial(name, call, outs)
        yield name + ", new results", trial(name, call, [])
    for name, arguments in FIRST.items():
        yield name, trial(name, lambda: first(*arguments), [])

def first(shape, kernel_shape):
    fastpool.plan_max_pool(shape, x.dtype, kernel_shape, return_indices=True)(x.reshape(shape))

FIRST = {"first": (x.shape, 3), "first, volume": ((1, *x.shape), 2), "first, long": (x.shape, 33)}
counts = dict(rounds())
before = failing.watched()
counts = dict(rounds())
gc.collect()
assert failing.watched() <= before, "blocks were lost"
wanted = "scratch of many threads", "copied", "activation", "unpool a block", "first"
if not fastpool._kernels.OPENMP:  # the scratch of one thread needs no block
    wanted = wanted[1:]
for name in wanted + ("values, new results", "indices, new results", "first, volume"):
    assert counts[name], f"{name}: nothing was refused"
print(sum(counts.values()))
"""
)


@pytest.fixture(scope="module")
def failing_allocator(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or not compiler:
        pytest.skip("needs Linux and a C compiler")
    library = tmp_path_factory.mktemp("failing") / "failing.so"
    source = Path(__file__).parents[1] / "failing.c"
    command = [compiler, "-shared", "-fPIC", "-O1", str(source), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    if run_python("", LD_PRELOAD=str(library)).returncode:
        pytest.skip("the C library is not glibc")
    return library


def test_an_allocation_that_fails(failing_allocator):
    """Each block of memory that a call asks for is refused once: MemoryError, nothing else."""
    process = run_python(EVERY_ALLOCATION, LD_PRELOAD=str(failing_allocator))
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) > 40


@needs_linux
def test_a_limit_on_the_address_space():
    """No call succeeds by half when the process may have no more memory; all do when it may."""
    code = (
        CALLS
        + """
def size():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[0]) * resource.getpagesize()

malloc, free = ctypes.CDLL(None).malloc, ctypes.CDLL(None).free
malloc.argtypes, free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
malloc.restype = ctypes.c_void_p
limit = resource.getrlimit(resource.RLIMIT_AS)
names = "copied", "activation", "unpool a block"
for name in names:
    call, outs = CALLS[name]
    fill(outs)
    resource.setrlimit(resource.RLIMIT_AS, (size() + 100_000, limit[1]))
    try:
        # Take what the C library has left of earlier blocks.
        blocks = list(iter(lambda: malloc(100_000), None))
        results = [refused(call, *outs), refused(call), refused(call, *outs)]
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
    for block in blocks:
        free(block)
    assert results == [True] * 3, (name, results)
    check(name, outs, True)
    check(name, outs, refused(call, *outs))
    assert (outs[0] != 7).any()
"""
    )
    # Large blocks come from the system each time, not from what was freed before.
    process = run_python(code, MALLOC_MMAP_THRESHOLD_="65536")
    assert process.returncode == 0, process.stderr


@needs_linux
@pytest.mark.parametrize("isa", cases.BUILDS)
def test_threads_that_cannot_be_started(isa):
    """There are fewer then, where OpenMP's runtime would end the process."""
    code = """
import resource
import numpy as np
import fastpool

x = np.random.default_rng(0).integers(99, size=(8, 16, 64, 64)).astype(np.float32)
y, z = fastpool.max_pool(x, 3, strides=2, return_indices=True)
back = fastpool.max_unpool(y, z, 3, strides=2, output_shape=x.shape)
plan = fastpool.plan_max_pool(x.shape, x.dtype, 3, strides=2, return_indices=True, num_threads=16)
outs = np.empty_like(y), np.empty_like(z), np.empty_like(x)
with open("/proc/self/statm") as f:
    size = int(f.read().split()[0]) * resource.getpagesize()
stacks = 3 * max(resource.getrlimit(resource.RLIMIT_STACK)[0], 1 << 20)
resource.setrlimit(resource.RLIMIT_AS, (size + stacks, size + stacks))
plan(x, outs[0], outs[1])
fastpool.max_unpool(y, z, 3, strides=2, output_shape=x.shape, out=outs[2], num_threads=16)
for result, expected in zip(outs, (y, z, back)):
    assert np.array_equal(result, expected)
"""
    process = run_python(code, FASTPOOL_ISA=isa)
    assert process.returncode == 0, process.stderr


@needs_linux
@pytest.mark.skipif(not cases.OPENMP, reason="needs OpenMP")
def test_threads_that_a_call_did_not_start():
    """A call that met another one ran on one thread, so the next one asks the system again."""
    code = """
import queue, resource, threading, time
import numpy as np
import fastpool
from fastpool._running import builds

x = np.ones((1, 16, 1024, 1024), np.float32)
long_plan = fastpool.plan_avg_pool(x.shape, x.dtype, 3, numerics="sequential")
small = np.ones((4, 16, 128, 128), np.float32)
plan = fastpool.plan_max_pool(small.shape, small.dtype, 2, strides=2)
out = np.empty(plan.output_shape, small.dtype)
calls, done = queue.Queue(), queue.Queue()

def work():
    while calls.get():
        done.put(plan(small, out=out))

worker = threading.Thread(target=work)
worker.start()
for _ in range(5):
    while builds.active().paused():
        time.sleep(0.05)
    long = threading.Thread(target=long_plan, args=(x,))
    long.start()
    time.sleep(0.01)
    calls.put(True)
    done.get()
    met = builds.active().paused()
    long.join()
    if met and met[2] == 0:
        break
while builds.active().paused():
    time.sleep(0.05)
with open("/proc/self/statm") as f:
    size = int(f.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (4 << 20), -1))
calls.put(True)
assert (done.get() == 1).all()
calls.put(False)
"""
    process = run_python(code, FASTPOOL_NUM_THREADS="32", OMP_NUM_THREADS="32")
    assert process.returncode == 0, process.stderr


# ---------------------------------------------------------------------------------- what is left

GROWTH = """
import gc
import resource
import numpy as np
import fastpool

def used():
    gc.collect()  # what refers to itself waits for the collector
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()

x = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8)
plan = fastpool.plan_max_pool(x.shape, x.dtype, 2, strides=2, return_indices=True)
y, z = plan(x)
odd, wrong = x[..., ::2], z + 1000
layer = '<layer type="MaxPool"><data kernel="2,2" strides="2,2" auto_pad="valid"/></layer>'
un = dict(kernel_shape=[2, 2], strides=[2, 2])

def error(call, *arguments, **attributes):
    try:
        call(*arguments, **attributes)
    except (TypeError, ValueError):
        return
    raise AssertionError("no error")

CALLS = {
    100_000: [
        lambda: plan(x),
        lambda: plan(x, out=y, out_indices=z),
        lambda: fastpool.max_pool(x, 2),
        lambda: fastpool.max_unpool(y, z, 2, strides=2),
        lambda: fastpool.onnx.max_pool(x, kernel_shape=[2, 2], n_outputs=2),
        lambda: fastpool.onnx.max_unpool(y, z, **un),
        lambda: fastpool.openvino.max_pool(x, kernel=[2, 2], strides=[1, 1], auto_pad="valid"),
    ],
    10_000: [
        lambda: fastpool.max_pool(odd, 2),
        lambda: fastpool.max_pool(x, 2, activation="Sigmoid", return_indices=True),
        lambda: fastpool.max_unpool(y, z, 2, strides=2, output_shape=(1, 1, 9, 9)),
        lambda: error(plan, odd),
        lambda: error(plan, x, y[..., :1]),
        lambda: error(fastpool.max_pool, x, 0),
        lambda: error(fastpool.max_unpool, y, wrong, 2, strides=2),
        lambda: error(fastpool.onnx.max_pool, x, kernel_shape=[2]),
        lambda: error(fastpool.openvino.read_layer, layer.replace("2,2", "2,x")),
    ],
    1_000: [
        lambda: fastpool.plan_max_pool(x.shape, x.dtype, 2)(x),
        lambda: fastpool.openvino.read_layer(layer)(x),
        lambda: fastpool.plan_max_pool((1, 1, 1, 8, 8), x.dtype, (1, 3, 3))(x[None]),
    ],
}
growth = []
for _ in range(5):  # the first two for what calls take once, and again after a collection
    before = used()
    for count, calls in CALLS.items():
        for call in calls:
            for _ in range(max(count, 1100)):  # more than plans are kept
                call()
    growth.append(used() - before)
print(sorted(growth[2:])[1])  # (an allocator takes its next 256 KiB in one of them)
"""


@needs_linux
def test_calls_leave_nothing_behind():
    """800,000 calls: 3 bytes lost by each of one sort would be seen, 26 by each of the errors."""
    process = run_python(GROWTH)
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) < 256 << 10


@needs_linux
def test_kept_plans_are_few_and_small():
    """Models whose inputs are of any size make a plan for each; the last thousand are kept."""
    code = GROWTH.split("CALLS = ")[0]
    code += """
before = used()
for width in range(8, 4008):
    fastpool.max_pool(np.zeros((1, 1, 8, width), np.uint8), 3)
print(used() - before)
"""
    process = run_python(code)
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) < 32 * MIB
