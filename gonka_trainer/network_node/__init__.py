"""The host's network node, as this daemon calls it: admin API, training service, node manager."""
