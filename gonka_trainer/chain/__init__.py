"""Adapter to a Gonka or plain Cosmos SDK chain node: reading, signing, sending, the run log's carriers."""
