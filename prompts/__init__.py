"""The words: one file a version, and a small reader."""
