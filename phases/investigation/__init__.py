"""The investigation: read-only actions on a snapshot of the case, and the code index behind
them.
"""
