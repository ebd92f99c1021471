"""Questions about attributes of facts, with gold answers from the graph files alone."""
