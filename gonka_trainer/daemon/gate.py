"""Who may have what of this host, and where the others are: both follow from the join records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gonka_trainer.ports import Endpoint
from gonka_trainer.round.commands import Serve
from gonka_trainer.round.records import Join
from gonka_trainer.round.state import CoreState
from gonka_trainer.types import Address, Digest, Role


class RosterGate:
    """Implements `ports.Gate` over the core's state and the standing Serve commands. `name` renders addresses."""

    def __init__(self, state: Callable[[], CoreState], name: Callable[[Address], str]) -> None:
        self._state = state
        self.name = name
        self._open: dict[tuple[int, Digest], int] = {}

    @contextmanager
    def opened(self, command: Serve) -> Iterator[None]:
        """Serve these blobs inside the block."""
        keys = [(command.round, commitment) for _, commitment in command.commitments]
        for key in keys:
            self._open[key] = self._open.get(key, 0) + 1
        try:
            yield
        finally:
            for key in keys:
                self._open[key] -= 1

    def caller(self, spki: Digest) -> Address | None:
        """Return the participant whose counting join names this certificate."""
        for participant, join in self._joins():
            if join.spki == spki:
                return participant
        return None

    def may_have_blob(self, caller: Address, round_number: int, commitment: Digest) -> bool:
        """Members and validators, once the commit window is closed here."""
        join = self._state().membership.join_of(caller)
        if join is None or join.role is Role.OBSERVER:
            return False
        return self._open.get((round_number, commitment), 0) > 0

    def may_have_state(self, caller: Address) -> bool:
        """Whoever joined, in any role."""
        return self._state().membership.join_of(caller) is not None

    def endpoint(self, participant: Address) -> Endpoint | None:
        """Return where the participant's latest join says that it listens; None without a join or a usable address."""
        return endpoint_of(participant, self._state().membership.join_of(participant))

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return all that can be dialled, sorted by participant."""
        found = (endpoint_of(participant, join) for participant, join in self._joins())
        return tuple(endpoint for endpoint in found if endpoint is not None)

    def _joins(self) -> Iterator[tuple[Address, Join]]:
        membership = self._state().membership
        for participant in sorted(membership.participants):
            join = membership.join_of(participant)
            if join is not None:
                yield participant, join


def endpoint_of(participant: Address, join: Join | None) -> Endpoint | None:
    """Return where a join says that its daemon listens; None without a join or an address that can be dialled."""
    if join is None:
        return None
    try:
        host = join.host.decode("ascii")
    except UnicodeDecodeError:
        return None
    usable = host and join.port and all(c.isalnum() or c in ".-:" for c in host)
    return Endpoint(participant, host, join.port, join.spki) if usable else None
