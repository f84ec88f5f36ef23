"""The command line: `fastpool`, also `python -m fastpool`. No other module imports it.

Each command is a separate module, which imports what it needs when it runs. Commands need click and
rich, the extra "cli".
"""

import signal
import sys


def main():
    """Run the command that this process was started with, and exit with its status."""
    try:
        import rich  # noqa: F401  (its parts are imported when something is drawn)

        from .program import program
    except ModuleNotFoundError as missing:
        if missing.name not in ("click", "rich"):
            raise
        print(
            f'fastpool: the command line needs {missing.name}: pip install "fastpool[cli]"',
            file=sys.stderr,
        )
        return 2
    # Handle these signals as an interrupt, so that partly written files are removed.
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores it
            signal.signal(number, lambda number, frame: sys.exit(128 + number))
    return program()
