"""How many values property tests draw: `CASELEDGER_EXAMPLES=quick|ci|full`, or a number."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

COUNTS = {"quick": 500, "ci": 5_000, "full": 20_000}

wanted = os.environ.get("CASELEDGER_EXAMPLES", "quick")
if wanted.isdecimal():
    COUNTS[wanted] = int(wanted)

for name, count in COUNTS.items():
    settings.register_profile(
        name,
        max_examples=count,
        derandomize=True,  # the same values on every machine: a red run can be repeated
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],  # loaded machines are no finding
    )
settings.load_profile(wanted)
