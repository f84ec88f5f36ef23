"""Random sequences of calls, and their comparison with the slow twin: no call changes another.

Calls find their plans in a cache by their arguments. The sequences try to confuse it:

- lists are reused, and changed between calls and during them, by threads and by their elements;
- objects change their value from call to call;
- equal arguments come in several types;
- plans are pickled, builds change, outputs are reused.

Every call must give what the slow twin gives, unless its arguments changed during the call. Calls
with fresh arguments at the end must give it too.
"""

import pickle
import sys
import threading
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

import cases
import fastpool
from fastpool import _reference
from fastpool._running import builds as running

from .arrays import in_time, same
from .changes import Whole

ROUNDS = 48  # of calls with a list that another thread changes: one batch size each


@dataclass(frozen=True)
class Question:
    """The attributes of one call, except the layout, which the whole sequence shares."""

    kernel_shape: tuple
    strides: tuple
    pads: tuple
    return_indices: bool
    index_dtype: str
    nan: str


@dataclass(frozen=True)
class Step:
    action: str
    question: int
    other: int
    spelling: str
    reused: bool  # the output arrays
    build: int


@dataclass(frozen=True)
class Sequence:
    shape: tuple
    layout: str
    dtype: str
    kind: str
    seed: int
    questions: tuple
    steps: tuple


# How the numbers of an argument are written, and whether that is legal.
SPELLINGS = {
    "tuple": (tuple, True),
    "list": (list, True),
    "kept list": (None, True),
    "kept array": (None, True),
    "array": (np.array, True),
    "NumPy's ints": (lambda values: [np.int64(value) for value in values], True),
    "bytes": (lambda values: tuple(map(np.uint8, values)), True),
    "ints of another type": (lambda values: tuple(map(Whole, values)), True),
    "floats": (lambda values: list(map(float, values)), False),
    "bools": (lambda values: tuple(map(bool, values)), False),
}


class Floating(float):
    """A float whose value as an int changes."""

    def __index__(self):
        return self.now


class Numbering(np.int64):
    """One of NumPy's ints whose value changes."""

    def __index__(self):
        return self.now


class Posing:
    """An object that says that it is an int, as mocks do, and whose value changes."""

    __class__ = property(lambda self: int)

    def __index__(self):
        return self.now


class Rewriting(float):
    """A float that, asked for its value as an int, changes the list that it is in."""

    def __index__(self):
        self.place[:] = self.values
        return self.now


def draw_question(choices):
    return Question(
        kernel_shape=tuple(choices.integer(1, 4) for _ in "HW"),
        strides=tuple(choices.pick([1, 2, 3, 1]) for _ in "HW"),
        pads=tuple(choices.pick([0, 0, 1, 2]) for _ in "HWHW"),
        return_indices=choices.once_in(2),
        index_dtype=choices.pick(["int64", "int32"]),
        nan=choices.pick(["propagate", "ignore"]),
    )


def draw_sequence(choices):
    layout = choices.pick(["NCHW", "NHWC"])
    # Shapes are as good as never those of an earlier sequence, whose plans would be found again.
    sizes = [choices.integer(4, 11) for _ in "HW"]
    batch, channels = choices.integer(1, 40), choices.integer(1, 8)
    questions = [draw_question(choices) for _ in range(choices.integer(2, 3))]
    if choices.once_in(2):
        questions[1] = replace(questions[0], kernel_shape=questions[1].kernel_shape)
    actions = [*["call"] * 6, "unpool", "plan", "threads", "object", "inside", "type"]
    race = choices.once_in(8)
    steps = [
        Step(
            action="race" if race and i == 0 else choices.pick(actions),
            question=choices.integer(0, len(questions) - 1),
            other=choices.integer(0, len(questions) - 1),
            spelling=choices.pick(list(SPELLINGS)),
            reused=choices.once_in(3),
            build=choices.integer(0, len(cases.BUILDS) - 1),
        )
        for i in range(choices.integer(1, 10))
    ]
    return Sequence(
        shape=cases.array_shape(layout, batch, channels, sizes),
        layout=layout,
        dtype=choices.pick(cases.DTYPE_NAMES),
        kind=choices.pick(cases.VALUE_KINDS),
        seed=choices.integer(0, 2**16),
        questions=tuple(questions),
        steps=tuple(steps),
    )


def compare_sequence(case, counts, builds):
    """Raise at the first wrong result, at one that changed later, and at a changed input."""
    calls = Calls(case, counts)
    before = calls.x.tobytes()
    for i, step in enumerate(case.steps):
        calls.what = f"step {i}, {step.action}"
        with running.using(builds[step.build % len(builds)]):
            getattr(calls, step.action)(
                step, *(case.questions[n] for n in (step.question, step.other))
            )
    with running.using(builds[0]):
        calls.finish()
    assert calls.x.tobytes() == before, "the input was changed"


class Calls:
    """The calls of one sequence: what they share, and what they have returned so far."""

    def __init__(self, case, counts):
        self.case, self.counts = case, counts
        self.x = cases.values(case.shape, case.dtype, case.kind, case.seed)
        self.kept = {}  # lists, arrays and outputs that calls reuse
        self.given = []  # (array, its bytes): nobody writes them again
        self.asked = {}
        self.expected = cache(self._expected)

    # ------------------------------------------------------------------------------ one call

    def _expected(self, question):
        return _reference.max_pool(self.x, **{**self.attributes(question), "return_indices": True})

    def attributes(self, question, **changed):
        return {**vars(question), "layout": self.case.layout, **changed}

    def check(self, question, results, batch=None):
        """Compare with the twin; remember the results, which later calls are not to write."""
        self.asked[question] = None
        results = results if isinstance(results, tuple) else (results,)
        assert len(results) == 1 + question.return_indices, f"{self.what}: {len(results)} results"
        for got, expected in zip(results, self.expected(question), strict=False):
            same(got, expected[:batch], f"{self.what}, {question}")
            if len(self.given) < 100:
                self.given.append((got, got.tobytes()))
        self.counts["case", "sequences"] += 1
        self.counts["arrays", "plain"] += 1

    def ask(self, question, x=None, **changed):
        x = self.x if x is None else x
        with in_time(5 * x.size, self.what):
            return fastpool.max_pool(x, **self.attributes(question, **changed))

    def spelled(self, name, values, spelling):
        kept = self.kept.get((spelling, name))
        if spelling == "kept array":
            kept = self.kept.setdefault((spelling, name, len(values)), np.empty(len(values), int))
            kept[:] = values
        elif spelling == "kept list":
            kept = self.kept.setdefault((spelling, name), [])
            kept[:] = values
        else:
            kept = SPELLINGS[spelling][0](values)
        return kept

    def written(self, question, spelling):
        names = ("kernel_shape", "strides", "pads")
        return {name: self.spelled(name, getattr(question, name), spelling) for name in names}

    def outputs(self, question):
        y, z = self.expected(question)
        key = "out", y.shape, z.dtype.name
        kept = self.kept.setdefault(key, (np.empty_like(y), np.empty_like(z)))
        return dict(zip(("out", "out_indices"), kept[: 1 + question.return_indices], strict=False))

    # ----------------------------------------------------------------------- kinds of steps

    def call(self, step, question, other):
        legal = SPELLINGS[step.spelling][1]
        reused = self.outputs(question) if step.reused and legal else {}
        try:
            results = self.ask(question, **self.written(question, step.spelling), **reused)
        except TypeError:
            if legal:
                raise
            return
        assert legal, f"{self.what}: {step.spelling} are no attributes"
        if reused:
            results = tuple(array.copy() for array in reused.values())
        self.check(question, results)

    def unpool(self, step, question, other):
        if not SPELLINGS[step.spelling][1]:
            return
        question = replace(question, return_indices=True)
        y, z = self.expected(question)
        if (z < 0).any():  # of windows in the padding alone
            return
        written = self.written(question, step.spelling)
        written["output_shape"] = self.spelled("output_shape", self.x.shape, step.spelling)
        written["layout"] = self.case.layout
        with in_time(5 * self.x.size, self.what):
            results = fastpool.max_unpool(y, z, **written)
        plain = {**self.attributes(question), "output_shape": self.x.shape}
        for name in ("return_indices", "index_dtype", "nan"):
            del plain[name]
        same(results, _reference.max_unpool(y, z, **plain), self.what)
        self.counts["case", "sequences"] += 1

    def plan(self, step, question, other):
        plan = fastpool.plan_max_pool(self.x.shape, self.x.dtype, **self.attributes(question))
        if step.reused:
            plan(self.x)
        self.check(question, pickle.loads(pickle.dumps(plan))(self.x))
        self.check(question, plan(self.x))

    def threads(self, step, question, other):
        """Four threads at once, with a plan that they share, and with one call each."""
        plan = fastpool.plan_max_pool(self.x.shape, self.x.dtype, **self.attributes(question))
        results = []

        def work(_):
            results.append((question, plan(self.x)))
            results.append((other, self.ask(other, **self.written(other, "list"))))

        cases.in_threads(work, range(4))
        assert len(results) == 2 * 4, f"{self.what}: a thread has failed"
        for asked, result in results:
            self.check(asked, result)

    def object(self, step, question, other):
        """The same object with one value and then another."""
        kind = (Floating, Numbering, Posing)[step.build % 3]
        changing = kind(question.kernel_shape[0]) if kind is not Posing else Posing()
        for now in (*question.kernel_shape, *other.kernel_shape):
            changing.now = now
            asked = replace(question, kernel_shape=(now, now))
            written = changing if step.reused else [changing, changing]
            self.check(asked, self.ask(asked, kernel_shape=written))

    def type(self, step, question, other):
        """Give a class as index_dtype whose dtype changes between calls."""

        class Changing:
            pass

        for name in ("int64", "int32", "int64"):
            Changing.dtype = np.dtype(name)
            asked = replace(question, return_indices=True, index_dtype=name)
            self.check(asked, self.ask(asked, index_dtype=Changing))

    def inside(self, step, question, other):
        """A list that an element of it changes when it is looked at."""
        element = Rewriting(question.kernel_shape[0])
        element.now = question.kernel_shape[0]
        element.values = other.kernel_shape
        element.place = [element, question.kernel_shape[1]]
        self.ask(question, kernel_shape=element.place)
        for kernel_shape in (question.kernel_shape, other.kernel_shape):
            self.asked[replace(question, kernel_shape=kernel_shape)] = None

    def race(self, step, question, other):
        """A list that another thread changes all the time."""
        name = "kernel_shape" if step.reused else "strides"
        ends = [getattr(asked, name) for asked in (question, other)]
        shared, over = list(ends[0]), threading.Event()

        def change():
            while not over.is_set():  # threads take turns here
                shared[:] = ends[list(ends[0]) == shared]

        batches = np.resize(np.arange(1, len(self.x) + 1), ROUNDS)
        interval = sys.getswitchinterval()
        thread = threading.Thread(target=change)
        sys.setswitchinterval(1e-6)
        thread.start()
        try:
            for batch in batches:
                # Any of the values that the list had may come of it.
                self.ask(question, self.x[:batch], **{name: shared})
        finally:
            over.set()
            thread.join()
            sys.setswitchinterval(interval)
        for batch in batches[: len(self.x)]:
            for end in ends:
                asked = replace(question, **{name: end})
                self.check(asked, self.ask(asked, self.x[:batch], **{name: list(end)}), batch)

    def finish(self):
        """Fresh arguments give what they say, and results of earlier calls are as they were."""
        self.what = "with fresh arguments"
        for question in [*self.asked, *self.case.questions]:
            for spelling in ("tuple", "list"):
                self.check(question, self.ask(question, **self.written(question, spelling)))
        for name, values in (("kernel_shape", (2, 2)), ("strides", (1, 1))):
            asked = replace(self.case.questions[0], **{name: values})
            self.check(asked, self.ask(asked, **{name: values[0]}))
        for array, content in self.given:
            assert array.tobytes() == content, "a result was written by a later call"
