"""The local web page of `kg-retrievers serve` (extra `serve`): ask a graph, and see how the answer comes about."""

from kg_retrievers.errors import MissingExtraError

try:
    import starlette  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as cause:
    raise MissingExtraError("the web page", "serve") from cause
