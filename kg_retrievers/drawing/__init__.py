"""Pictures of evidence."""

from kg_retrievers.drawing.drawing import Drawing as Drawing
from kg_retrievers.drawing.drawing import draw as draw
