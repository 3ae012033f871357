"""A case as rows of tables, for SQL over one or many cases. Pure; who writes the rows is elsewhere.

The rows are a projection: made from the ledger at any time, the same from the same events.
"""

from __future__ import annotations

from projections.tables.forms import FORMAT, TABLES, VIEWS, Row
from projections.tables.making import rows

__all__ = ["FORMAT", "TABLES", "VIEWS", "Row", "rows"]
