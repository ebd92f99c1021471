"""Storage: what is saved in a folder, switched from one save to the next by one manifest."""
