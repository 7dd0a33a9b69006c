"""`gonka-trainer`: errors for users become one clear message and exit status 1."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line."""
    # The pinning handshake (exchange/pin.py) ends before TLS is complete, which gRPC would tell the log each time; and
    # a port that is taken gets one message of ours.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from gonka_trainer.cli.commands import app
    from gonka_trainer.errors import UserError

    try:
        app()
    except* UserError as group:
        for error in _leaves(group):
            print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except* KeyboardInterrupt:
        sys.exit(130)


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    """Return the errors in a tree of groups, each text once."""
    found: dict[str, BaseException] = {}
    for error in group.exceptions:
        inner = _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
        found.update((str(each), each) for each in inner)
    return list(found.values())


if __name__ == "__main__":
    main()
