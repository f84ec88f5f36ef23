"""Fuzz for ci/fuzz.sh: atheris supplies bytes, tests/configurations/ makes cases and compares.

    fuzz.py MINUTES CORPUS [libFuzzer's options, or files to run]

At the end it prints the executions, the configurations and the paths through the kernels.
"""

import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["fastpool"]):
    import fastpool  # noqa: F401

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import cases  # noqa: E402
import configurations  # noqa: E402

LENGTH = 300  # bytes of a case: one per choice, more for numbers above 255
# Python's modules are traced: means in Python integers take 14 times as long as in a plain build.
configurations.arrays.SECONDS *= 2

minutes, corpus = float(sys.argv.pop(1)), Path(sys.argv[1])
deadline = time.monotonic() + 60 * minutes
counts = Counter()
executions = 0


def run(data):
    global executions
    provider = atheris.FuzzedDataProvider(data)
    choices = configurations.Choices(provider.ConsumeIntInRange)
    build = choices.pick(cases.BUILDS)
    threads = choices.pick([1, 1, 2, 3])
    case = configurations.draw(choices)
    if choices.once_in(8):
        case = configurations.spoiled(case, choices)
    try:
        configurations.compare(case, counts, [build], [threads])
    except BaseException:
        print(f"{build}, {threads} threads: {case}", flush=True)
        raise
    executions += 1
    if time.monotonic() > deadline:
        print(f"{executions} executions, {configurations.configurations(counts)} configurations")
        print(*configurations.report(counts, every_path=True), sep="\n", flush=True)
        os._exit(0)  # libFuzzer takes any other exit for a crash


if corpus.is_dir() and not any(corpus.iterdir()):
    chance = random.Random(0)  # random seeds reach more kernels than an empty corpus
    for number in range(200):
        (corpus / f"noise-{number}").write_bytes(chance.randbytes(LENGTH))
if any(map(os.path.isfile, sys.argv[2:])):  # libFuzzer runs files if it gets no folder
    del sys.argv[1]
atheris.Setup([*sys.argv, f"-max_len={LENGTH}", "-len_control=0"], run)
atheris.Fuzz()
