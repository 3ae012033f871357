"""Private parts of consolidated_v1; the grammar is in docs/encodings/consolidated_v1.md.

grammar (names of forms, the error) ← graph (equal values once) ← layout (columns) ← plan (which
form each value takes) ← writer (the envelope's members); reader is the way back.
"""
