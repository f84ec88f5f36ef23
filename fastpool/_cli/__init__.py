"""The command line: `fastpool`, also `python -m fastpool`. Nothing else imports it.

Each command is a module of its own, which imports what it works with when it runs. They need click
and rich, the extra "cli".
"""

import sys


def main():
    """Run the command that this process was started with; the exit status."""
    try:
        import rich  # noqa: F401  (a spare import: the commands need parts of it)

        from .program import program
    except ModuleNotFoundError as missing:
        if missing.name not in ("click", "rich"):
            raise
        print(
            f'fastpool: the command line needs {missing.name}: pip install "fastpool[cli]"',
            file=sys.stderr,
        )
        return 2
    return program()
