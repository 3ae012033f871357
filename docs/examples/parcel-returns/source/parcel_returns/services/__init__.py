"""The rules of the service."""
