"""Envelopes changed at random: small accidents and hostile inventions."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from tests.projections.encodings.fixtures import FIXTURES
from tests.projections.encodings.forms import cheap_forms, envelope, sent

FORMS = ["$ref", "$record", "$table", "$lines", "$lit"]
ODD = [0, 1, -1, 2, 10**6, 10**30, 1.0, True, None, "", "x", [], {}, [[]], [0, []], {"$ref": 0}]


def envelopes() -> list[Any]:
    """Return envelopes with every form in them."""
    small = [view for name, view in FIXTURES.items() if not name.startswith("deep")]
    with cheap_forms():
        return [sent(envelope(view)) for view in small]


def mutants(count: int, seed: int) -> Iterator[Any]:
    """Yield `count` changed envelopes, the same for the same seed."""
    chance = random.Random(seed)
    originals = envelopes()
    for _ in range(count):
        mutant = copy.deepcopy(chance.choice(originals))
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            mutant = _changed(mutant, chance)
        yield mutant


def _changed(mutant: Any, chance: random.Random) -> Any:
    places = list(_places(mutant))
    if not places:
        return mutant
    parent, key = chance.choice(places)
    value = parent[key]
    change = chance.randrange(9)
    if change == 0:
        del parent[key]
    elif change == 1:
        parent[key] = copy.deepcopy(chance.choice(ODD))
    elif change == 2 and type(value) is int:
        parent[key] = value + chance.choice((-1, 1, 2, 10**9))
    elif change == 3 and isinstance(value, list) and value:
        value.append(copy.deepcopy(chance.choice(value)))
    elif change == 4 and isinstance(value, list):
        chance.shuffle(value)
    elif change == 5:
        parent[key] = {chance.choice(FORMS): value}
    elif change == 6 and isinstance(value, dict) and value:
        parent[key] = next(iter(value.values()))
    elif change == 7:
        other, at = chance.choice(places)
        parent[key] = copy.deepcopy(other.get(at) if isinstance(other, dict) else None)
    elif isinstance(parent, dict):
        items = [(chance.choice(FORMS) if k == key else k, v) for k, v in parent.items()]
        parent.clear()
        parent.update(items)
    else:
        parent.insert(key, copy.deepcopy(value))
    return mutant


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where values stand: container and key, the mark aside."""
    items = enumerate(node) if isinstance(node, list) else node.items()
    for key, value in list(items):
        if key != "$consolidated":
            yield node, key
        if isinstance(value, list | dict):
            yield from _places(value)
