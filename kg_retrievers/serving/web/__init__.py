"""The local web page of `kg-retrievers serve`."""
