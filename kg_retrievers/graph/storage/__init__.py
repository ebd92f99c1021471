"""Store data in a folder.

One manifest switches from one save to the next.
"""
