"""People's door: the command line, export and import, measurement."""
