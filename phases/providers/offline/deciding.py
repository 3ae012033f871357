"""Code that decides by a column: lines that compare, look up, order, parse or test its values.

Odd values do no harm where a column is only passed on or shown. They do where code takes a
decision by it, and which decisions a kind of oddness breaks is known beforehand: a text in another
form sorts wrongly but is displayed rightly; a blank at the end breaks a look-up but no sum.
`BREAKS` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from phases.providers.offline.words import split

ORDER, SORT, EQUAL, JOIN = "order", "sort", "equal", "join"
PARSE, TRUTH, SUM = "parse", "truth", "sum"
NOT_IN = "not in"

BREAKS: Mapping[str, Mapping[str, float]] = {
    "odd_shape": {ORDER: 1.0, PARSE: 0.8, EQUAL: 0.7, JOIN: 0.7, SORT: 0.5},
    "mixed_types": {ORDER: 1.0, EQUAL: 1.0, JOIN: 1.0, TRUTH: 0.7, SORT: 0.9, SUM: 0.6, PARSE: 0.5},
    "stray_blanks": {EQUAL: 1.0, JOIN: 1.0, PARSE: 0.5, ORDER: 0.3},
    "spelling_variants": {EQUAL: 1.0, JOIN: 1.0, ORDER: 0.3},
    "empty_text": {TRUTH: 1.0, PARSE: 0.8, EQUAL: 0.6},
    "zero_among_others": {TRUTH: 1.0, SUM: 0.7, EQUAL: 0.3},
    "rare_null": {
        NOT_IN: 1.0,
        SUM: 0.8,
        PARSE: 0.8,
        JOIN: 0.8,
        ORDER: 0.7,
        EQUAL: 0.7,
        TRUTH: 0.6,
        SORT: 0.4,
    },
    "rare_value": {EQUAL: 0.8, ORDER: 0.4},
    "foreign_key_violation": {JOIN: 1.0, EQUAL: 0.7},
    "reference_without_target": {JOIN: 1.0, EQUAL: 0.7},
    "without_children": {JOIN: 1.0},
    "near_unique": {JOIN: 1.0, EQUAL: 0.7},
    "reference_to_several": {JOIN: 1.0, EQUAL: 0.7},
    "count_equals_offset": {SUM: 0.5},
}
"""How surely a way of deciding goes wrong on a kind of odd values; what is not named does not."""

REASONS: Mapping[tuple[str, str], str] = {
    ("odd_shape", ORDER): "texts are compared character by character, so a value written in another"
    " form comes out on the wrong side",
    ("odd_shape", SORT): "texts are sorted character by character, so a value written in another"
    " form comes at the wrong place",
    ("odd_shape", PARSE): "the conversion expects the usual form",
    ("odd_shape", EQUAL): "a value in another form equals none of the usual ones",
    ("mixed_types", ORDER): "numbers and texts are ordered apart, whatever they say",
    ("mixed_types", EQUAL): "a number does not equal a text of the same digits",
    ("mixed_types", TRUTH): "0 counts as false, but the text '0' counts as true",
    ("stray_blanks", EQUAL): "with a blank at its end it is another value, so nothing is found",
    ("spelling_variants", EQUAL): "the comparison takes another spelling for another value",
    ("empty_text", TRUTH): "an empty text counts as missing here",
    ("zero_among_others", TRUTH): "zero counts as missing here",
    ("zero_among_others", SUM): "a computation with zero gives another kind of result, or fails",
    ("rare_null", NOT_IN): "with one null among them, “not in” is true for no row at all",
    ("rare_null", EQUAL): "null equals nothing, so these rows drop out",
    ("rare_null", ORDER): "null is neither before nor after anything, so these rows drop out",
    ("rare_null", SUM): "a computation with null is null",
    ("rare_null", PARSE): "the conversion expects a value",
    ("rare_value", EQUAL): "the cases that are told apart here may lack this value",
    ("reference_without_target", EQUAL): "the look-up finds nothing for these rows",
    ("foreign_key_violation", EQUAL): "the look-up finds nothing for these rows",
    ("without_children", JOIN): "a join drops rows that have no counterpart",
    ("near_unique", EQUAL): "by this column alone it finds more than one row",
    ("reference_to_several", EQUAL): "by this column alone it finds several rows, not one",
}
"""Why it goes wrong; a join is an equality and sorting an order, without a reason of their own."""

_SQL_WORD = re.compile(
    r"\b(select|from|where|and|or|on|join|having|when|update|delete|using|order by|group by)\b",
    re.I,
)
_OUTER = re.compile(r"\b(left|outer|full)\b", re.I)
_DECLARES = re.compile(
    r"(?i)\b(create\s+\w+|unique\s*\(|primary key|references|insert\s+(or\s+\w+\s+)?into)\b"
)
_COMMENT = re.compile(r"^\s*(#|//|\*|/\*|--)")
_ONLY_SQL = r"(?:\?|:\w|%s|%\(|\$\d|@\w|'|\w+\.[\"'`]?\w|\{)"
"""What stands after a single `=` in a comparison of SQL: a parameter, a text, a column."""


def reason(kind: str, way: str) -> str:
    """Return why code that decides in a way goes wrong on odd values of a kind, "" if unsaid."""
    related = {JOIN: EQUAL, SORT: ORDER}.get(way, way)
    return REASONS.get((kind, way)) or REASONS.get((kind, related), "")


def spellings(column: str) -> list[str]:
    """Return how code may spell a column: as it is, and in the other usual style."""
    words = split(column)
    camel = "".join(w if n == 0 else w.capitalize() for n, w in enumerate(words))
    return list(dict.fromkeys([column, "_".join(words), camel]))


def named(column: str) -> str:
    """Return the expression for lines that name a column at all."""
    return rf"(?i)\b(?:{'|'.join(map(re.escape, spellings(column)))})(?:\b|__)"


@dataclass(frozen=True)
class Decision:
    """A line that decides by a column. `way`: how; `direct`: on the stored value, not on one that
    was converted before.
    """

    line: int
    way: str
    direct: bool


@dataclass(frozen=True)
class _Patterns:
    names: re.Pattern[str]
    ways: tuple[tuple[str, re.Pattern[str]], ...]
    sql_equal: re.Pattern[str]
    listed: tuple[tuple[str, re.Pattern[str]], ...]
    made_even: re.Pattern[str]
    alias: re.Pattern[str]
    converted: re.Pattern[str]


class _Spelled:
    """Expressions for a column's names: anywhere, on one side of a sign, between brackets."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.bare = rf"(?<![\w$])(?:{'|'.join(map(re.escape, names))})"
        self.name = rf"{self.bare}(?![\w$])"
        self.left = r"[\w$.(]*[\"'`\[]*" + self.name
        self.right = self.name + r"[\"'`\])]*(?:\.\w+\(\))?"
        self.inside = rf"\(\s*[^()]{{0,60}}{self.name}"


def _comparing(of: _Spelled) -> tuple[tuple[str, str], ...]:
    """Return expressions for code that orders, sorts or equates."""
    bare, name, left, right, inside = of.bare, of.name, of.left, of.right, of.inside
    return (
        (ORDER, rf"{right}\s*(?:<=|>=|<(?![<>=])|>(?![>=]))|(?<![-=<>])(?:<=|>=|<|>)\s*{left}"
                rf"|{right}\s+(?:not\s+)?between\b|{bare}__(?:lte?|gte?|range)\b"
                rf"|[\"'`]{name}[\"'`]\s*,\s*[\"'](?:<|>|<=|>=)[\"']"),
        (SORT, rf"\b(?:min|max|sort|sorted|order_by|orderBy|sortBy)\s*{inside}"),
        (NOT_IN, rf"\bnot\s+in\s*\(\s*select\s+(?:distinct\s+)?(?:\w+\.)?[\"`\[]?{name}"),
        (EQUAL, rf"{right}\s*(?:===?|!==?|<>)|(?:===?|!==?|<>)\s*{left}"
                rf"|(?<!for )(?<!as ){name}[\"'`\])]*\s+(?:not\s+)?(?:in|like|glob|regexp)\b"
                rf"|[\w)\]]\[\s*(?:[\w$]+[.\[][\"'`]?)?{name}[\"'`]?\]?\s*\]"
                rf"|\.(?:get|has|includes|indexOf|pop|setdefault)\(\s*(?:[\w$]+[.\[][\"'`]?)?{name}"
                rf"|\.(?:startswith|startsWith|endswith|endsWith|equals|localeCompare)\s*{inside}"
                rf"|{right}\.(?:startswith|startsWith|endswith|endsWith|includes|indexOf|match)\("
                rf"|\b(?:filter|filter_by|get|exclude|where|find|findOne|andWhere)\s*{inside}"
                rf"(?:[\"'`]\s*,|\s*[:=])"
                rf"|\b(?:using|distinct|match|switch|case)\b\s*\(?\s*{left}"),
    )  # fmt: skip


def _reading(of: _Spelled) -> tuple[tuple[str, str], ...]:
    """Return expressions for code that parses, tests for presence or computes."""
    name, left, right, inside = of.name, of.left, of.right, of.inside
    return (
        (PARSE, rf"\b(?:strptime|fromisoformat|parse\w*|int|float|Decimal|Number|parseInt"
                rf"|parseFloat|Date|date|datetime|loads|UUID|fromtimestamp)\s*{inside}"
                rf"|{right}\.(?:split|partition|rsplit|slice|substring|substr)\("
                rf"|{right}\[\s*-?\d*:|\b(?:substr|substring|strftime|cast|julianday)\s*{inside}"
                rf"|\bre\.\w+\(.{{0,80}}{name}"),
        (TRUTH, rf"\b(?:if|elif|while|and|or|not|assert)\s+(?:not\s+)?[\w$.]*[\"'`\[]*{right}\s*"
                rf"(?::|and\b|or\b|else\b|$)|(?:if|while)\s*\(!?\s*[\w$.]*{right}\s*(?:\)|&&|\|\|)"
                rf"|{right}\s*(?:or\b|\|\||\?\?|\?\s)|![\w$.]*{name}|\b(?:coalesce|ifnull)\s*{inside}"
                rf"|{right}\s+is\s+(?:not\s+)?(?:null|none)"),
        (SUM, rf"\b(?:sum|avg|total)\s*{inside}|{name}[\"'`\]]*\s*[*/%+](?![*/%+=])"
              rf"|[*/%+]\s*{left}"),
    )  # fmt: skip


@lru_cache(maxsize=500)
def _patterns(names: tuple[str, ...]) -> _Patterns:
    of = _Spelled(names)
    bare, name, right, inside = of.bare, of.name, of.right, of.inside
    gap = r"[^;)\"'`]{0,160}?"
    ways = (*_comparing(of), *_reading(of))
    compiled = tuple((way, re.compile(pattern, re.I)) for way, pattern in ways)
    return _Patterns(
        re.compile(name + rf"|{bare}__[a-z]", re.I), compiled,
        re.compile(rf"{right}\s*=\s*{_ONLY_SQL}|(?<![<>!=])=\s*(?:\w+\.)?[\"'`]?{name}", re.I),
        ((SORT, re.compile(rf"\border\s+by\b{gap}{name}", re.I | re.S)),
         (EQUAL, re.compile(rf"\b(?:group|partition)\s+by\b{gap}{name}", re.I | re.S))),
        re.compile(
            rf"\b(?:trim|strip|lower|upper|casefold|normali[sz]e\w*|unicode|cast|julianday|datetime"
            rf"|strftime|parse\w*|Number|int|float|Decimal|str|String|fromisoformat)\s*{inside}"
            rf"|{right}\.(?:strip|trim|lower|upper|casefold|toLowerCase|toUpperCase)\(", re.I),
        re.compile(
            rf"^\s*(?:const\s+|let\s+|var\s+)?([A-Za-z_$][\w$]*)\s*(?::[^=]+)?=\s*[\w$.]*"
            rf"(?:\[|\.get\()?[\"'`]?{name}[\"'`\])]*\s*;?\s*$"),
        re.compile(rf"{name}\s*[:=]\s*(?:[\w$]+\.)*\w*(?:parse|from|to_|int|float|date|Decimal|Date"
                   rf"|strip|trim)\w*\("),
    )  # fmt: skip


def is_converted(column: str, texts: Iterable[str]) -> bool:
    """Tell whether code that was seen converts a column's values where it takes rows over, so that
    attributes of this name hold the converted value.
    """
    converted = _patterns(tuple(spellings(column))).converted
    return any(converted.search(text) for text in texts)


def decisions(column: str, lines: Mapping[int, str], converted: bool = False) -> list[Decision]:
    """Return the lines of a file or a range that decide by a column, once for each way.

    Args:
        lines: known lines by number.
        converted: attributes of this name were converted before.
    """
    names = tuple(spellings(column))
    found = _found(_patterns(names), lines, converted)
    for alias in _aliases(names, lines):
        found += _found(_patterns((alias,)), lines, converted)
    first: dict[tuple[int, str], Decision] = {}
    for item in found:
        first.setdefault((item.line, item.way), item)
    return sorted(first.values(), key=lambda d: (d.line, d.way))


def _found(by: _Patterns, lines: Mapping[int, str], converted: bool) -> list[Decision]:
    found = []
    for number, text in lines.items():
        if len(text) > 2000 or not by.names.search(text) or _passive(text):
            continue
        above = "\n".join(lines.get(n, "") for n in (number - 2, number - 1))
        spelled = bool(re.search(rf"[\w\])]\.{by.names.pattern}", text))
        after = converted and spelled and not _is_sql(text, above)
        even = bool(by.made_even.search(text))
        for way in _ways(by, text, above):
            found.append(Decision(number, way, not after and not (even and way != PARSE)))
    return found


def _passive(text: str) -> bool:
    return bool(_COMMENT.match(text) or _DECLARES.search(text))


def _ways(by: _Patterns, text: str, above: str) -> list[str]:
    """Return how a line decides; nothing if it only names the column."""
    found = [_joined(way, text, above) for way, pattern in by.ways if pattern.search(text)]
    if by.sql_equal.search(text) and _is_sql(text, above):
        found.append(_joined(EQUAL, text, above))
    block = f"{above}\n{text}"
    for way, pattern in by.listed:
        found += [way for match in pattern.finditer(block) if match.end() > len(above) + 1]
    return list(dict.fromkeys(found))


def _joined(way: str, text: str, above: str) -> str:
    """Return `join` for an equality that ties two tables."""
    tied = re.search(r"\bjoin\b", text, re.I) or (
        re.match(r"\s*(on|and)\b", text, re.I) and re.search(r"\bjoin\b", above, re.I)
    )
    return JOIN if way == EQUAL and tied else way


def _is_sql(text: str, above: str) -> bool:
    code = re.match(r"\s*(if|elif|while|return|assert|for)\b", text)
    return not code and bool(_SQL_WORD.search(text) or _SQL_WORD.search(above[-200:]))


def is_outer(text: str) -> bool:
    """Tell whether a join keeps rows without a counterpart."""
    return bool(_OUTER.search(text))


def _aliases(names: tuple[str, ...], lines: Mapping[int, str]) -> list[str]:
    """Return local names that are given a column's value unchanged."""
    pattern = _patterns(names).alias
    found = [m[1] for text in lines.values() if len(text) < 500 and (m := pattern.match(text))]
    return [name for name in dict.fromkeys(found) if name not in names and len(name) > 1][:4]
