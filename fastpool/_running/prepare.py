"""Prepare a plan for calls on one build: its work, tiles and compiled object."""

import functools
import math
import os

from .._planning.average_pool import AvgPool
from .._planning.max_pool import MaxPool, MinPool
from .._planning.max_unpool import MaxUnpool
from .._planning.plan_checks import checked, has_state
from . import builds, strategies, threads
from .fewer_axes import with_fewer_axes, without_single_axes
from .outputs import plain_dtype
from .passes import chain, whole_window
from .repeats import once
from .running_maxima import in_running_maxima
from .work import UnpoolWork, make_work, narrower, problem_of, work_bytes

# Target for scratch per thread. Smaller tiles cannot reach it for windows of thousands of taps.
SCRATCH_BYTES = 1 << 20
# Limit for scratch per thread.
MOST_SCRATCH_BYTES = 2 << 20


def compiled(plan, kernels, dtype, copies, work=None):
    """Return the compiled pooling of a plan, its `Work`, the `Work` of its own axes, and threads.

    Work of fewer axes may need these (`FewerAxes.joined`); the next to last is None if it does not.
    The threads are those of `threads_of_calls`. A given `work` has its tiles.
    """
    threads_now, by_default = threads_of_calls(plan, work_bytes(plan))
    make = functools.partial(
        kernels.Pooling, dtype=dtype, threads=threads_now, by_default=by_default
    )
    if work is not None:
        return make(work), work, None, threads_now
    facts = builds.facts(kernels)
    # Read once: another thread may change it, and all decisions must fit.
    off = switched_off()

    @functools.cache
    def work_of(fewer):
        return strategies.decide(make_work(problem_of(fewer.plan, off, copies)), facts)

    whole = without_single_axes(plan, copies)
    fewer = with_fewer_axes(whole, copies, functools.partial(work_of, whole))
    own = None, None
    if fewer.joined:
        own = _with_little_scratch(make, work_of(whole), whole, plan, facts)
    work = work_of(fewer)
    make = functools.partial(make, otherwise=own[0])
    pooling, work = _with_little_scratch(make, work, fewer, plan, facts)
    return pooling, work, own[1], threads_now


def _with_little_scratch(make, work, fewer, plan, facts):
    """Return a compiled pooling, and its work, with the axes of a plan, of a work of `fewer`.

    To bound the scratch of a thread, tiles become smaller or running maxima take the windows.
    """
    while True:
        placed = fewer.placed(work, plan)
        pooling = make(placed)
        if pooling.scratch_bytes <= SCRATCH_BYTES:
            return pooling, placed
        smaller = narrower(work)
        if smaller is None:
            if work.axes or pooling.scratch_bytes <= MOST_SCRATCH_BYTES:
                return pooling, placed
            smaller = in_running_maxima(work)
        work = strategies.decide(smaller, facts)


def switched_off():
    """Return the strategies that ``FASTPOOL_STRATEGY=-flat_planes,-apart`` switches off.

    This is for measurements. Strategies that take work that no other one can are never off.
    """
    switches = os.environ.get("FASTPOOL_STRATEGY", "").replace(" ", "")
    if not switches:
        return frozenset()
    rows, never = strategies.STRATEGIES.values(), strategies.NEVER_OFF
    names = {f.__name__: None for row in rows for f in row if f.__name__ not in never}
    chosen = switches.split(",")
    for choice in chosen:
        if choice[:1] != "-" or choice[1:] not in names:
            expected = ", ".join(f"-{name}" for name in names)
            raise ValueError(f"FASTPOOL_STRATEGY={switches!r}: expected some of {expected}")
    return frozenset(choice[1:] for choice in chosen)


def threads_of_calls(plan, nbytes):
    """Return a function that returns the threads of a call, or None if it is always one; a rule.

    The rule is `threads.rule`: what the threads of a call depend on besides.
    """
    count, rule = plan.num_threads, threads.rule(plan.num_threads, nbytes)
    if threads.is_always_one(count, nbytes) or not builds.active().OPENMP:
        return None, rule
    limit = builds.active().max_threads
    return functools.partial(threads.effective_threads, count, nbytes, limit), rule


class Prepared:
    """What was prepared from a plan on one build."""

    # What was prepared from `repeats.once` of the plan. Nothing is compiled for the plan then.
    once = None
    # What runs a plan with borders, in parts. Nothing is compiled for the plan then.
    bordered = None
    # The work of the plan's own axes, if arrays may need it (`FewerAxes.joined`).
    own_work = None

    def fits(self, plan):
        """Was it made on the active build, from the plan's present fields?

        The fields are frozen, but object.__setattr__ can change them.
        """
        return self.build is builds.active_name() and has_state(plan, self.state)

    @property
    def contiguous_axis(self):
        """The axis along which kernels need arrays contiguous; None if it is all of them."""
        work = self.own_work or self.work
        if work.batch_axis >= 0 and work.batch < self.plan.input_shape[work.batch_axis]:
            return None  # (`images_as_one`)
        if work.channels_last:
            return work.channel_axis
        columns = work.spatial_axes[-1]
        return self.plan.spatial[-1] if columns < 0 else columns

    def threads_now(self):
        """Return the threads of a call that begins now."""
        return 1 if self.threads is None else self.threads()

    def take(self, kind, plan, dtype, python, work):
        """Take a plan of a `kind`. Return the plan to compile; None if `once` or `bordered` runs.

        The other arguments are those of `PreparedPool`.
        """
        plan, self.state = checked(kind, plan)
        self.plan, self.build = plan, builds.active_name()
        if plan.borders:
            plan = self._take_border(dtype, python)
        pooled_once = once(plan) if plan is not None and python and work is None else None
        if pooled_once is None:
            return plan
        self.once, self.pooling, self.run = type(self)(pooled_once, dtype), None, _refuse
        return None

    def _take_far(self):
        """Let NumPy run the plan."""
        from .far_borders import FarBordered  # here, so that importing fastpool stays fast

        self.pooling, self.run, self.bordered = None, _refuse, FarBordered(self.plan)

    def _take_border(self, dtype, python):
        """Return the plan to compile; None if `bordered` has its parts."""
        plan = self.plan
        if not python:
            raise ValueError(f'border: expected "ignore" for a run from C, got {plan.border!r}')
        from . import borders  # here, so that importing fastpool stays fast

        within = borders.edges(plan)
        if all(ends is None for ends in within):
            return borders.plain_plan(plan, keeps_activation=True)
        self.pooling, self.run = None, _refuse
        if borders.is_far(plan, within):
            self._take_far()
        else:
            self.bordered = borders.Bordered(
                plan,
                within,
                self.fills_columns,
                lambda part, work=None: type(self)(part, dtype, True, work),
            )
        return None


def _refuse(*arrays):
    """Return None, in place of a compiled function: all arrays go to the slower path."""
    return None


class PreparedPool(Prepared):
    """What a pooling plan needs to run on one build; it is stored on the plan."""

    def __init__(self, plan, dtype=None, python=True, work=None):
        """`dtype` is that of an array, for element types whose dtype a package defines.

        `python` says whether calls come from Python, which copies arrays and repeats results where
        compiled code alone cannot. A `work` that `fills_columns` returned is compiled as it is.
        """
        kind = MinPool if isinstance(plan, MinPool) else MaxPool
        plan = self.take(kind, plan, dtype, python, work)
        if plan is None:
            return
        kernels = builds.builds()[self.build]
        made = compiled(plan, kernels, plain_dtype(plan.dtype, dtype), python, work)
        self.pooling, self.work, self.own_work, self.threads = made
        self.run = self.pooling.run if plan.activation is None else _refuse

    def fills_columns(self, plan, border):
        """Return the work of kernels that fill the padding of columns, or None."""
        facts = builds.facts(builds.builds()[self.build])
        problem = problem_of(plan, switched_off())
        columns = whole_window(plan.axes[-1])
        columns = columns._replace(steps=chain(columns.kernel, columns.dilation))
        problem = problem._replace(windows=(*problem.windows[:-1], columns))
        return strategies.filling_columns(make_work(problem), facts)


class PreparedAverage(Prepared):
    """What an average pooling plan needs to run on one build."""

    def __init__(self, plan, dtype=None, python=True, work=None):
        """The arguments are those of `PreparedPool`."""
        # Here, so that importing fastpool stays fast.
        from .averages import FEW_TAPS, is_far, make_sum_work

        plan = self.take(AvgPool, plan, dtype, python, work)
        if plan is None:
            return
        if python and work is None and max(plan.output_shape) > FEW_TAPS and is_far(plan):
            self._take_far()
            return
        plain = plain_dtype(plan.dtype, dtype)
        result = plain if plan.result_dtype == plan.dtype else plain_dtype(plan.result_dtype)
        kernels = builds.builds()[self.build]
        self.threads, by_default = threads_of_calls(plan, work_bytes(plan))
        make = functools.partial(
            kernels.Averaging,
            dtype=plain,
            result_dtype=result,
            threads=self.threads,
            by_default=by_default,
        )
        otherwise = None
        if work is None:
            whole = without_single_axes(plan, python)
            fewer = with_fewer_axes(whole, python)
            if fewer.joined:
                self.own_work = whole.placed(make_sum_work(whole.plan, python), plan)
                otherwise = make(self.own_work)
            work = fewer.placed(make_sum_work(fewer.plan, python), plan)
        self.work, self.pooling = work, make(work, otherwise=otherwise)
        self.run = self.pooling.run if plan.activation is None else _refuse

    def fills_columns(self, plan, border):
        """Return the work of kernels that fill the padding of columns, or None."""
        from .averages import fills_columns

        return fills_columns(plan, border)


class PreparedUnpool(Prepared):
    """What an unpooling plan needs to run on one build and one element type."""

    def __init__(self, plan, name, dtype=None):
        plan, self.state = checked(MaxUnpool, plan)
        self.plan = plan
        plain = plain_dtype(name, dtype)
        self.build, self.dtype = builds.active_name(), plain if dtype is None else dtype
        # In "inferred" space indices count in a block, which is put at the origin of the result.
        self.block = plan.index_space == "inferred" and plan.inferred != plan.output
        self.shape = list(plan.output_shape)
        if self.block:
            for place, extent in zip(plan.spatial, plan.inferred, strict=True):
                self.shape[place] = extent
        size = math.prod(plan.inferred if self.block else plan.output)
        self.counted = plan.index_planes * size
        unpool_work = UnpoolWork(
            x_shape=plan.x_shape,
            output_shape=tuple(self.shape),
            batch=plan.batch,
            channels=plan.channels,
            count=math.prod(plan.sizes),
            size=size,
            counted=plan.index_planes,
            channels_last=plan.channels_last and plan.channels > 1,
            physical=plan.index_layout == "NHWC",
            rows=next((size for size in plan.sizes if size > 1), 1),
        )
        work = math.prod(plan.x_shape) * (plain.itemsize + 8)
        work += math.prod(plan.output_shape) * plain.itemsize
        self.threads, by_default = threads_of_calls(plan, work)
        kernels = builds.builds()[self.build]
        self.unpooling = kernels.Unpooling(unpool_work, plain, self.threads, by_default)
        self.run = _refuse if self.block else self.unpooling.run
