"""Compare random cases exactly with the slow twin, fastpool/_reference.

    python ci/compare.py --count 1000000 --seed 1 --minutes 60
    python ci/compare.py blocks pyramids borders filters --count 300000

Runs the installed package until the count or the time is reached, and prints how many
configurations of each sort were compared. It stops at the first difference, with status 1 and the
command that reproduces it. The cases run in a child process, so that a case that ends the process
is named too.
"""

import argparse
import multiprocessing
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # configurations/


def drawn(options, number):
    """Return the case of that number; it does not depend on earlier ones."""
    import configurations  # imports NumPy and fastpool, which the parent process does not need

    choices = configurations.Choices(random.Random(f"{options.seed}/{number}").randint)
    return configurations.draw(choices, options.sorts or configurations.SORTS)


def command(options, number):
    where = " --in-process" if options.in_process else ""
    sorts = "".join(f" {sort}" for sort in options.sorts)
    return f"python ci/compare.py{sorts} --seed {options.seed} --case {number}{where}"


def compare(options, current=None):
    """Compare the cases; exit with status 1 at a difference. `current` gets their numbers."""
    import configurations

    counts, start = Counter(), time.monotonic()
    number = 0 if options.case is None else options.case
    while True:
        if current is not None:
            current.value = number
        case = drawn(options, number)
        try:
            configurations.compare(case, counts)
        except Exception as error:
            print(f"{command(options, number)}\n{case}\n{error!r}")
            sys.exit(1)
        number += 1
        seconds = time.monotonic() - start
        done = configurations.configurations(counts) >= options.count
        if done or options.case is not None or seconds > 60 * options.minutes:
            break
    print(*configurations.report(counts, options.paths), sep="\n")
    total = configurations.configurations(counts)
    cases = 1 if options.case is not None else number
    print(f"{total} configurations of {cases} cases in {seconds:.0f} s: no difference")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "sorts", nargs="*", metavar="SORT", help="only these, of `configurations.SORTS`"
    )
    parser.add_argument("--count", type=int, default=100_000, help="configurations to compare")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--case", type=int, help="only the case of this number, in this process")
    parser.add_argument("--paths", action="store_true", help="count every way through the kernels")
    parser.add_argument(
        "--in-process",
        action="store_true",
        help="in this process, each call may take 20 times as long (for valgrind)",
    )
    options = parser.parse_args()
    if options.in_process:
        import configurations

        configurations.arrays.SECONDS *= 20
    if options.in_process or options.case is not None:
        compare(options)
        return 0
    context = multiprocessing.get_context("spawn")
    current = context.Value("q", 0, lock=False)
    child = context.Process(target=compare, args=(options, current))
    child.start()
    child.join()
    if child.exitcode not in (0, 1):
        print(f"{command(options, current.value)}\n{drawn(options, current.value)}")
        print(f"the process ended with status {child.exitcode} in this case, or after an earlier")
        print("one had written where it should not; a build with AddressSanitizer tells which")
    return min(abs(child.exitcode), 1)


if __name__ == "__main__":
    sys.exit(main())
