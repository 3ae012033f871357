"""A deterministic workload: N documents of one investigation, each a JSON object that grows.

About 36,000 characters are the same in every document; each step adds one evidence item of 30
source lines, and hypotheses, selection and budget change every time. 13 documents are 644,555 bytes
in all, 60 are 6,385,440. The goals of docs/benchmarks.md are stated for it.

    python3 growing_requests.py 13 OUTDIR     writes 000.json ... 012.json, minified UTF-8
"""

import json
import pathlib
import random
import string
import sys


def documents(count: int, seed: int = 7) -> list[bytes]:
    """Return `count` minified JSON documents, oldest first."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(3, 9))) for _ in range(3000)]

    def text(size: int) -> str:
        out: list[str] = []
        length = 0
        while length < size:
            word = rng.choice(words)
            out.append(word)
            length += len(word) + 1
        return " ".join(out)[:size]

    sources = [{"id": f"S{i}", "kind": "log", "text": text(900)} for i in range(28)]
    interpretation = {
        "summary": text(3000),
        "facts": [{"id": f"F{i}", "t": text(180)} for i in range(20)],
    }
    evidence: list[dict] = []
    result = []
    for i in range(count):
        hypotheses = [
            {
                "id": f"H{k}",
                "state": rng.choice(["open", "supported", "rejected"]),
                "notes": text(250),
            }
            for k in range(6)
        ]
        document = {
            "case": "bug17",
            "revision": 3,
            "sources": sources,
            "interpretation": interpretation,
            "selected": f"H{i % 6}",
            "hypotheses": hypotheses,
            "budget": {"left": 40 - i},
            "research": evidence[:],
        }
        result.append(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())
        evidence.append(
            {"id": f"E{i}", "lines": [{"n": 100 + j, "text": text(60)} for j in range(30)]}
        )
    return result


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    for number, body in enumerate(documents(int(sys.argv[1]))):
        (target / f"{number:03}.json").write_bytes(body)
