"""Exceptions for users: what is wrong, where, and what to do. Faults of peers are values (`types.Verdict`)."""

from __future__ import annotations


class UserError(Exception):
    """A condition that a person must mend. The text names what and where; `remedy` says what to do."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what if not remedy else f"{what}\n  -> {remedy}")
        self.what = what
        self.remedy = remedy


class ConfigError(UserError):
    """A file, key or value of the configuration, of a manifest or of the command line is wrong."""


class ChainError(UserError):
    """The chain node cannot be used: unreachable, on another chain, or without what is needed."""


class ChainUnavailableError(ChainError):
    """The chain node does not answer now; trying again later can help."""


class NetworkNodeError(UserError):
    """The host's network node or ML node refuses, or answers what cannot be used."""


class NetworkNodeUnavailableError(NetworkNodeError):
    """The network node or ML node does not answer now; trying again later can help."""


class StorageError(UserError):
    """A file of the data directory cannot be read or written, or is damaged."""


class WorkerError(UserError):
    """The training worker cannot be started, died, or broke the job link's rules."""


class MachineError(UserError):
    """This machine would compute other bits than the other hosts (flush-to-zero, contraction)."""


class ProtocolError(UserError):
    """This host cannot go on without harm: its root differs from the final one, or the run contradicts its manifest."""


class DecodeError(ValueError):
    """Bytes are not the canonical encoding of what they are read as: the only error of decoders of foreign bytes."""
