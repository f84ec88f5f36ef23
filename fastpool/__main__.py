"""Run the command line: `python -m fastpool`."""

import sys

from fastpool._cli import main

if __name__ == "__main__":
    sys.exit(main())
