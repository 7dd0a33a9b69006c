"""Settings for all tests."""

from hypothesis import settings

# Kernels are compiled at first use and machines are shared, so the first example of a property may be slow.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
