"""Graph databases: what a query may do before it is run."""
