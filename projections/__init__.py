"""What it means: pure functions from events to state, contexts, views and requests."""
