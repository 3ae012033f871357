"""Entry point for ``python -m parcel_returns``."""

import sys

from parcel_returns.cli import main

if __name__ == "__main__":
    sys.exit(main())
