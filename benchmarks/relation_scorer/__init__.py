"""Trains the relation scorer of the package; see `__main__.py`."""
