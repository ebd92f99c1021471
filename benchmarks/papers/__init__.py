"""The tables of the five papers, measured with this package."""
