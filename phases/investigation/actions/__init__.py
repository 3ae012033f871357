"""What a model, or a person, may ask of a snapshot: read-only, bounded, deterministic.

Adding an action is one module here, one row in perform.py and one in projections' READS.
"""

from phases.investigation.actions.base import Action, Evidence, Refusal
from phases.investigation.actions.perform import ACTIONS, bindings, perform, validate

__all__ = ["ACTIONS", "Action", "Evidence", "Refusal", "bindings", "perform", "validate"]
