"""DiLoCo training between hosts that do not trust each other, agreed over the Gonka chain."""

from typing import Final

__version__: Final = "0.1.0"
