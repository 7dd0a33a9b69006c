"""The composition root: settings in, adapters and the host put together."""
