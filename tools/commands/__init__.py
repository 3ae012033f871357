"""Command groups: one small module each, with a `register(app)`."""
