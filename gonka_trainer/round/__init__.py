"""The protocol's core: pure functions over heights, digests and addresses (PROTOCOL.md 1-3)."""
