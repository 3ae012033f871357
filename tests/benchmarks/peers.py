"""Encodes the texts of a corpus with other formats; run by bench_encodings.py in its own venv.

    PEERS/bin/python -P tests/benchmarks/peers.py < texts.json > figures.json

Input: a list of {name, density, plain, encoded}. Needs nothing of this project but
tools/vocabulary.py. What is not installed is left out; real tokens are counted if the vocabulary is
there.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from vocabulary import NoVocabulary, counter

MODULES = {
    "YAML": ("yaml", "PyYAML"),
    "TOON (toon-format)": ("toon_format", "toon-format"),
    "TOON (python-toon)": ("toon", "python-toon"),
    "TOON (toons, Rust)": ("toons", "toons"),
    "TRON": ("tron", "tron-python"),
    "JTON": ("jton", "jton"),
    "flattype": ("flattype", "flattype"),
    "SOON": ("soon_format", "soon-format"),
    "BPP": ("bpp", "bpp-format"),
}


def codec(module: Any) -> tuple[Callable[[Any], str], Callable[[str], Any]]:
    """Return a format's encoder and decoder, under whatever name it has them."""
    if module.__name__ == "yaml":
        return (
            lambda v: module.dump(
                v, Dumper=_dumper(module), sort_keys=False, allow_unicode=True, width=10**9
            ),
            lambda t: module.load(t, Loader=getattr(module, "CSafeLoader", module.SafeLoader)),
        )
    if hasattr(module, "stringify"):
        return module.stringify, module.parse
    if hasattr(module, "dumps"):
        return module.dumps, module.loads
    return module.encode, module.decode


def _dumper(module: Any) -> Any:
    base = getattr(module, "CSafeDumper", module.SafeDumper)
    return type("NoAliases", (base,), {"ignore_aliases": lambda self, data: True})


def minified(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def measure(
    items: list[Any],
    encode: Callable[[Any], str],
    decode: Callable[[str], Any],
    tokens: Callable[[str], int] | None,
) -> dict[str, Any]:
    """Return characters, tokens, seconds and exact documents of one format, by density."""
    out: dict[str, Any] = {}
    for item in items:
        figures = out.setdefault(
            item["density"],
            {"characters": 0, "tokens": 0, "seconds": 0.0, "exact": 0, "documents": 0, "failed": 0},
        )
        value = json.loads(item["plain"])
        began = time.process_time()
        try:
            text = encode(value)
            figures["seconds"] += time.process_time() - began
            exact = minified(decode(text)) == item["plain"]
        except Exception as error:
            print(f"{item['name']}: {type(error).__name__}: {error}"[:160], file=sys.stderr)
            text, exact = item["plain"], False
            figures["failed"] += 1
        figures["characters"] += len(text)
        figures["tokens"] += tokens(text) if tokens else 0
        figures["exact"] += exact
        figures["documents"] += 1
    return out


def main() -> int:
    """Read texts from standard input, write figures to standard output."""
    items = json.load(sys.stdin)
    try:
        tokens = counter()
    except NoVocabulary:
        tokens = None
    figures = {"minified JSON": measure(items, minified, json.loads, tokens)}
    encoded = {item["plain"]: item["encoded"] for item in items}
    plain = {item["encoded"]: item["plain"] for item in items}
    figures["consolidated_v1"] = measure(
        items, lambda v: encoded[minified(v)], lambda t: json.loads(plain[t]), tokens
    )
    versions = {}
    for name, (module, package) in MODULES.items():
        try:
            figures[name] = measure(items, *codec(importlib.import_module(module)), tokens)
            versions[name] = importlib.metadata.version(package)
        except ImportError:
            continue
    json.dump({"figures": figures, "versions": versions, "real": tokens is not None}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
