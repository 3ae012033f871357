"""Text reports."""
