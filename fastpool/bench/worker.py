"""Run one library in a separate process: `python -m fastpool.bench.worker LIBRARY THREADS`.

The process answers requests, a line of JSON each, until its input ends. Its first line gives the
version of the library.

    {"prepare": workload, "folder": ...}   read arrays and right answers; reply how each way did
    {"time": way, "seconds": ...}          reply with the median time of a call
"""

import gc
import importlib
import json
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from . import LIBRARIES, answers, means, peers
from .workloads import Workload

SAMPLE = 1e-4  # seconds; of shorter calls, several are timed together


def save(folder, name, arrays):
    """Write arrays for `load`."""
    for number, array in enumerate(arrays):
        np.save(folder / f"{name}{number}.npy", array)


def load(folder, name, dtype):
    """Return arrays that `save` wrote; `dtype` is needed because files do not name bfloat16."""
    for path in sorted(folder.glob(f"{name}?.npy")):
        stored = np.load(path)
        array = peers.fresh(stored.shape, dtype if stored.dtype.kind == "V" else stored.dtype)
        array[...] = stored.view(array.dtype)
        yield array


def seconds_per_call(call, calls, clock):
    start = clock()
    for _ in range(calls):
        call()
    return (clock() - start) / calls


class Worker:
    def __init__(self, peer, threads):
        self.peer = peer
        # Of one thread the processor's time counts, which other programs change little.
        self.clock = time.process_time if threads == 1 else time.perf_counter
        self.arrays = []
        self.prepared = {}  # way -> (call, results)

    def prepare(self, workload, folder):
        """Return way -> {"status", "message"} for the ways that the library has."""
        self.prepared, self.arrays = {}, []
        gc.collect()
        workload = Workload(
            **{key: tuple(v) if isinstance(v, list) else v for key, v in workload.items()}
        )
        if workload.dtype == "bfloat16":
            import ml_dtypes  # noqa: F401  (gives NumPy the type)
        dtype = np.dtype(workload.dtype)
        want = [*load(Path(folder), "answer", dtype)]
        # Keep the arrays alive, as well as the results: many libraries hold only their addresses.
        self.arrays = [*load(Path(folder), "input", dtype)]
        if workload.row_gap and self.peer.views:
            self.arrays = [peers.with_gaps(array, workload) for array in self.arrays]
        allowed = (0, 0) if self.peer.exact else means.allowed(workload, self.arrays[0])
        found = {}
        for way, method in self.peer.ways[workload.op].items():
            try:
                prepared = method(self.peer, workload, *self.arrays)
                if prepared is None:
                    continue
                call, results = prepared
                call()
                wrong = results and answers.difference(results(), want, allowed)
            except Exception as refusal:  # a library may raise anything
                reason = " ".join(str(refusal).split())[:200]
                found[way] = {"status": "refused", "message": f"{type(refusal).__name__}: {reason}"}
                continue
            found[way] = {"status": "differs" if wrong else "exact", "message": wrong or ""}
            if not wrong:
                self.prepared[way] = prepared
        return found

    def time(self, way, seconds):
        """Return the median time of a call over samples that take about `seconds`."""
        call, _ = self.prepared[way]
        calls = max(1, int(SAMPLE / seconds_per_call(call, 1, self.clock)))
        gc.disable()
        samples, end = [], self.clock() + seconds
        while not samples or self.clock() < end:
            samples.append(seconds_per_call(call, calls, self.clock))
        gc.enable()
        return statistics.median(samples)


def main(library, threads):
    # Libraries may print: send that to standard error.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def reply(message):
        print(json.dumps(message), file=replies)

    if hasattr(os, "sched_setaffinity"):
        # Limit the processors too, for libraries whose threads no setting limits.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    module, name = LIBRARIES[library]
    try:
        peer = getattr(importlib.import_module(f".{module}", __package__), name)(threads)
    except ImportError as missing:
        return reply({"missing": str(missing)})
    reply({"version": peer.version})
    worker = Worker(peer, threads)
    for line in sys.stdin:
        request = json.loads(line)
        if "prepare" in request:
            reply(worker.prepare(request["prepare"], request["folder"]))
        else:
            reply(worker.time(request["time"], request["seconds"]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
