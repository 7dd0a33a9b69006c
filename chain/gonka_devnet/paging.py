"""Pages of a list as the SDK's queries give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from cosmpy.protos.cosmos.base.query.v1beta1.pagination_pb2 import PageResponse

from gonka_devnet.errors import invalid_argument

DEFAULT_LIMIT = 100
Item = TypeVar("Item")


def page(items: Sequence[Item], request: Any) -> tuple[list[Item], Any]:
    """Return the items of the page that a PageRequest asks for, and its PageResponse.

    The key of a next page is the place of its first item as decimal text; it means nothing to a client.
    """
    if request.key and request.offset:
        raise invalid_argument("invalid request, either offset or key is expected, got both")
    counted = request.count_total or not request.limit
    limit = request.limit or DEFAULT_LIMIT
    start = int(request.key) if request.key.isdigit() else request.offset
    ordered = list(reversed(items)) if request.reverse else list(items)
    end = start + limit
    response = PageResponse(total=len(ordered) if counted and not request.key else 0)
    if end < len(ordered):
        response.next_key = str(end).encode()
    return ordered[start:end], response
