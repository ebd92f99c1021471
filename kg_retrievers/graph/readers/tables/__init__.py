"""From text, JSON, frames, Parquet and Arrow to the rows of a knowledge graph."""
