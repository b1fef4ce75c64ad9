"""`python -m pondertree` is the command `pondertree`."""

import sys

from pondertree.cli import main

if __name__ == "__main__":
    sys.exit(main())
