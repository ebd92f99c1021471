"""Graph databases: what a query may do before it is run."""

from kg_retrievers.database.safety import READ_FUNCTIONS, CheckedQuery, check_read_only, limited
from kg_retrievers.database.tokens import Token, tokenize

__all__ = ["READ_FUNCTIONS", "CheckedQuery", "Token", "check_read_only", "limited", "tokenize"]
