"""The module's refusals, in the chain's words and numbers."""

from __future__ import annotations

import grpc

from gonka_devnet.module import AbciError, QueryError

CODESPACE = "inference"


def invalid_request(text: str) -> AbciError:
    """Return what a stateless check says."""
    return AbciError("sdk", 18, f"{text}: invalid request")


def invalid_key(text: str) -> AbciError:
    """Return what a stateless check says of a public key."""
    return AbciError("sdk", 8, f"{text}: invalid pubkey")


def plain(text: str) -> AbciError:
    """Return a Go error that no module registered: codespace `undefined`, code 1, told apart by its text alone."""
    return AbciError("undefined", 1, text)


def task_not_found() -> AbciError:
    """Return inference 1120."""
    return AbciError(CODESPACE, 1120, "training task not found")


def task_already_assigned() -> AbciError:
    """Return inference 1122."""
    return AbciError(CODESPACE, 1122, "training task already assigned")


def invalid_model() -> AbciError:
    """Return inference 1134: a model that governance has not listed."""
    return AbciError(CODESPACE, 1134, "invalid model")


def training_not_allowed() -> AbciError:
    """Return inference 1139. The text is not recorded from a node: code and codespace are what counts."""
    return AbciError(CODESPACE, 1139, "training is not allowed for this address")


def not_found(details: str) -> QueryError:
    """Return NOT_FOUND."""
    return QueryError(grpc.StatusCode.NOT_FOUND, details)


def internal(details: str) -> QueryError:
    """Return INTERNAL."""
    return QueryError(grpc.StatusCode.INTERNAL, details)


def invalid_argument(details: str) -> QueryError:
    """Return INVALID_ARGUMENT."""
    return QueryError(grpc.StatusCode.INVALID_ARGUMENT, details)


def nil_dereference() -> QueryError:
    """Return what the node says when it read through a nested message that the request lacks (a recovered panic)."""
    return internal("runtime error: invalid memory address or nil pointer dereference")
