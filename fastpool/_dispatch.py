"""From a plan and arrays to compiled kernels: the build for this processor, and the careful way
for arrays that kernels cannot take as they are.
"""

import contextlib
import functools
import importlib
import math
import os
import sys

import numpy as np

from . import _schedule, _threads
from ._activation import prepared_activation
from ._arguments import NAMES, dtype_name
from ._foreign import as_array, as_output, bump_versions
from ._plan import check_fields
from ._plan_checks import is_same_state, state_of
from ._unpool_plan import check_unpool_fields

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


_active = None


def _activate(name):
    global _active
    _active = name
    for build, kernels in _builds.items():
        kernels.use(build == name)


_activate(_choose_build())


def _probes():
    """Arrays that differ in everything that the fields of an array say (`arrays.pxi`)."""
    a = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    yield from (a, a[::-1, 1:, ::2], a.T, a[:, :0], a[0, 0, 0:1].reshape(()))
    yield from (a.astype(np.float32), a.astype(">i4"), a.astype(bool), np.zeros((1,) * 9))
    yield a.view(np.uint8).reshape(-1)[1:-1].view(np.int16)  # not aligned
    constant = np.zeros(3)
    constant.flags.writeable = False
    yield constant


for _kernels in _builds.values():
    _kernels.trust_fields(all(map(_kernels.fields_agree, _probes())))

call_key = _builds[_active].call_key


@contextlib.contextmanager
def using(name):
    """Run with another build (for tests and measurements; not for use from several threads)."""
    global _active
    kernels = _builds[name]
    before = _active
    _activate(name)
    try:
        yield kernels
    finally:
        _activate(before)


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


def check_output(name, array, shape, dtype, others):
    """Raise unless results can be written into `array`; `others` maps names to arrays in use."""
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
    plain = _readable(x, unit).view(pooling.dtype), into["y"].view(pooling.dtype, np.ndarray)
    places = None if z is None else into["z"].view(plan.index_dtype, np.ndarray)
    if not pooling.pool_apart(*plain, places, threads):
        raise AssertionError(
            f"fastpool: the kernels refused the arrays of {plan}; please report this"
        )
    for name, array in (("y", y), ("z", z)):
        if array is not None and into[name] is not array:
            array[...] = into[name]


def _run_gigantic(plan, axes, threads, x, y, z):
    """Pool windows whose places exceed 64 bits: nearly all of these is padding."""
    y[...] = _lowest(plan.dtype)
    if z is not None:
        z[...] = -1
    i = next(i for i, axis in enumerate(axes) if _schedule.is_gigantic(_schedule.trimmed(axis)))
    axis, before = axes[i], (slice(None),) * plan.spatial[i]

    def pool(other, y, z):
        _pool(plan, (*axes[:i], other, *axes[i + 1 :]), threads, x, y, z)

    start, stop = _schedule.live(axis)
    begin = axis.begin - start * axis.stride
    axis = axis._replace(output=stop - start, begin=begin)
    if not _schedule.is_gigantic(_schedule.trimmed(axis)):
        part = *before, slice(start, stop)
        pool(axis, y[part], None if z is None else z[part])
        return
    ends = _schedule.every_end(axis)
    places = np.array(_schedule.gathered(axis, ends), np.int64)
    chosen = places >= 0
    part, places = (*before, start + np.flatnonzero(chosen)), places[chosen]
    shape = *y.shape[: len(before)], ends.output, *y.shape[len(before) + 1 :]
    pooled = np.empty(shape, y.dtype)
    found = None if z is None else np.empty(shape, z.dtype)
    pool(ends, pooled, found)
    y[part] = pooled.take(places, axis=len(before))
    if z is not None:
        z[part] = found.take(places, axis=len(before))


def _pool(plan, axes, threads, x, y, z):
    windows = tuple(map(_schedule.trimmed, axes))
    if any(map(_schedule.is_gigantic, windows)):
        _run_gigantic(plan, axes, threads, x, y, z)
    elif y.size:
        pooling = _pooling(plan, windows, x.shape, y.shape, _plain_dtype(plan.dtype, x.dtype))
        _run(pooling, plan, threads, x, y, z)


def _pooling(plan, windows, input_shape, output_shape, dtype, threads=None):
    """The compiled pooling of windows that are not gigantic, in tiles whose scratch is bounded."""
    schedule = _schedule.make_schedule(plan, windows, input_shape, output_shape)
    while True:
        pooling = _builds[_active].Pooling(schedule, dtype, threads)
        if pooling.scratch_bytes <= _schedule.SCRATCH_BYTES:
            return pooling
        smaller = _schedule.narrower(schedule)
        if smaller is None:
            if schedule.far or pooling.scratch_bytes <= _schedule.MOST_SCRATCH_BYTES:
                return pooling
            smaller = _schedule.far(schedule)
        schedule = smaller


def _element_type(x):
    """The name of x's element type. (NumPy takes longer to find it than a small pooling does.)"""
    return NAMES.get(x.dtype) or dtype_name(x.dtype, "x")


def _plain_dtype(name, dtype):
    """The object that nearly all arrays of this element type have as their dtype."""
    return np.dtype(dtype.type if name == "bfloat16" else name)


def _threads_of_calls(num_threads, work):
    """A function for the threads of each call, or None if that is one."""
    if num_threads == 1 or (num_threads is None and work < _threads.SERIAL_BYTES):
        return None
    limit = _builds[_active].max_threads
    return functools.partial(_threads.effective_threads, num_threads, work, limit)


class _PreparedPlan:
    """What was made of a plan on one build."""

    def fits(self, plan):
        """Is it of this build, and of what the plan's fields are now? (They are frozen, but
        object.__setattr__ changes them.)
        """
        return self.build is _active and is_same_state(self.state, state_of(plan))


def _refuse(*arrays):
    """In the place of what is compiled, where every array needs care."""
    return None


class Runner(_PreparedPlan):
    """What a plan needs to run, on one build; kept on the plan."""

    def __init__(self, plan, dtype):
        check_fields(plan)
        self.state = state_of(plan)
        self.build = _active
        self.windows = tuple(map(_schedule.trimmed, plan.axes))
        self.threads = _threads_of_calls(plan.num_threads, _schedule.work_bytes(plan))
        self.pooling = None
        self.run = _refuse
        if not any(map(_schedule.is_gigantic, self.windows)):
            shapes = plan.input_shape, plan.output_shape
            plain = _plain_dtype(plan.dtype, dtype)
            self.pooling = _pooling(plan, self.windows, *shapes, plain, self.threads)
            if plan.activation is None:
                self.run = self.pooling.run


def _keep(plan, runner):
    """From now on the plan's calls go straight to what is compiled."""
    object.__setattr__(plan, "_runner", runner)
    object.__setattr__(plan, "_run", runner.run)


def execute_max_pool(plan, x, out, out_indices):
    """Run a plan at its first call, or on arrays that its `_run` did not take.

    Every array is checked before anything is written.
    """
    x = as_array(x, "x")
    if _element_type(x) != plan.dtype:
        raise TypeError(f"x: expected dtype {plan.dtype}, got {x.dtype}")
    if x.shape != plan.input_shape:
        raise ValueError(f"x: expected shape {plan.input_shape}, got {x.shape}")
    runner = plan.__dict__.get("_runner")
    if runner is None or not runner.fits(plan):
        runner = Runner(plan, x.dtype)
        _keep(plan, runner)
    into = _outputs(out=out, out_indices=out_indices)
    results = runner.run(x, *into)
    if results is None:
        results = _pool_with_care(plan, runner, x, *into)
    bump_versions(out, out_indices)
    if not plan.return_indices:
        return results if out is None else out
    y, z = results
    return y if out is None else out, z if out_indices is None else out_indices


def _outputs(**arrays):
    """Arrays over the memory of what a caller gave to be written."""
    return [None if given is None else as_output(given, name) for name, given in arrays.items()]


def _pool_with_care(plan, runner, x, out, out_indices):
    native = x.dtype.newbyteorder("=")
    if out is not None:
        check_output("out", out, plan.output_shape, native, {"x": x})
    if out_indices is not None:
        if not plan.return_indices:
            raise ValueError("out_indices: given without return_indices")
        others = {"x": x} if out is None else {"x": x, "out": out}
        check_output(
            "out_indices", out_indices, plan.output_shape, np.dtype(plan.index_dtype), others
        )
    # Gigantic windows need memory when some results are there already: not in `out` then, which is
    # to keep what it holds if there is none.
    y, z = (None, None) if runner.pooling is None else (out, out_indices)
    if y is None:
        y = np.empty(plan.output_shape, native)
    if z is None and plan.return_indices:
        z = np.empty(plan.output_shape, plan.index_dtype)
    activate = prepared_activation(plan.activation, plan.activation_params, native, y.size)
    if y.size:
        threads = 1 if runner.threads is None else runner.threads()
        if runner.pooling is not None:
            _run(runner.pooling, plan, threads, x, y, z)
        else:
            _pool(plan, plan.axes, threads, x, y, z)
    activate(y)
    if out is not None and out is not y:
        out[...] = y
        y = out
    if out_indices is not None and out_indices is not z:
        out_indices[...] = z
        z = out_indices
    return (y, z) if plan.return_indices else y


class UnpoolRunner(_PreparedPlan):
    """What the plan of an unpooling needs to run, on one build and one element type."""

    def __init__(self, plan, name, dtype):
        check_unpool_fields(plan)
        self.state = state_of(plan)
        self.build, self.dtype = _active, dtype
        # In "inferred" space the indices count in a block, which goes to the origin of the result.
        self.block = plan.index_space == "inferred" and plan.inferred != plan.output
        self.shape = list(plan.output_shape)
        if self.block:
            for place, extent in zip(plan.spatial, plan.inferred, strict=True):
                self.shape[place] = extent
        plane = math.prod(plan.sizes), math.prod(plan.inferred if self.block else plan.output)
        order = plan.index_planes, plan.channels_last, plan.index_layout == "NHWC"
        self.counted = plan.index_planes * plane[1]
        values = math.prod(plan.x_shape)
        work = values * (dtype.itemsize + 8) + math.prod(plan.output_shape) * dtype.itemsize
        self.threads = _threads_of_calls(plan.num_threads, work)
        self.unpooling = _builds[_active].Unpooling(
            *(plan.x_shape, tuple(self.shape), plan.batch, plan.channels, *plane, *order),
            *(_plain_dtype(name, dtype), self.threads),
        )
        self.run = _refuse if self.block else self.unpooling.run


def execute_max_unpool(plan, x, indices, out):
    """Run the plan of an unpooling on arrays that its `_run` did not take."""
    x, indices = as_array(x, "x"), as_array(indices, "indices")
    name, native = _element_type(x), x.dtype.newbyteorder("=")
    if x.shape != plan.x_shape:
        raise ValueError(f"x: expected shape {plan.x_shape}, got {x.shape}")
    runner = plan.__dict__.get("_runner")
    if runner is None or not runner.fits(plan) or runner.dtype != native:
        runner = UnpoolRunner(plan, name, native)
        _keep(plan, runner)
    (into,) = _outputs(out=out)
    y = runner.run(x, indices, into)
    if y is None:
        y = _unpool_with_care(plan, runner, x, indices, into)
    bump_versions(out)
    return y if out is None else out


def _unpool_with_care(plan, runner, x, indices, out):
    native = runner.dtype
    if indices.dtype.newbyteorder("=") not in _INDEX_DTYPES:
        raise TypeError(f"indices: expected dtype int64 or int32, got {indices.dtype}")
    if indices.shape != plan.x_shape:
        raise ValueError(f"indices: expected x's shape {plan.x_shape}, got {indices.shape}")
    if out is not None:
        check_output("out", out, plan.output_shape, native, {"x": x, "indices": indices})
    y = np.empty(runner.shape, native)
    plain = runner.unpooling.dtype
    indices = _contiguous(indices)
    threads = 1 if runner.threads is None else runner.threads()
    bad = runner.unpooling.unpool_apart(
        *(_contiguous(x).view(plain), indices.view(f"i{indices.itemsize}"), y.view(plain)), threads
    )
    if bad >= 0:
        place = np.unravel_index(bad, plan.x_shape)
        raise ValueError(
            f"indices[{', '.join(map(str, place))}]: {indices[place]} is outside "
            f"[0, {runner.counted}), the elements that it counts in"
        )
    if bad == _builds[_active].CHANGED_INDICES:
        raise ValueError("indices: changed by another thread or process during the call")
    if bad != -1:
        raise AssertionError(
            f"fastpool: the kernels refused the arrays of {plan}; please report this"
        )
    if runner.block:
        result = np.zeros(plan.output_shape, native)
        result[tuple(map(slice, y.shape))] = y
        y = result
    if out is None:
        return y
    out[...] = y
    return out


_INDEX_DTYPES = (np.dtype(np.int64), np.dtype(np.int32))


def _contiguous(array):
    """The array, or a copy: C-contiguous, aligned, native."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned and array.dtype.isnative:
        return array
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
