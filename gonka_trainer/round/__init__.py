"""The protocol's core: pure functions over heights, digests and addresses (docs/protocol.md 1-3)."""
