"""Views: what a phase shows a model of its canonical context. Frozen: a change is a new module.

A view is a module with `show(context) -> view`. `VERSIONS` names them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from projections.views import (
    investigation_focused_v1,
    investigation_full_v1,
    investigation_ordered_v1,
    whole_v1,
)

VERSIONS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "whole_v1": whole_v1.show,
    "investigation_focused_v1": investigation_focused_v1.show,
    "investigation_full_v1": investigation_full_v1.show,
    "investigation_ordered_v1": investigation_ordered_v1.show,
}
