"""Serving and fetching blobs, states and documents between daemons: gRPC over mutual TLS, pinned by join records."""
