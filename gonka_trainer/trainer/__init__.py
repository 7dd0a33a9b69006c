"""Supervision of the training process from the daemon. No torch here: a fault of the GPU ends the worker alone."""
