"""Servers that speak the OpenAI chat completions API: llama.cpp, Ollama, vLLM, gateways."""

from phases.providers.openai_compatible.provider import open_provider

__all__ = ["open_provider"]
