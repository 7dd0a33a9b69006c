"""What a test has switched on: how the node answers otherwise than it would.

Nothing here touches the chain itself, except what is ordered for the next block (`injected`, `orders`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import grpc

from gonka_devnet.blocks import Block
from gonka_devnet.disguise import Disguise
from gonka_devnet.errors import sdk_query_error
from gonka_devnet.mempool import Verdict
from gonka_devnet.module import Context, QueryError

Order = Callable[[Context], None]


@dataclass
class Refusing:
    """Refuses the next `count` broadcasts."""

    count: int
    verdict: Verdict


@dataclass(frozen=True)
class Rewound:
    """The node shows itself `blocks` lower, until it has made as many more than it had (`height`)."""

    blocks: int
    height: int


@dataclass(frozen=True)
class Pruned:
    """State below a height is gone, and blocks with their results too when `blocks` says so."""

    below: int
    blocks: bool


@dataclass
class Faults:
    """All switches, off at first."""

    making: bool = True
    away: bool = False
    starting: bool = False
    drop: int = 0
    refusing: Refusing | None = None
    index: bool = True
    pruned: Pruned | None = None
    rewound: Rewound | None = None
    chain_id: str | None = None
    fork: int = 0
    disguise: Disguise | None = None
    injected: list[bytes] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)

    def shown_height(self, real: int) -> int:
        """Return the height that the node shows when its own is `real`."""
        back = self.rewound
        if back is None or real >= back.height + back.blocks:
            return real
        return max(real - back.blocks, min(real, 1))

    def block(self, height: int, real: Callable[[int], Block]) -> Block:
        """Return a block as it is shown; raise QueryError where it is pruned."""
        lowest = self.earliest
        if height < lowest:
            text = f"height {height} is not available, lowest height is {lowest}"
            raise QueryError(grpc.StatusCode.UNKNOWN, text)
        return self.disguise.block(height) if self.disguise else real(height)

    @property
    def earliest(self) -> int:
        """The lowest height whose block can be had."""
        return max(self.pruned.below, 1) if self.pruned and self.pruned.blocks else 1

    def check_state(self, height: int, newest: int) -> None:
        """Raise QueryError where the state after a block is pruned."""
        if self.pruned is not None and height < self.pruned.below:
            why = "version mismatch on immutable IAVL tree; version does not exist. Version has either been pruned, "
            why += f"or is for a future block height (latest height: {newest})"
            raise sdk_query_error(38, f"failed to load state at height {height}; {why}")

    def refusal(self) -> Verdict | None:
        """Return what the next broadcast is refused with, counting it; None when it is not."""
        if self.refusing is None:
            return None
        found = self.refusing.verdict
        self.refusing.count -= 1
        if self.refusing.count <= 0:
            self.refusing = None
        return found

    def dropping(self) -> bool:
        """Return whether the transaction that was just accepted vanishes, counting it."""
        if not self.drop:
            return False
        self.drop -= 1
        return True

    def take_orders(self) -> tuple[list[bytes], list[Order]]:
        """Return and forget what the next block is to hold and to do."""
        taken = (self.injected, self.orders)
        self.injected, self.orders = [], []
        return taken
