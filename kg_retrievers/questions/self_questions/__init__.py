"""Questions that a graph asks of itself: patterns drawn from it, put into words."""
