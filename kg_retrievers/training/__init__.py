"""Training for all learned methods: data, loop, unfinished trainings, and graphs for torch-geometric."""
