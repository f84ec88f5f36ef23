"""From a plan and arrays to compiled kernels: the build for this processor, and the careful way
for arrays that kernels cannot take as they are.
"""

import contextlib
import importlib
import math
import os
import sys

import numpy as np

from . import _schedule, _threads
from ._activation import apply_activation
from ._arguments import DTYPES, dtype_name

# Builds of _kernels.pyx, best first, with the processor features that each was compiled for.
BUILDS = {
    "avx512": ("_kernels_avx512", ("avx2", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl")),
    "avx2": ("_kernels_avx2", ("avx2", "bmi2")),
    "baseline": ("_kernels", ()),
}


def _load_builds():
    from . import _kernels

    found = {}
    for name, (module, features) in BUILDS.items():
        if all(map(_kernels.cpu_supports, features)):
            # A build may be missing (another architecture); one that is there must load.
            with contextlib.suppress(ModuleNotFoundError):
                found[name] = importlib.import_module(f".{module}", __package__)
    return found


_builds = _load_builds()


def builds():
    """Builds that this processor runs, best first: name -> module."""
    return dict(_builds)


def _choose_build():
    name = os.environ.get("FASTPOOL_ISA", "").strip()
    if not name:
        return next(iter(_builds))
    if name not in _builds:
        raise ImportError(
            f"FASTPOOL_ISA={name!r}: no such build runs here; available: {', '.join(_builds)}"
        )
    return name


_active = _choose_build()


@contextlib.contextmanager
def using(name):
    """Run with another build (for tests and measurements; not for use from several threads)."""
    global _active
    kernels = _builds[name]
    before, _active = _active, name
    try:
        yield kernels
    finally:
        _active = before


def show_config():
    """Print the version, the builds, the one in use, and the number of threads.

    Examples
    --------
    >>> import fastpool
    >>> fastpool.show_config()  # doctest: +ELLIPSIS
    fastpool ...
    """
    from . import __version__

    kernels = _builds[_active]
    print(f"fastpool {__version__}, Python {sys.version.split()[0]}, numpy {np.__version__}")
    print(f"builds: {', '.join(_builds)}; in use: {_active} ({kernels.VECTOR_BYTES}-byte vectors)")
    limit = kernels.max_threads()
    default = _threads.effective_threads(None, _threads.SERIAL_BYTES, kernels.max_threads)
    print(
        f"threads: {default} by default (processors: {_threads.available_cpus()}, "
        f"OpenMP limit: {limit}, FASTPOOL_NUM_THREADS: "
        f"{os.environ.get('FASTPOOL_NUM_THREADS', 'not set')})"
    )


def _lowest(dtype):
    """What a window without elements gives."""
    if dtype == "bool":
        return False
    return -np.inf if "float" in dtype else np.iinfo(dtype).min


def _check_output(name, array, shape, dtype, others):
    """Raise unless results can be written into `array`; `others` maps names to arrays in use."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name}: expected a numpy.ndarray, got {type(array).__name__}")
    if array.dtype != dtype or not array.dtype.isnative:
        raise TypeError(f"{name}: expected dtype {dtype}, got {array.dtype!r}")
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    if not array.flags.writeable:
        raise ValueError(f"{name}: expected a writeable array, got a read-only one")
    if _repeats(array):
        raise ValueError(f"{name}: some of its elements share memory")
    for other_name, other in others.items():
        if _overlap(array, other):
            raise ValueError(f"{name}: overlaps {other_name}")


def _overlap(a, b):
    try:
        return np.shares_memory(a, b, max_work=100_000)
    except np.exceptions.TooHardError:
        return np.may_share_memory(a, b)


def _repeats(array):
    """May one address be two elements? (Exact where each axis steps over all inside it.)"""
    inside = array.itemsize
    for stride, extent in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if extent > 1:
            if stride < inside:
                return array.size > 0
            inside = stride * (extent - 1) + inside
    return False


def _bits(array):
    """bfloat16 has no buffer format: its bits go to the kernels."""
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def _ready(array, unit_axis):
    """Can kernels work on this array in place?"""
    unit = (
        array.ndim == 0 or array.shape[unit_axis] == 1 or array.strides[unit_axis] == array.itemsize
    )
    return array.flags.aligned and array.dtype.isnative and unit


def _readable(array, unit_axis):
    if _ready(array, unit_axis):
        return array
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def _run(pooling, plan, threads, x, y, z):
    """Run on arrays that do not overlap, by way of copies where kernels need them."""
    unit = plan.channel_axis if plan.channels_last and plan.channels > 1 else plan.spatial[-1]
    into = {}
    for name, array in (("y", y), ("z", z)):
        if array is not None:
            into[name] = array if _ready(array, unit) else np.empty(array.shape, array.dtype)
    arrays = _bits(_readable(x, unit)), _bits(into["y"]), into.get("z")
    if not pooling.run(*arrays, threads, bits=plan.dtype == "bfloat16", apart=True):
        raise AssertionError(
            f"fastpool: the kernels refused the arrays of {plan}; please report this"
        )
    for name, array in (("y", y), ("z", z)):
        if array is not None and into[name] is not array:
            array[...] = into[name]


def _run_pieces(plan, windows, threads, x, y, z):
    """A window or stride far larger than the input: nearly all of it is padding, and no band of
    scratch could hold it. Outputs over the same elements, of which there are few sorts, are
    pooled once, as one window without padding.
    """
    y[...] = _lowest(plan.dtype)
    if z is not None:
        z[...] = -1
    if None in windows:
        return
    axis = next(i for i, window in enumerate(windows) if _schedule.unwieldy(window))
    place, window = plan.spatial[axis], windows[axis]
    strides = _schedule.index_strides(plan)

    def at(array, start, stop):
        return array[(*(slice(None),) * place, slice(start, stop))]

    for first, taps, begin, end in _schedule.runs(window):
        inside = _schedule.whole_window(taps, window.dilation)
        part = at(x, first, first + inside.size)
        pooled = np.empty_like(at(y, begin, begin + 1), order="C")
        found = None if z is None else np.empty_like(at(z, begin, begin + 1), order="C")
        smaller = (*windows[:axis], inside, *windows[axis + 1 :])
        _pool(plan, smaller, threads, part, pooled, found)
        at(y, begin, end)[...] = pooled
        if z is not None:
            at(z, begin, end)[...] = np.where(found < 0, -1, found + first * strides[2 + axis])


def _pool(plan, windows, threads, x, y, z):
    if any(window is None or _schedule.unwieldy(window) for window in windows):
        _run_pieces(plan, windows, threads, x, y, z)
        return
    _run(_pooling(plan, windows, x.shape, y.shape), plan, threads, x, y, z)


def _pooling(plan, windows, input_shape, output_shape):
    """The compiled pooling of windows that are not unwieldy, in tiles whose scratch is bounded."""
    schedule = _schedule.make_schedule(plan, windows, input_shape, output_shape)
    pooling = _builds[_active].Pooling(schedule)
    while pooling.scratch_bytes > _schedule.SCRATCH_BYTES:
        schedule = _schedule.narrower(schedule)
        if schedule is None:
            break
        pooling = _builds[_active].Pooling(schedule)
    return pooling


class _Runner:
    """What a plan needs to run, on one build; kept on the plan."""

    def __init__(self, plan):
        self.build = _active
        self.windows = tuple(map(_schedule.trimmed, plan.axes))
        self.pooling = None
        self.work = _schedule.work_bytes(plan)
        if not any(w is None or _schedule.unwieldy(w) for w in self.windows):
            self.pooling = _pooling(plan, self.windows, plan.input_shape, plan.output_shape)
        # For arrays that need no care. None: every call goes the careful way.
        simple = self.pooling is not None and plan.activation is None
        self.run = self.pooling.run if simple else None

    def threads(self, num_threads):
        """Threads of this call."""
        if num_threads is None and self.work < _threads.SERIAL_BYTES:
            return 1  # by far the most calls; they should cost little more than their work
        return _threads.effective_threads(num_threads, self.work, _builds[self.build].max_threads)


def execute_max_pool(plan, x, out, out_indices):
    """Run a plan (`MaxPoolPlan.__call__`)."""
    runner = plan.__dict__.get("_runner")
    if runner is None or runner.build is not _active:
        runner = _Runner(plan)
        object.__setattr__(plan, "_runner", runner)
    threads = runner.threads(plan.num_threads)
    if type(x) is not np.ndarray:
        x = as_array(x, "x")
    y, z = out, out_indices
    if y is None:
        y = np.empty(plan.output_shape, x.dtype)
    if z is None and plan.return_indices:
        z = np.empty(plan.output_shape, plan.index_dtype)
    # The kernels check shapes, dtypes and overlap themselves, and touch nothing they do not like.
    plain = runner.run is not None and (plan.return_indices or out_indices is None)
    if not (plain and runner.run(x, y, z, threads)):
        y = _execute_with_care(plan, runner, threads, x, out, out_indices, y, z)
    return (y, z) if plan.return_indices else y


def _execute_with_care(plan, runner, threads, x, out, out_indices, y, z):
    """Check every array, then run as suits them. Raises before anything is written."""
    if dtype_name(x.dtype, "x") != plan.dtype:
        raise TypeError(f"x: expected dtype {plan.dtype}, got {x.dtype}")
    if x.shape != plan.input_shape:
        raise ValueError(f"x: expected shape {plan.input_shape}, got {x.shape}")
    native = x.dtype.newbyteorder("=")
    if out is not None:
        _check_output("out", out, plan.output_shape, native, {"x": x})
    else:
        y = np.empty(plan.output_shape, native)
    if out_indices is not None:
        if not plan.return_indices:
            raise ValueError("out_indices: given without return_indices")
        others = {"x": x} if out is None else {"x": x, "out": out}
        _check_output(
            "out_indices", out_indices, plan.output_shape, np.dtype(plan.index_dtype), others
        )
    if y.size:
        if runner.pooling is not None:
            _run(runner.pooling, plan, threads, x, y, z)
        else:
            _pool(plan, runner.windows, threads, x, y, z)
    apply_activation(y, plan.activation, plan.activation_params)
    return y


def execute_max_unpool(plan, x, indices, out, num_threads):
    """Run a max unpooling (`fastpool.max_unpool`)."""
    kernels = _builds[_active]
    y = np.empty(plan.output_shape, x.dtype) if out is None else out
    work = x.nbytes + indices.nbytes + x.itemsize * math.prod(plan.output_shape)
    threads = _threads.effective_threads(num_threads, work, kernels.max_threads)
    # In "inferred" space the indices count in a block, which then goes to the origin of the result.
    block = plan.index_space == "inferred" and plan.inferred != plan.output
    size = math.prod(plan.inferred if block else plan.output)
    geometry = (
        *(plan.batch, plan.channels, math.prod(plan.sizes), size),
        *(plan.channels_last, plan.index_layout == "NHWC", threads),
    )
    # As with pooling, the kernel looks for itself, and touches nothing that it does not like.
    if (
        not block
        and x.dtype in _UNPOOLED
        and indices.shape == plan.x_shape
        and getattr(y, "shape", None) == plan.output_shape
        and kernels.max_unpool(x, indices, y, *geometry) == -1
    ):
        return y
    return _unpool_with_care(plan, kernels, geometry, block, x, indices, out)


def _unpool_with_care(plan, kernels, geometry, block, x, indices, out):
    native = x.dtype.newbyteorder("=")
    dtype_name(native, "x")
    if indices.dtype.newbyteorder("=") not in _INDEX_DTYPES:
        raise TypeError(f"indices: expected dtype int64 or int32, got {indices.dtype}")
    if indices.shape != plan.x_shape:
        raise ValueError(f"indices: expected x's shape {plan.x_shape}, got {indices.shape}")
    if out is not None:
        _check_output("out", out, plan.output_shape, native, {"x": x, "indices": indices})
    shape = list(plan.output_shape)
    corner = [slice(None)] * len(shape)
    if block:
        for place, extent in zip(plan.spatial, plan.inferred, strict=True):
            shape[place], corner[place] = extent, slice(extent)
    y = np.empty(shape, native)
    x, indices = _contiguous(x), _contiguous(indices)
    bits = f"u{native.itemsize}"
    bad = kernels.max_unpool(x.view(bits), indices, y.view(bits), *geometry)
    if bad >= 0:
        place = np.unravel_index(bad, plan.x_shape)
        raise ValueError(
            f"indices[{', '.join(map(str, place))}]: {indices[place]} is outside "
            f"[0, {y.size}), the elements of {y.shape}"
        )
    if bad != -1:
        raise AssertionError(
            f"fastpool: the kernels refused the arrays of {plan}; please report this"
        )
    if out is None and not block:
        return y
    result = np.empty(plan.output_shape, native) if out is None else out
    if block:
        result[...] = np.zeros((), native)
    result[tuple(corner)] = y
    return result


# Dtypes that the kernels take as they are. (A set compares by value, byte order included.)
_UNPOOLED = {np.dtype(name) for name in DTYPES if name != "bfloat16"}
_INDEX_DTYPES = (np.dtype(np.int64), np.dtype(np.int32))


def _contiguous(array):
    """The array, or a copy: C-contiguous, aligned, native."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned and array.dtype.isnative:
        return array
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def as_array(x, name):
    """An array from what numpy makes one of, but none whose mask would not be seen."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name}: a masked array's mask would be ignored; fill it first")
    return np.asarray(x)
