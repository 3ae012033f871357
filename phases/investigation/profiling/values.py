"""Checks on the values of one column: types, blanks, spelling, shape, rarity."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator

from phases.investigation.profiling.facts import Facts, Finding, few, one_of

_SHOWN = 20
"""Values that a condition lists at most."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u00a0\u00ad\u200b-\u200f\u2028\u2029\u2060\ufeff]"
)
_RUN = re.compile(r"(a|9)\1+")


def mixed_types(facts: Facts) -> Iterator[Finding]:
    """A column that holds numbers and texts, or blobs among others; not integers beside reals."""
    families: dict[str, int] = defaultdict(int)
    for kind, count in facts.types.items():
        families["number" if kind in ("integer", "real") else kind] += count
    families.pop("null", None)
    if len(families) < 2:
        return
    expected = _affinity(facts.column.declared)
    usual = expected if expected in families else max(sorted(families), key=lambda k: families[k])
    fitting = ("integer", "real") if usual == "number" else (usual,)
    odd = sorted(kind for kind in facts.types if kind != "null" and kind not in fitting)
    rows = sum(facts.types[kind] for kind in odd)
    listed = ", ".join(f"'{kind}'" for kind in odd)
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(facts.types.items()))
    yield Finding(
        "mixed_types", [facts.name], f"stores more than one type: {counts}",
        f"typeof({facts.sql}) IN ({listed})", rows, [],
    )  # fmt: skip


def _affinity(declared: str) -> str:
    """Return the family that a declared type asks for (sqlite.org/datatype3.html, 3.1), "" for
    none.
    """
    upper = declared.upper()
    if "INT" in upper:
        return "number"
    if any(word in upper for word in ("CHAR", "CLOB", "TEXT")):
        return "text"
    if not upper or "BLOB" in upper:
        return "blob" if upper else ""
    return "number"


def blanks(facts: Facts) -> Iterator[Finding]:
    """Texts with a blank at an end, an invisible character, or nothing but blanks."""
    odd = [(v, n) for v, n in facts.texts if v != v.strip() or _INVISIBLE.search(v)]
    total = sum(count for _, count in facts.texts)
    rows = sum(count for _, count in odd)
    if odd and rows <= 0.2 * total:
        yield _of_values(facts, "stray_blanks", "has blanks at an end or invisible characters", odd)
    empty = [(v, n) for v, n in facts.texts if v == ""]
    if empty and empty[0][1] <= few(total):
        yield _of_values(facts, "empty_text", f"is empty in {empty[0][1]} of {total} rows", empty)


def spelling(facts: Facts) -> Iterator[Finding]:
    """The same word written in more than one way: case, blanks, composed or full-width
    characters.
    """
    groups: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for value, count in facts.texts:
        key = " ".join(unicodedata.normalize("NFKC", value).casefold().split())
        groups[key].append((value, count))
    variants = [group for _, group in sorted(groups.items()) if len(group) > 1]
    if not variants or len(variants) > max(3, len(groups) // 20):
        return
    rarer = [pair for group in variants for pair in sorted(group, key=lambda p: (-p[1], p[0]))[1:]]
    yield _of_values(
        facts, "spelling_variants", "writes the same word in several ways", rarer,
        [[[value, count] for value, count in group] for group in variants[:5]],
    )  # fmt: skip


def shape(text: str) -> str:
    """Return the shape of a text: letters become a, digits 9, the rest stays."""
    return "".join("9" if c.isdigit() else "a" if c.isalpha() else c for c in text[:200])


def shapes(facts: Facts) -> Iterator[Finding]:
    """Texts whose shape is rare where nearly all others share a few shapes."""
    total = sum(count for _, count in facts.texts)
    if total < 10 or facts.longest > 200:
        return
    for form in (shape, lambda text: _RUN.sub(r"\1+", shape(text))):
        counts: Counter[str] = Counter()
        for value, count in facts.texts:
            counts[form(value)] += count
        common = {s for s, n in counts.items() if n > few(total)}
        odd = [(v, n) for v, n in facts.texts if form(v) not in common]
        rows = sum(count for _, count in odd)
        if common and len(common) <= 12 and rows <= few(total, 0.02):
            if odd:
                usual = [
                    s for s, _ in sorted(counts.items(), key=lambda p: (-p[1], p[0])) if s in common
                ]
                text = "has an unusual shape; usual: " + ", ".join(repr(s[:40]) for s in usual[:5])
                yield _of_values(facts, "odd_shape", text, odd)
            return


def rare_values(facts: Facts) -> Iterator[Finding]:
    """A value that is nearly alone among few others that are common."""
    if not facts.values or len(facts.values) > 30 or facts.present < 50:
        return
    rare = [(v, n) for v, n in facts.values if n <= few(facts.present, 0.002, 2)]
    common = [n for _, n in facts.values if n > 10 * few(facts.present, 0.002, 2)]
    if rare and common and len(rare) <= 5 and not facts.temporal:
        yield _of_values(
            facts, "rare_value", f"is nearly always one of {len(common)} other values", rare
        )


def rare_nulls(facts: Facts) -> Iterator[Finding]:
    """Null in a few rows only."""
    nulls = facts.types.get("null", 0)
    if 0 < nulls <= few(facts.rows) and facts.rows >= 20:
        says = f"is null in {nulls} of {facts.rows} rows"
        yield Finding("rare_null", [facts.name], says, f"{facts.sql} IS NULL", nulls, [])


def zeros(facts: Facts) -> Iterator[Finding]:
    """Zero in a few rows where the others are not."""
    if not facts.numeric or not facts.values or facts.distinct < 4 or facts.present < 10:
        return
    zero = sum(count for value, count in facts.values if value == 0)
    if 0 < zero <= few(facts.present, 0.02):
        says = f"is zero in {zero} of {facts.present} rows"
        yield Finding("zero_among_others", [facts.name], says, f"{facts.sql} = 0", zero, [])


def _of_values(
    facts: Facts, kind: str, says: str, odd: list[tuple[str, int]] | list[tuple[object, int]],
    details: list[object] | None = None,
) -> Finding:  # fmt: skip
    chosen = sorted(odd, key=lambda pair: pair[1])[:_SHOWN]
    where = one_of(facts.sql, [value for value, _ in chosen])
    more = "" if len(odd) <= _SHOWN else f" ({len(odd)} different values, {_SHOWN} of them here)"
    return Finding(kind, [facts.name], says + more, where, sum(n for _, n in odd), details or [])


CHECKS = (mixed_types, blanks, spelling, shapes, zeros, rare_nulls, rare_values)
