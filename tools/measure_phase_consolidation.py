"""Measure consolidated_v1 over the saved requests of one package: PACKAGE.zip is the one argument.

    .venv/bin/python -P tools/measure_phase_consolidation.py PACKAGE.zip

The same as `caseledger measure consolidation PACKAGE.zip`.
"""

from __future__ import annotations

import sys

from tools.cli import run

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.stderr.write("usage: measure_phase_consolidation.py PACKAGE.zip\n")
        sys.exit(2)
    sys.exit(run(["measure", "consolidation", sys.argv[1]]))
