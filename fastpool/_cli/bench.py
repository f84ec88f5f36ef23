"""`fastpool bench`: options, tables, and the measurements that they start."""

import importlib.util
from fnmatch import fnmatchcase

import click
from click.core import ParameterSource

from ..bench import LIBRARIES, OWN
from ..bench.workloads import QUICK, WORKLOADS
from ..files import apart
from .options import Picture, Written, given, with_options
from .program import FAILED, Command, Group, wrong_input
from .screen import show, table

PEERS = [name for name in LIBRARIES if name not in OWN]
# Turns per way and workload, and seconds per turn.
ROUNDS, SECONDS = 7, 0.03
QUICK_ROUNDS, QUICK_SECONDS = 3, 0.01

LEGEND = (
    "ratio: the best peer's time / fastpool's; limit x: fastpool's time / time to read the input "
    "once and write the output once; geometric means per group, and the worst."
)


DISTRIBUTION_LEGEND = (
    "ratio: the best peer's time / fastpool's. limit x: fastpool's time / time to read the input "
    "once and write the output once. Both are geometric means in the first table. 5 % and 1 %: "
    "that share of the ratios is lower. 95 % and 99 %: that share of limit x is lower."
)
WORST = 20


class Interpreter(click.ParamType):
    """The parameter type NAME=PATH; its value is a pair."""

    name = "NAME=PATH"

    def convert(self, value, param, ctx):
        name, _, path = value.partition("=")
        if name not in PEERS or not path:
            self.fail(
                f"expected NAME=PATH with one of {', '.join(PEERS)}, got {value!r}", param, ctx
            )
        return name, path


QUICKLY = click.option("--quick", is_flag=True, help="Measure less, in about a minute.")
FILES = [
    click.option("--json", metavar="FILE", type=Written(), help="Write the measurements as JSON."),
    click.option(
        "--plot",
        metavar="FILE",
        type=Picture(".svg", ".png"),
        help="Draw the measurements (.svg or .png).",
    ),
]


def _check_threads(context, parameter, counts):
    """Refuse counts that this build of fastpool would not use."""
    from .._running import builds

    if max(counts) > 1 and not builds.active().OPENMP:
        raise click.BadParameter("this fastpool was built without OpenMP: only 1")
    return counts


HOW = [
    click.option(
        *("--peer", "peers"),
        metavar="NAME",
        type=click.Choice(PEERS),
        multiple=True,
        help=f"Only these (repeatable): {', '.join(PEERS)}.",
    ),
    click.option(
        *("--threads", "thread_counts"),
        metavar="N",
        type=click.IntRange(min=1),
        multiple=True,
        default=[1],
        help="Number of threads (repeatable). [1]",
        callback=_check_threads,
    ),
    click.option(
        "--rounds",
        metavar="N",
        type=click.IntRange(min=1),
        help=f"Turns of each library. [{ROUNDS}; random or quick: {QUICK_ROUNDS}]",
    ),
    click.option(
        *("--python", "pythons"),
        type=Interpreter(),
        multiple=True,
        help="Another interpreter for a peer; it needs fastpool too (repeatable).",
    ),
]


@click.group(
    invoke_without_command=True,
    subcommand_metavar="[random | sweep]",
    cls=Group,
    examples=[
        "fastpool bench --quick",
        "fastpool bench --json speed.json --plot speed.svg    # all, an hour",
        "fastpool bench --workload 'tiny/*' --peer numpy --threads 1 --threads 2",
        "fastpool bench --op avg --workload '*global*'",
        "fastpool bench --readme    # in a checkout, for its README.md",
        "fastpool bench random --seed 7 --count 100",
        "fastpool bench sweep --plot sweep.svg",
    ],
)
@QUICKLY
@click.option(
    *("--op", "ops"),
    metavar="NAME",
    type=click.Choice(["max", "avg"]),
    multiple=True,
    help="Only maxima (and unpooling), or only averages: max, avg.",
)
@click.option(
    *("--workload", "patterns"),
    metavar="GLOB",
    multiple=True,
    help="Only these names or groups (repeatable).",
)
@with_options(HOW)
@with_options(FILES)
@click.option(
    "--readme", is_flag=True, help="Only measure and write the table of ./README.md, in 3 minutes."
)
@click.pass_context
def command(
    context, quick, ops, patterns, peers, thread_counts, rounds, pythons, json, plot, readme
):
    """Compare the speed with other libraries.

    All installed libraries pool and unpool the same arrays, each in its own process. Their maxima
    must be exact, and their means right within the rounding of their arithmetic; fastpool's means
    must have the bits of its rule. Calls whose answers differ are reported and not timed. Exits
    with 1 if fastpool differs.

    `random` compares layers drawn at random. `sweep` times fastpool alone, over windows from 2 to
    129.
    """
    if context.invoked_subcommand:
        return _refuse_all(context)
    if readme:
        from ..bench import readme as page

        with wrong_input():
            return page.write(".", _say)
    _check_apart(json, plot)
    workloads = _chosen(quick, ops, patterns)
    from ..bench import report

    settings = {
        "thread_counts": thread_counts,
        "rounds": rounds or (QUICK_ROUNDS if quick else ROUNDS),
        "seconds": QUICK_SECONDS if quick else SECONDS,
    }
    results = _compare(workloads, peers, pythons, settings, json)
    _show(report, results)
    if plot:
        from ..bench import plots

        plots.plot_comparison(results, plot)
    return _status(results)


@command.command(
    cls=Command,
    examples=[
        "fastpool bench random --seed 7 --count 100",
        "fastpool bench random --seed 7 --layer 31 --layer 64 --rounds 9",
    ],
)
@click.option("--seed", metavar="N", type=int, default=0, help="Which layers to draw. [0]")
@click.option(
    "--count", metavar="N", type=click.IntRange(min=1), default=100, help="How many layers. [100]"
)
@click.option(
    *("--layer", "chosen"),
    metavar="N",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only the layer of this number, from 0 (repeatable).",
)
@with_options(HOW)
@with_options(FILES[:1])
def random(seed, count, chosen, peers, thread_counts, rounds, pythons, json):
    """Compare the speed on layers drawn at random.

    Most layers are like those of networks and pictures, a tail is like nothing. The seed decides
    which ones. Prints how the ratios and the distances from the memory limit are distributed, and
    the twenty worst layers by each. A hundred layers take ten minutes.
    """
    _check_apart(json, None)
    from ..bench import layers, report

    drawn = layers.random_layers(seed, max([count, *(number + 1 for number in chosen)]))
    drawn = _without_missing_types([drawn[n] for n in chosen] if chosen else drawn)
    settings = {
        "thread_counts": thread_counts,
        "rounds": rounds or QUICK_ROUNDS,
        "seconds": QUICK_SECONDS,
    }
    results = _compare(drawn, peers, pythons, settings, json)
    rows = report.summary(results)
    for threads in thread_counts:
        measured = [row for row in rows if row["threads"] == threads]
        _show_distribution(report.distribution(measured, layers.GROUPS), threads)
        _show_worst(measured, {layer.name: layer.form for layer in drawn})
    show(DISTRIBUTION_LEGEND)
    alone = {layer.name for layer in drawn} - {row["workload"] for row in rows}
    if alone:
        show(f"in no table, as no peer pools them: {', '.join(sorted(alone))}")
    for line in report.problems(results):
        show(line)
    return _status(results)


@command.command(
    cls=Command, examples=["fastpool bench sweep --quick --json sweep.json --plot sweep.svg"]
)
@QUICKLY
@with_options(FILES)
def sweep(quick, json, plot):
    """Time fastpool alone, over windows from 2 to 129.

    Measures the time per output at several strides and dilations, in both layouts, with and without
    indices. Takes a few minutes.
    """
    _check_apart(json, plot)
    from ..bench import report
    from ..bench import sweep as measure

    results = measure.sweep(measure.QUICK_WINDOWS if quick else measure.WINDOWS, _say)
    for line in measure.check(results):
        click.echo(line)
    if json:
        report.write_json(json, results=results)
    if plot:
        from ..bench import plots

        plots.plot_sweep(results, plot)


def _refuse_all(context):
    """Raise if an option of a subcommand is given before it."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name)
        if source is not ParameterSource.DEFAULT:
            name = context.invoked_subcommand
            known = {each.name for each in context.command.commands[name].params}
            why = f"not an option of {name}"
            if parameter.name in known:
                why = "expected after the subcommand"
            raise click.UsageError(f"{parameter.opts[0]}: {why}", context)


def _check_apart(json, plot):
    """Raise if both are one file: the second to be written would replace the first."""
    with wrong_input():
        apart(**given({"json": json, "plot": plot}))


def _say(message):
    click.echo(message, err=True)


def _chosen(quick, ops, patterns):
    """Return the workloads that the options name."""
    listed = [w for w in WORKLOADS if not ops or w.op in ops]

    def found(pattern):
        return [w for w in listed if fnmatchcase(w.name, pattern) or fnmatchcase(w.group, pattern)]

    for pattern in patterns:
        if not found(pattern):
            what = f"--workload: nothing matches {pattern!r}; names are like {listed[0].name!r}"
            raise click.UsageError(what)
    if patterns:
        names = {w.name for pattern in patterns for w in found(pattern)}
    else:
        names = QUICK if quick else {w.name for w in listed}
    return _without_missing_types([w for w in listed if w.name in names])


def _without_missing_types(workloads):
    """Leave out what NumPy has no type for."""
    if importlib.util.find_spec("ml_dtypes") is None:
        _say("no ml_dtypes: workloads of bfloat16 are left out")
        workloads = [w for w in workloads if w.dtype != "bfloat16"]
    return workloads


def _compare(workloads, peers, pythons, settings, json):
    """Measure, and write the file if there is one; return the results."""
    from ..bench import measure, report

    names = ["fastpool", "limit", *(name for name in PEERS if name in peers or not peers)]
    results, versions = measure.compare(
        workloads, names, **settings, pythons=dict(pythons), say=_say
    )
    if json:
        report.write_json(json, versions=versions, settings=settings, results=results)
    return results


def _status(results):
    own = {result["status"] for result in results if result["library"] == "fastpool"}
    return 0 if own == {"exact"} else FAILED


def _show_distribution(groups, threads):
    """Print how ratios and distances from the limit are distributed, by group."""
    names = ("ratio", "ratio_5", "ratio_1", "least")
    limits = ("from_limit", "from_limit_95", "from_limit_99", "furthest")
    titles = ("ratio", "5_%", "1_%", "least", "limit_x", "95_%", "99_%", "most")
    sides = dict.fromkeys(("count", *titles), "right")
    drawn = table(group="left", threads="right", **sides)
    for group in groups:
        numbers = [f"{group[name]:.2f}" for name in names]
        numbers += [_number(group.get(name)) for name in limits]
        drawn.add_row(group["group"], str(threads), str(group["count"]), *numbers)
    show(drawn)


def _show_worst(rows, forms):
    """Print the layers with the least ratios, and those furthest from the limit."""
    least = sorted(rows, key=lambda row: row["ratio"])[:WORST]
    limited = [row for row in rows if row["from_limit"]]
    furthest = sorted(limited, key=lambda row: -row["from_limit"])[:WORST]
    for chosen in (least, furthest):
        click.echo()
        sides = {"fastpool_us": "right", "ratio": "right", "limit_x": "right"}
        drawn = table(layer="left", window="left", best_peer="left", **sides)
        for row in chosen:
            numbers = f"{row['fastpool_microseconds']:.4g}", f"{row['ratio']:.2f}"
            numbers += (_number(row["from_limit"]),)
            drawn.add_row(row["workload"], forms[row["workload"]], row["best"], *numbers)
        show(drawn)
    click.echo()


def _show(report, results):
    """Print the results by workload and by group, then the calls that were not timed."""
    rows = report.summary(results)
    times = {"peer_us": "right", "fastpool_us": "right", "ratio": "right", "limit_x": "right"}
    each = table(workload="left", threads="right", best_peer="left", **times)
    for row in rows:
        each.add_row(
            *(row["workload"], str(row["threads"]), row["best"]),
            *(f"{row['best_microseconds']:.4g}", f"{row['fastpool_microseconds']:.4g}"),
            *(f"{row['ratio']:.2f}", _number(row["from_limit"])),
        )
    show(each)
    numbers = {"ratio": "right", "least": "right", "limit_x": "right", "most": "right"}
    grouped = table(group="left", threads="right", count="right", **numbers, least_ratio_at="left")
    for group in report.groups(rows):
        grouped.add_row(
            *(group["group"], str(group["threads"]), str(group["count"])),
            *(f"{group['ratio']:.2f}", f"{group['least']:.2f}"),
            *(_number(group["from_limit"]), _number(group["furthest"])),
            group["least_workload"],
        )
    click.echo()
    show(grouped)
    click.echo()
    show(LEGEND)
    for line in report.problems(results):
        show(line)


def _number(value):
    return "-" if value is None else f"{value:.1f}"
