"""Assessment and settlement of parcel returns."""

__version__ = "1.8.2"
