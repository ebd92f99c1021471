"""What the learned methods share: the loop, the data, the writing of checkpoints, and graphs for torch-geometric."""
