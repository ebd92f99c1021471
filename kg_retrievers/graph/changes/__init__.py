"""Changes of a graph: facts added and removed, in time that grows with the change."""
