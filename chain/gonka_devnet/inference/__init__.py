"""The Gonka chain's own module: epochs, participants, hardware and, up to version 0.2.11, training."""

from gonka_devnet.inference.module import build

__all__ = ["build"]
