"""What ci/fuzz.sh runs: atheris feeds bytes, configurations.py makes a case of them and compares.

One execution is one case in every build. At the end, and for every crash, the executions, the
configurations and the ways through the kernels are printed.
"""

import atexit
import sys
from collections import Counter

import atheris

with atheris.instrument_imports(include=["fastpool"]):
    import fastpool  # noqa: F401

import configurations

counts = Counter()
executions = 0


def run(data):
    global executions
    provider = atheris.FuzzedDataProvider(data)
    choices = configurations.Choices(provider.ConsumeIntInRange)
    case = configurations.draw(choices)
    if choices.once_in(8):
        case = configurations.spoiled(case, choices)
    executions += 1
    try:
        configurations.compare(case, counts)
    except BaseException:
        print(case)
        raise


def summary():
    print(f"{executions} executions, {configurations.configurations(counts)} configurations")
    print(*configurations.report(counts, every_path=True), sep="\n", flush=True)


atexit.register(summary)
atheris.Setup(sys.argv, run)
atheris.Fuzz()
