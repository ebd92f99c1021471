"""Our methods and everything else that runs here without a key, side by side: `python -m benchmarks.rivals`."""
