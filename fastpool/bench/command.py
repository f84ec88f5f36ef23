"""`python -m fastpool bench`: its options, and what they start."""

import argparse
import importlib.util
import sys
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from .worker import LIBRARIES, OWN
from .workloads import QUICK, WORKLOADS

PEERS = [name for name in LIBRARIES if name not in OWN]
# Turns per way and workload, and about how many seconds each takes.
ROUNDS, SECONDS = 7, 0.03
QUICK_ROUNDS, QUICK_SECONDS = 3, 0.01


def add_parser(commands):
    """Add the command to those of `python -m fastpool`."""
    bench = commands.add_parser(
        "bench",
        help="compare the speed with other libraries, every answer checked first",
        description="Compare the time of max pooling and unpooling with the libraries that are "
        "installed. Each runs in a process of its own and must give the exact answer; what differs "
        "is reported and not timed. Exits with 1 if fastpool differs.",
    )
    bench.set_defaults(run=partial(_compare, bench.error))
    many = {"action": "append", "default": []}
    bench.add_argument("--quick", action="store_true", help="few workloads, in about a minute")
    bench.add_argument("--workload", metavar="GLOB", **many, help="only these (repeatable)")
    peer = f"only these (repeatable): {', '.join(PEERS)}"
    bench.add_argument("--peer", metavar="NAME", **many, help=peer)
    threads = "number of threads [1] (repeatable)"
    bench.add_argument("--threads", metavar="N", type=_count, **many, help=threads)
    rounds = f"turns of each library [{ROUNDS}, quick {QUICK_ROUNDS}]"
    bench.add_argument("--rounds", metavar="N", type=_count, help=rounds)
    python = "another interpreter for a peer; it needs fastpool too (repeatable)"
    bench.add_argument("--python", metavar="NAME=PATH", type=_interpreter, **many, help=python)
    _add_files(bench, default=None)

    parts = bench.add_subparsers(metavar="[sweep]")
    sweep = parts.add_parser(
        "sweep",
        help="fastpool alone: the time of an output, over windows from 2 to 129",
        description="The time of an output over windows from 2 to 129, at several strides and "
        "dilations, in both layouts, with and without indices. A few minutes.",
    )
    sweep.set_defaults(run=partial(_sweep, sweep.error))
    quick = {"action": "store_true", "default": argparse.SUPPRESS}
    sweep.add_argument("--quick", **quick, help="fewer windows")
    _add_files(sweep, default=argparse.SUPPRESS)  # what was said before "sweep" stays


def _add_files(parser, default):
    files = {"metavar": "FILE", "type": Path, "default": default}
    parser.add_argument("--json", **files, help="write what was measured")
    parser.add_argument("--plot", **files, help="draw it (.svg or .png); needs matplotlib")


def _count(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text!r}")
    return int(text)


def _interpreter(text):
    name, _, path = text.partition("=")
    if name not in PEERS or not path:
        raise argparse.ArgumentTypeError(
            f"expected NAME=PATH with a name of {', '.join(PEERS)}, got {text!r}"
        )
    return name, path


def _check_files(options, error):
    """Find out before hours of measuring whether the results can be written."""
    for name in ("json", "plot"):
        path = getattr(options, name)
        if path and not path.absolute().parent.is_dir():
            error(f"--{name}: there is no folder {str(path.parent)!r}")
    if options.plot:
        if options.plot.suffix not in (".svg", ".png"):
            error(f"--plot: expected a name that ends in .svg or .png, got {str(options.plot)!r}")
        try:
            import matplotlib  # noqa: F401
        except ModuleNotFoundError as missing:
            error(f"--plot needs the package {missing.name!r}: pip install 'fastpool[bench]'")


def _say(message):
    print(message, file=sys.stderr, flush=True)


def _chosen(options, error):
    """The workloads that the options name."""
    chosen = [w for w in WORKLOADS if not options.quick or options.workload or w.name in QUICK]
    for pattern in options.workload:
        if not any(fnmatchcase(w.name, pattern) for w in WORKLOADS):
            error(f"--workload: nothing matches {pattern!r}; names are like {QUICK[0]!r}")
    if options.workload:
        chosen = [w for w in chosen if any(fnmatchcase(w.name, p) for p in options.workload)]
    if importlib.util.find_spec("ml_dtypes") is None:
        _say("no ml_dtypes: workloads of bfloat16 are left out")
        chosen = [w for w in chosen if w.dtype != "bfloat16"]
    return chosen


def _compare(error, options):
    _check_files(options, error)
    for name in options.peer:
        if name not in PEERS:
            error(f"--peer: expected one of {', '.join(PEERS)}, got {name!r}")
    chosen = _chosen(options, error)
    from . import measure, report

    settings = {
        "thread_counts": options.threads or [1],
        "rounds": options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS),
        "seconds": QUICK_SECONDS if options.quick else SECONDS,
    }
    names = [
        "fastpool",
        "limit",
        *(name for name in PEERS if name in options.peer or not options.peer),
    ]
    results, versions = measure.compare(
        chosen, names, **settings, pythons=dict(options.python), say=_say
    )
    print(report.text(results))
    if options.json:
        report.write_json(options.json, versions=versions, settings=settings, results=results)
    if options.plot:
        from . import plots

        plots.plot_comparison(results, options.plot)
    own = [result["status"] for result in results if result["library"] == "fastpool"]
    return 0 if own and set(own) == {"exact"} else 1


def _sweep(error, options):
    _check_files(options, error)
    for name in ("workload", "peer", "threads", "rounds", "python"):
        if getattr(options, name):
            error(f"--{name} has no meaning for sweep")
    from . import report, sweep

    results = sweep.sweep(sweep.QUICK_WINDOWS if options.quick else sweep.WINDOWS, _say)
    print(*sweep.check(results), sep="\n")
    if options.json:
        report.write_json(options.json, results=results)
    if options.plot:
        from . import plots

        plots.plot_sweep(results, options.plot)
    return 0
