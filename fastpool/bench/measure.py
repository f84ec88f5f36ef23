"""Run the comparison: check the answers of every library, then time them in turns."""

import dataclasses
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from . import OWN, answers, worker
from .workloads import make_arrays

PATIENCE = 120  # seconds to wait for a library on a workload
FAR = 10  # if a way takes this many times as long as the best peer, it is timed once
# Seconds between turns on several threads, because pools of idle threads spin for a while.
PAUSE = 0.03
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Library:
    """The process of a library. If it dies, it is started again."""

    def __init__(self, name, threads, python):
        self.name = name
        self.command = [python, "-m", worker.__name__, name, str(threads)]
        self.environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
        self.environment["CI"] = "true"  # then OpenVINO sends no telemetry from a forked process
        if sys.flags.safe_path:
            self.environment["PYTHONSAFEPATH"] = "1"  # the same fastpool as here
        self.process = None
        self.complaints = None

    def start(self):
        """Start the process; return its first line: {"version": ...} or {"missing": ...}."""
        self.complaints = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            env=self.environment,
            text=True,
            start_new_session=True,
        )
        return self._reply() or {"missing": self.last_words()}

    def last_words(self):
        """Return the last line that the process wrote to standard error."""
        self.complaints.seek(0)
        return (self.complaints.read().strip().splitlines() or ["no answer"])[-1]

    def ask(self, request):
        """Return the reply, or None if the process died or took too long and was ended."""
        if self.process.poll() is not None:
            self.close()
            self.start()
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return None
        return self._reply()

    def _reply(self):
        impatience = threading.Timer(PATIENCE, self._kill)
        impatience.start()
        line = self.process.stdout.readline()
        impatience.cancel()
        return json.loads(line) if line else None

    def _kill(self):
        """End the process and its children: a child may hold the pipe that is read here."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self):
        self._kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.complaints.close()


def start(names, threads, pythons, say):
    """Start the libraries; return those that can be used, and their versions."""
    libraries, versions = [], {}
    for name in names:
        library = Library(name, threads, pythons.get(name, sys.executable))
        first = library.start()
        if "missing" in first:
            say(f"{name}: left out ({first['missing']})")
            library.close()
        else:
            libraries.append(library)
            versions[name] = first["version"]
    return libraries, versions


def measure(workload, libraries, threads, rounds, seconds):
    """Return the results of one workload: one dict for each way of each library.

    Only a way whose answer is exact is timed: once per round, for about `seconds`, in an order that
    changes from round to round. Its time is the median over the rounds. A way that is far from the
    best in the first round is not timed again.
    """
    results = []
    with tempfile.TemporaryDirectory(prefix="fastpool-") as folder:
        arrays = make_arrays(workload)
        worker.save(Path(folder), "input", arrays)
        worker.save(Path(folder), "answer", answers.expected(workload, arrays))
        request = {"prepare": dataclasses.asdict(workload), "folder": folder}
        for library in libraries:
            found = library.ask(request)
            if found is None:
                found = {library.name: {"status": "died", "message": library.last_words()}}
            for way, outcome in found.items():
                results.append({"library": library.name, "way": way, **outcome, "rounds": []})

    processes = {library.name: library for library in libraries}
    timed = [result for result in results if result["status"] == "exact"]
    for number in range(rounds):
        if number:
            timed = _near(timed)
        first = number % max(1, len(timed))
        for result in timed[first:] + timed[:first]:
            request = {"time": result["way"], "seconds": seconds}
            spent = processes[result["library"]].ask(request)
            if spent is None:
                message = processes[result["library"]].last_words()
                result |= {"status": "died", "message": message}
            else:
                result["rounds"].append(round(spent * 1e6, 3))
            if threads > 1:
                time.sleep(PAUSE)
    for result in results:
        exact = result["status"] == "exact"
        result["microseconds"] = statistics.median(result["rounds"]) if exact else None
        result |= {"workload": workload.name, "group": workload.group, "threads": threads}
    return results


def _near(timed):
    """Return the ways that need another turn."""
    timed = [result for result in timed if result["status"] == "exact"]
    peers = [result["rounds"][0] for result in timed if result["library"] not in OWN]
    limit = FAR * min(peers, default=0)
    return [r for r in timed if r["library"] in OWN or r["rounds"][0] <= limit]


def compare(workloads, names, thread_counts, rounds, seconds, pythons, say):
    """Compare all workloads; return (results, versions). `say` gets messages on progress."""
    results, versions = [], {}
    for threads in thread_counts:
        with ExitStack() as stack:
            say(f"starting {', '.join(names)}")
            libraries, found = start(names, threads, pythons, say)
            for library in libraries:
                stack.callback(library.close)
            versions |= found
            for number, workload in enumerate(workloads, 1):
                say(f"{number}/{len(workloads)} {workload.name}, threads: {threads}")
                results += measure(workload, libraries, threads, rounds, seconds)
    return results, versions
