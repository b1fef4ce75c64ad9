"""`python -m ponderosa` is the command `ponderosa`."""

import sys

from ponderosa.cli import main

if __name__ == "__main__":
    sys.exit(main())
