"""Call fastpool with attributes far from its arrays, and watch time and memory of each call.

    python ci/proportion.py --draws 100000 --seed 1

Stops at the first call that passes its limits (docs/promises.md), with status 1 and the call.
Needs Linux, which reports the peak of a process's memory. tests/configurations/far.py draws them.
"""

import argparse
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # configurations/


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from configurations import Choices, far

    far.add_front_ends()
    start = time.monotonic()
    try:
        choices = Choices(random.Random(options.seed).randint)
        measured = far.measure(choices, options.draws, max(8, options.draws // 1000))
    except AssertionError as error:
        print(error)
        return 1
    counts = ", ".join(f"{name} {n}" for name, n in measured.counts.items())
    print(f"{options.draws} calls in {time.monotonic() - start:.0f} s: {counts}")
    for name, (share, case) in measured.worst.items():
        print(f"most {name}: {share:.2f} of what is allowed, {case}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
