"""The intake: report, source, logs and databases become events and payloads. Writes nothing.

`take` is a pure producer: the caller appends each step to a ledger. Limits are in `limits.py`; what
is left out and why in `rules.py`; the shapes of secrets in `secrets.py`.
"""

from phases.intake.errors import IntakeError
from phases.intake.summary import Summary
from phases.intake.take import IntakeRequest, Known, Taken, take, title_of

__all__ = [
    "IntakeError",
    "IntakeRequest",
    "Known",
    "Summary",
    "Taken",
    "take",
    "title_of",
]
