"""Work with graph databases, and check queries before they run."""
