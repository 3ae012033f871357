"""What odd rows mean for the code that reads them, and what to change: one entry a kind."""

from __future__ import annotations

from phases.providers.offline.corpus import Finding

_MEANING = {
    "near_unique": "code that takes {columns} alone for a key finds more than one row",
    "reference_to_several": "code that follows {columns} alone finds several rows, not one",
    "foreign_key_violation": "code that follows {columns} finds no row",
    "reference_without_target": "code that follows {columns} finds no row",
    "mixed_types": "comparisons and conversions of {columns} treat these rows differently",
    "stray_blanks": "comparing {columns} as text does not find these rows",
    "spelling_variants": "comparing {columns} as text treats these as different things",
    "odd_shape": "code that expects the usual form of {columns} misreads these rows",
    "empty_text": "code that tests {columns} for presence treats these rows as having none",
    "zero_among_others": "code that divides by {columns} or tests its truth errs on these rows",
    "count_equals_offset": "code that computes {columns} may take the one for the other",
    "rare_null": "code that takes {columns} for granted fails or skips these rows",
    "rare_value": "code that lists the values of {columns} may lack this one",
    "without_children": "code that joins the other table loses these rows",
}
_CHANGE = {
    "near_unique": "look rows up and join by the complete key, not by {columns} alone",
    "reference_to_several": "join by the complete key of the other table, not by {columns} alone",
    "foreign_key_violation": "handle a reference by {columns} that has no target",
    "reference_without_target": "handle a reference by {columns} that has no target",
    "mixed_types": "bind and read {columns} as one type; convert where rows are written",
    "stray_blanks": "compare {columns} without blanks at the ends, or clean it where it is written",
    "spelling_variants": "compare {columns} in one normal form (case, blanks, composed characters)",
    "odd_shape": "accept this form of {columns}, or refuse it where rows are written",
    "empty_text": "tell an empty {columns} from a missing one",
    "zero_among_others": "treat zero in {columns} as a value, not as missing",
    "count_equals_offset": "compute {columns} apart from the position",
    "rare_null": "handle a missing {columns}",
    "rare_value": "handle this value of {columns} too",
    "without_children": "keep rows that have no counterpart (an outer join, or a check)",
}
_TITLE = {
    ("odd_shape", "order"): "Compare {columns} by its meaning, not as text",
    ("odd_shape", "sort"): "Sort by the meaning of {columns}, not by its text",
    ("odd_shape", "parse"): "Read every form of {columns} that is stored",
    ("odd_shape", "equal"): "Recognise every form of {columns} that is stored",
    ("mixed_types", ""): "Compare {columns} as values of one type",
    ("stray_blanks", ""): "Ignore blanks at the ends of {columns}",
    ("spelling_variants", ""): "Compare {columns} in one spelling",
    ("empty_text", ""): "Tell an empty {columns} from a missing one",
    ("zero_among_others", ""): "Treat zero in {columns} as a value",
    ("rare_null", ""): "Handle rows without {columns}",
    ("rare_value", ""): "Handle every value of {columns}",
    ("without_children", ""): "Keep rows that have no counterpart by {columns}",
    ("reference_without_target", ""): "Handle {columns} without a counterpart",
    ("foreign_key_violation", ""): "Handle {columns} without a counterpart",
}
"""Imperatives about code that decides in a way ("" for any) by odd values of a kind."""

_REPAIR = {
    "near_unique": "Decide for each group of duplicates which row is meant; do not delete blindly.",
    "stray_blanks": "Trim the stored values after the code compares them safely.",
    "spelling_variants": "Bring the stored values to one spelling.",
    "mixed_types": "Convert the stored values of the rare type to the declared one.",
    "odd_shape": "Bring the stored values to the usual form, once the code reads both.",
    "foreign_key_violation": "Restore the missing target or clear the reference.",
    "reference_without_target": "Restore the missing target or clear the reference.",
    "rare_null": "Fill the missing values where they can be known.",
    "empty_text": "Replace empty texts by nulls or by the value that is meant.",
}


def _columns(finding: Finding) -> str:
    return ", ".join(f"{finding.table}.{name}" for name in finding.columns) or finding.table


def meaning(finding: Finding) -> str:
    """Return what odd rows do to code that reads them."""
    form = _MEANING.get(finding.kind, "code that expects ordinary rows treats these differently")
    return form.format(columns=_columns(finding))


def change(finding: Finding, way: str = "") -> str:
    """Return what to change in code that reads such rows, or that decides in a way by them."""
    if (finding.kind, way) in _TITLE:
        said = title(finding, way)
        return f"{said[:1].lower()}{said[1:]}: convert both sides first"
    form = _CHANGE.get(finding.kind, "treat rows with this {columns} as the report expects")
    return form.format(columns=_columns(finding))


def title(finding: Finding, way: str) -> str:
    """Return an imperative for code that decides in a way by odd values."""
    form = _TITLE.get((finding.kind, way)) or _TITLE.get((finding.kind, ""))
    return (form or "Handle odd values of {columns}").format(columns=_columns(finding))


def repair(finding: Finding) -> str:
    """Return what to do about the rows, "" if nothing."""
    return _REPAIR.get(finding.kind, "")
