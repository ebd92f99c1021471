"""Pictures of evidence."""

from kg_retrievers.drawing.drawing import Drawing, draw

__all__ = ["Drawing", "draw"]
