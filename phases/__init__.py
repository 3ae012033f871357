"""What we do next: intake, the run loop, one folder a phase, actions and providers."""

ORDER = (
    "entity_resolution",
    "case_interpretation",
    "hypotheses",
    "investigation",
    "diagnosis",
    "change_request",
)
"""The phases of an analysis. A new phase is a folder with a `phase.py`, and a word here."""
