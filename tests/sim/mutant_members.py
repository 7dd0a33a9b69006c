"""The planted faults of membership, openings and the host itself, and those of the daemon's parts."""

from __future__ import annotations

from typing import Final

from .mutant import core, world

SEARCH: Final = """
from gonka_trainer.round.events import BlockSeen


def searched(blocks: list[BlockSeen]) -> list[BlockSeen]:
    out = []
    for block in blocks:
        later = {(p.author, p.record) for b in blocks[block.height :] for p in b.records}
        kept = tuple(p for p in block.records if (p.author, p.record) not in later)
        out.append(BlockSeen(block.height, block.block_hash, kept))
    return out

"""
"""A reader by search: the index keeps one entry, the last, for the same bytes."""

MEMBERS: Final = (
    core(
        "commit does not end absence",
        "blocks",
        "replace(state, membership=state.membership.present(participant))",
        "state",
        always=True,
    ),
    core(
        "join does not end absence",
        "membership",
        "replace(standing, speaker=author, absence=0)",
        "replace(standing, speaker=author)",
    ),
    core(
        "one absence too many",
        "absence",
        "if standing.absence >= absent_rounds:",
        "if standing.absence > absent_rounds:",
    ),
    core("drop bars nobody", "absence", "replace(standing, barred=ended)", "standing"),
    core(
        "a join of the block of the bar brings back",
        "membership",
        "entry.joined.height > standing.barred",
        "entry.joined.height >= standing.barred",
    ),
    core(
        "void rounds count as absence",
        "blocks",
        "    if end.triple is not None:\n        members, dropped",
        "    if True:\n        members, dropped",
    ),
    core(
        "void changes the state",
        "blocks",
        "    state = replace(state, own=own.end_round(",
        "    if settled is None and current.posts:\n"
        "        state = replace(state, final_root=min(p.root for p in current.posts.values()))\n"
        "    state = replace(state, own=own.end_round(",
    ),
    core(
        "rotation takes effect at once",
        "blocks",
        "    return noted(replace(state, membership=members), height, author, why)",
        "    who, now = members.speaks_for(author), state.current\n"
        "    if now is not None and who in now.roster.voices:\n"
        "        keys = {**now.roster.keys, author: who}\n"
        "        state = replace(state, current=replace(now, roster=replace(now.roster, keys=keys)))\n"
        "    return noted(replace(state, membership=members), height, author, why)",
    ),
    core(
        "stale written height counts",
        "membership",
        "if not last < record.written <= place.height:",
        "if not record.written <= place.height:",
    ),
    core(
        "written height of the future counts",
        "membership",
        "if not last < record.written <= place.height:",
        "if not last < record.written:",
    ),
    core("revoke ignored", "membership", "    if standing.speaker == record.key:", "    if False:", always=True),
    core("revoke leaves the delegate", "membership", "    if standing.delegate == record.key:", "    if False:"),
    core(
        "join needs no delegate",
        "membership",
        "    if author not in {record.participant, standing.delegate, standing.speaker}:",
        "    if False:",
    ),
    core(
        "the speaking key's own join needs a delegate",
        "membership",
        "{record.participant, standing.delegate, standing.speaker}",
        "{record.participant, standing.delegate}",
    ),
    core(
        "delegate ends the old pair at once",
        "membership",
        "delegate=record.key, delegated=place, written",
        "speaker=None, delegate=record.key, delegated=place, written",
    ),
    core(
        "a key speaks for all it ever joined",
        "membership",
        "if former is not None and former != record.participant:",
        "if False:",
    ),
    core(
        "anybody may leave for anybody",
        "membership",
        "    if author not in {record.participant, standing.speaker}:",
        "    if False:",
    ),
    core(
        "validators vote",
        "membership",
        "return join is not None and join.role is Role.MEMBER",
        "return join is not None",
    ),
    core(
        "excluded one round too short",
        "verdicts",
        "max(number + exclusion_rounds,",
        "max(number + exclusion_rounds - 1,",
    ),
    core("excluded again and again for the same", "verdicts", " and item not in members.tallied", ""),
    core(
        "verdicts of no answer without a challenge",
        "verdicts",
        "if record.outcome == NO_ANSWER and not",
        "if False and not",
    ),
    core("no objection excludes", "verdicts", "        if outcome != NO_OBJECTION:\n", "        if True:\n"),
)

OPENINGS: Final = (
    core("always the environment of the last block", "opening", "    if final is None:\n", "    if True:\n"),
    core("never a fresh environment", "opening", "    if not drawn.decides:\n", "    if False:\n"),
    core(
        "one block late at the start",
        "opening",
        "if state.height < params.start_height:",
        "if state.height <= params.start_height:",
    ),
    core(
        "proof of compute does not stretch training",
        "schedule",
        "    height, left = int(opened), train_blocks\n",
        "    return Height(opened + train_blocks)\n",
    ),
    core(
        "no margin before proof of compute",
        "schedule",
        "k = (height + margin_blocks - schedule.poc_start) // length",
        "k = (height - schedule.poc_start) // length",
    ),
    core(
        "only the first proof of compute counts",
        "schedule",
        "return end if k >= 0 and height < end else None",
        "return end if k == 0 and height < end else None",
    ),
)

OWN: Final = (
    core("blobs of bad form are attested", "own", "work.held.get(p, False) or", "p in work.held or"),
    core(
        "another root is adopted",
        "own",
        "    if computed is None or computed == final.root or own.dispute is not None:",
        "    if True:",
    ),
    core(
        "blobs are served before the close",
        "wanted",
        "    if current is not None and current.closed is not None:\n        yield Serve",
        "    if current is not None:\n        yield Serve",
    ),
    core(
        "state before the last is not kept",
        "own",
        "roots = [own.anchor.former_root, own.anchor.root]",
        "roots = [own.anchor.root]",
    ),
    core(
        "a second update replaces the first",
        "own",
        "    if state.current is None or event.round != work.number or work.commitment is not None:",
        "    if state.current is None or event.round != work.number:",
    ),
)

WORLD: Final = (
    world(
        "own events are not journalled",
        (
            "host",
            "        for event in self.journal:\n",
            "        read = BlockSeen | EnvironmentRead | CaughtUp\n"
            "        for event in [e for e in self.journal if isinstance(e, read)]:\n",
        ),
        ("host", "if same and self.world.exact_replay and self.state != before:", "if False:"),
        ("host", "    BlobHeld,\n    CaughtUp,", "    BlobHeld,\n    BlockSeen,\n    CaughtUp,"),
    ),
    world(
        "the journal loses what the crash interrupts",
        (
            "host",
            "            raise Crashed\n        self.commands = commands\n",
            "            self.journal.pop()\n            raise Crashed\n        self.commands = commands\n",
        ),
    ),
    world(
        "blob digest ignored",
        (
            "host",
            "        if blob is None or (blob.participant, blob.round, blob.base_root) != (",
            "        if blob is None or (blob.round, blob.base_root) != (",
        ),
        (
            "host",
            "            command.participant,\n            command.round,\n            command.base_root,\n        ):",
            "            command.round,\n            command.base_root,\n        ):",
        ),
    ),
    world(
        "late readers search: one entry for the same bytes",
        (
            "check",
            "    for block in world.chain.blocks:\n        if block.height",
            "    for block in searched(world.chain.blocks):\n        if block.height",
        ),
        ("check", "from .world import World\n", f"from .world import World\n{SEARCH}"),
    ),
)
"""Faults that the core cannot make: planted in the host, its fetcher and its reader."""
