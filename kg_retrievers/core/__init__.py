"""What every retriever is made of: stages over a checkpoint-safe state, run by one body for sync and async."""
