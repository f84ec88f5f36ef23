"""Print tables and progress bars, on terminals of any width and to pipes.

rich is imported only when something is drawn, so that help is quick.
"""

import sys
import time
from contextlib import ExitStack, contextmanager

import click

# Seconds of work before a bar appears.
PATIENCE = 1.0
# Line width if the output is not a terminal.
WIDE = 200


def console(stream):
    """Return a rich console; colours and lines of the terminal's width only on a terminal."""
    from rich.console import Console

    plain = {"markup": False, "highlight": False, "emoji": False}
    return Console(file=stream, width=None if stream.isatty() else WIDE, **plain)


def table(**columns):
    """Return an empty table without lines; each column is "left" or "right"."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="bold")
    for name, side in columns.items():
        made.add_column(
            name.replace("_", " "), justify=side, overflow="fold", no_wrap=side == "right"
        )
    return made


def show(drawn):
    """Print a table or a text in lines that fit, without trailing spaces."""
    out = console(sys.stdout)
    with out.capture() as text:
        out.print(drawn)
    for line in text.get().splitlines():
        click.echo(line.rstrip())


@contextmanager
def progress(title):
    """Yield a function of the numbers done and of all, which draws a bar for long work."""
    if not sys.stderr.isatty():
        yield lambda done, every: None
        return
    from rich.progress import Progress

    with ExitStack() as stack:
        start, bar = time.monotonic(), None

        def update(done, every):
            nonlocal bar
            if bar is None and time.monotonic() - start >= PATIENCE:
                bar = stack.enter_context(Progress(console=console(sys.stderr), transient=True))
                bar.add_task(title)
            if bar is not None:
                bar.update(bar.task_ids[0], completed=done, total=every)

        yield update
