"""Gemini through its native API, with an explicit cache of what stays the same over a case."""
