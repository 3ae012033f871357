from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import hashlib
from ledger.canonical import to_bytes
from projections.encodings.consolidated_v1 import encode
from projections.tokens import estimated_tokens
from tests.benchmarks.corpus.build import load
from tests.projections.encodings.fixtures import FIXTURES
from tests.projections.encodings.forms import cheap_forms, envelope
total = hashlib.sha256()
for view in [*FIXTURES.values(), *(d.view for d in load() if d.case == "renewal")]:
    data = to_bytes(encode(view).content)
    total.update(data + b"%d" % estimated_tokens(data.decode("utf-8", "replace")))
with cheap_forms():
    for name, view in FIXTURES.items():
        if not name.startswith("deep"):
            total.update(to_bytes(envelope(view)))
print(total.hexdigest())
"""


def test_the_bytes_do_not_depend_on_the_hash_seed() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-P", "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        )
        for seed in ("0", "1", "4242")
    ]
    assert len({run.stdout for run in runs}) == 1
