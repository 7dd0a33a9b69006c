"""What a planted fault is: one or more textual replacements in the core (or, where said, in the world's own parts).

A pattern must occur exactly once in its file, so that a change of the core cannot silently turn a mutant into nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Patch:
    """Replace `old`, which occurs once in `file`, by `new`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """A fault by name. `always`: killed in the default run too, not only in the slow one."""

    name: str
    patches: tuple[Patch, ...]
    always: bool = False


def core(name: str, file: str, old: str, new: str, always: bool = False) -> Mutant:
    return Mutant(name, (Patch(f"gonka_trainer/round/{file}.py", old, new),), always)


def world(name: str, *patches: tuple[str, str, str]) -> Mutant:
    return Mutant(name, tuple(Patch(f"tests/sim/{file}.py", old, new) for file, old, new in patches))
