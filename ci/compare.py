"""Compare random configurations exactly with the slow twin, fastpool/_reference.py.

    python ci/compare.py --count 1000000 --seed 1 --minutes 60

Runs the installed package until so many configurations were compared or so much time is over, and
prints how many of each sort there were. It stops at the first difference, with status 1 and the
command that shows it again.
"""

import argparse
import random
import sys
import time
from collections import Counter

import configurations


def drawn(seed, number):
    """The case of that number, whatever was drawn before it."""
    return configurations.draw(configurations.Choices(random.Random(f"{seed}/{number}").randint))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100_000, help="configurations to compare")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--case", type=int, help="only the case of this number")
    parser.add_argument("--paths", action="store_true", help="count every way through the kernels")
    options = parser.parse_args()
    counts, start = Counter(), time.monotonic()
    number = 0 if options.case is None else options.case
    while True:
        case = drawn(options.seed, number)
        try:
            configurations.compare(case, counts)
        except Exception as error:
            print(f"python ci/compare.py --seed {options.seed} --case {number}\n{case}\n{error!r}")
            return 1
        number += 1
        seconds = time.monotonic() - start
        done = configurations.configurations(counts) >= options.count
        if done or options.case is not None or seconds > 60 * options.minutes:
            break
    print(*configurations.report(counts, options.paths), sep="\n")
    total = configurations.configurations(counts)
    print(f"{total} configurations of {number} cases in {seconds:.0f} s: no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
