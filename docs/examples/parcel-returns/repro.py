"""Shows the defect of this example: exit 1 with the defect, 0 when it is fixed.

Run it from the folder of the example: python repro.py
Exit 2 means that a return that was right before is now wrong, or that a command failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

DATABASE = Path("db/app.db").resolve()
SOURCE = Path("source").resolve()
REPORTED = ("R-2025-00568", "in_time", "84.90")
CONTROLS = (
    ("R-2025-00574", "in_time", "8.95"),
    ("R-2025-00563", "late", "64.40"),
    ("R-2025-00590", "late", "146.40"),
)


def assess(return_no: str) -> tuple[str, str, str]:
    """Number, outcome and refund as the service sees them."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith("PARCEL_RETURNS_")}
    done = subprocess.run(
        [sys.executable, "-B", "-m", "parcel_returns", "--db", str(DATABASE),
         "--log-file", os.devnull, "assess", return_no, "--json"],
        cwd=SOURCE, env=env, capture_output=True, text=True, timeout=60, check=False,
    )
    if done.returncode != 0:
        print(f"assess {return_no} failed: {done.stderr.strip()}")
        sys.exit(2)
    found = json.loads(done.stdout)
    return found["return_no"], found["outcome"], found["refund"]


def main() -> int:
    for expected in CONTROLS:
        found = assess(expected[0])
        print(f"control   expected {expected}, found {found}")
        if found != expected:
            return 2
    found = assess(REPORTED[0])
    print(f"reported  expected {REPORTED}, found {found}")
    return 0 if found == REPORTED else 1


if __name__ == "__main__":
    sys.exit(main())
