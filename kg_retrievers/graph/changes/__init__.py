"""Change graphs by adding and removing facts.

The time grows with the change.
"""
