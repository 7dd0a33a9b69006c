"""The tags that stand before every preimage of the core, so that no digest can be read as one of another kind.

Each is the first bytes of the preimage, without a length: none is the beginning of another.
"""

from __future__ import annotations

from typing import Final

ENVIRONMENT: Final = b"gonka-trainer/environment/1"
"""Before the canonical bytes of `environment.encode_environment`."""

COMMITTERS: Final = b"gonka-trainer/committers/1"
"""List digest: before block hash at the close (32 bytes) and the committers' addresses (20 each), sorted."""

ROSTER: Final = b"gonka-trainer/roster/1"
"""Before the canonical bytes of `roster_bytes.encode_roster`."""
