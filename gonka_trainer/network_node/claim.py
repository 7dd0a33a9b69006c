"""One holder's claim on the GPUs, said in the log whenever the reason changes."""

from __future__ import annotations

import logging
from typing import Final

from gonka_trainer.controls import Gpu

_LOG: Final = logging.getLogger(__name__)


class Claim:
    """Holds and lifts in the name of `who`."""

    def __init__(self, gpu: Gpu, who: str) -> None:
        self._gpu = gpu
        self._who = who
        self._said = ""

    def hold(self, why: str) -> None:
        """Take the GPUs from training, for this reason."""
        self.say(why)
        self._gpu.hold(self._who, why)

    def lift(self, why: str) -> None:
        """Let training have them, as far as this holder is concerned."""
        self.say(why)
        self._gpu.lift(self._who)

    def say(self, text: str) -> None:
        """Log the text, unless it was the last one."""
        if text != self._said:
            _LOG.info("%s", text)
        self._said = text
