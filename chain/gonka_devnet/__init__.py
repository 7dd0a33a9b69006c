"""A Gonka-compatible single-process chain for tests and the demo."""
