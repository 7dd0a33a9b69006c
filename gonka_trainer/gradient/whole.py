"""What the codecs have in common whose kernel decodes every element of a chunk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from gonka_trainer.gradient import fused
from gonka_trainer.gradient.arrays import F32, U8
from gonka_trainer.gradient.codec import check_size


class WholeStep(ABC):
    """The outer step by one fused kernel."""

    __slots__ = ()
    name: str

    @abstractmethod
    def encoded_bytes(self, elements: int) -> int:
        """Return the exact size of a chunk (`Codec.encoded_bytes`)."""

    @abstractmethod
    def kernel(self) -> Any:
        """Return the step's kernel, compiled when it is first asked for."""

    def step(
        self,
        payloads: Sequence[U8],
        coefficients: F32,
        former: tuple[F32, F32],
        new: tuple[F32, F32],
        rate: np.float32,
        mu: np.float32,
    ) -> None:
        """Do the outer step on a chunk (`Codec.step`)."""
        for payload in payloads:
            check_size(self, payload, new[0].size)
        fused.run(self.kernel(), payloads, coefficients, former, new, rate, mu)
