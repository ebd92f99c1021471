"""Graphs behind SPARQL endpoints."""
