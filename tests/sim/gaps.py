"""History that is gone: hosts that lost their disk, or whose chain node lost blocks, and start from a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gonka_trainer.round.machine import initial
from gonka_trainer.round.resuming import checkpoint_of, refusal, resumed
from gonka_trainer.round.roster_bytes import decode_roster, roster_digest

if TYPE_CHECKING:
    from .host import Host

RECENT = 4
"""An operator takes one of so many last checkpoints."""


class Broken(AssertionError):
    """The core wanted what no daemon could do, or replay differs from what was, or a good checkpoint is refused."""


def wipe(host: Host, blocks: int) -> None:
    """Lose journal and disk; somebody starts the host again from a checkpoint."""
    host.journal, host.blobs, host.states, host.computed = [], {}, {}, set()
    host.state, host.read, host.gap = initial(host.world.plan.params, host.local), 0, True
    host.crash(blocks)


def spares(host: Host) -> bool:
    """Whether what only this host may have can be lost: another honest disk has the state that rounds start from."""
    everybody = [h for h in host.world.hosts if h.plan.honest]
    latest = max((h.state for h in everybody), key=lambda s: s.height).final_root
    return latest == host.world.plan.params.initial_root or any(latest in h.states for h in everybody if h is not host)


def resume(host: Host) -> None:
    """Go on from one of the last checkpoints of the honest hosts, if one helps: the blocks that come next are gone."""
    host.gap = False
    known = list(host.world.checkpoints)[-RECENT:]
    if not known:
        return
    preimage = host.rng.choice(known)
    rules, covered = host.world.plan.params, decode_roster(preimage)
    event = resumed(rules, checkpoint_of(rules, covered), preimage, host.world.documents)
    why = refusal(rules, host.state, event)
    if why and not host.journal:
        raise Broken(f"{host.plan.name}: a checkpoint is refused: {why}")
    if not why:
        host.world.counts["resumed with a journal" if host.journal else "started from a checkpoint"] += 1
        host.read = covered.last_height
        host.feed(event)


def note_checkpoint(host: Host) -> None:
    """Keep the bytes of every round that an honest host saw open."""
    current = host.state.current
    if not host.plan.honest or current is None:
        return
    host.world.checkpoints.setdefault(current.roster.preimage)
    if roster_digest(current.roster.preimage) != current.roster.digest:
        raise Broken(f"{host.plan.name}: a roster digest of other bytes")
