"""`python -m fastpool`: the command line."""

import sys

from fastpool._cli import main

if __name__ == "__main__":
    sys.exit(main())
