"""Checking what a node says that is not one's own, before any of it is used.

A block is believed when the next header is: that header names the block's hash and the hash of its results, and carries
the validators' signatures. So such a node is one block behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from gonka_trainer.chain import blocks
from gonka_trainer.chain.headers import Header, header_hash
from gonka_trainer.chain.light import Believed, LightChain, SignedHeader, ValidatorSet, signers
from gonka_trainer.chain.node import ChainNode
from gonka_trainer.chain.transport import GoneError, NotServedError
from gonka_trainer.errors import ChainError, DecodeError
from gonka_trainer.ports import Block
from gonka_trainer.types import Digest, Height

_LOG: Final = logging.getLogger(__name__)
_KEPT_SETS: Final = 16


@dataclass(frozen=True, slots=True)
class TrustedBlock:
    """A block that the operator has from a source of his own: where checking begins."""

    height: Height
    block_hash: Digest


class Verifier:
    """Checks blocks of nodes that are not one's own, against one chain of believed headers for all nodes."""

    def __init__(self, trusted: TrustedBlock | None = None) -> None:
        self._trusted = trusted
        self._light = LightChain()
        self._sets: OrderedDict[Digest, ValidatorSet] = OrderedDict()
        self._signing: dict[ChainNode, bool] = {}
        self._said: set[str] = set()
        self._lock = asyncio.Lock()

    def note(self, node: ChainNode, header: Header) -> None:
        """Believe a header that one's own node gave; ChainError when it is not the block that the operator trusts."""
        self._check_trusted(header, node.name)
        self._light.add(header)

    async def check(self, node: ChainNode, header: Header, block: Block) -> None:
        """Check a block with its results; NotYetError while the next header is not there; ChainError on any breach."""
        try:
            blocks.check_block(header, block)
            following, signed = await self._following(node, Height(header.height + 1))
            if following.previous_hash != block.block_hash:
                raise DecodeError(f"block {following.height} does not follow block {block.height}")
            if following.chain_id != header.chain_id:
                raise DecodeError(f"block {following.height} is of chain {following.chain_id}")
            blocks.check_results(block, following)
            async with self._lock:
                await self._believe(node, following, signed)
                if not self._light.is_linked(header):
                    raise DecodeError(f"block {header.height} is not the one that block {following.height} names")
                self._light.add(header)
        except DecodeError as error:
            raise node.unsound(error) from error

    # -- getting ----------------------------------------------------------------------------------------------------

    async def _following(self, node: ChainNode, height: Height) -> tuple[Header, SignedHeader | None]:
        """Return a header with its commit, or without where the node has none to give."""
        if self._signing.get(node, True):
            try:
                signed = await node.signed_header(height)
            except NotServedError as error:
                self._without_signatures(node, error)
            else:
                return signed.header, signed
        return await node.header(height), None

    def _without_signatures(self, node: ChainNode, error: NotServedError) -> None:
        if self._signing.get(node):
            raise ChainError(
                f"chain node {node.name} gave the validators' signatures and no longer does: {error.what}",
                "use another node, or start again to go on without signatures",
            ) from error
        if self._trusted is not None:
            raise ChainError(
                f"{error.what}: without the validators' signatures nothing leads to chain.trusted_block",
                "use another node, or empty chain.trusted_block to go on with hashes alone",
            ) from error
        self._signing[node] = False
        self._say(f"{error.what}: its blocks are checked by their hashes alone, not by the validators' signatures")

    async def _set(self, node: ChainNode, wanted: Digest, height: int) -> ValidatorSet:
        """Return the validators of the height, who must hash to `wanted`."""
        if wanted not in self._sets:
            found = await node.validators(Height(height))
            if found.hash != wanted:
                raise DecodeError(f"validators of block {height} do not hash to its validators_hash")
            self._sets[wanted] = found
            if len(self._sets) > _KEPT_SETS:
                self._sets.popitem(last=False)
        return self._sets[wanted]

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            _LOG.warning("%s", text)

    # -- believing --------------------------------------------------------------------------------------------------

    async def _believe(self, node: ChainNode, header: Header, signed: SignedHeader | None) -> None:
        await self._begin(node)
        self._check_trusted(header, node.name)
        try:
            if signed is not None:
                await self._authenticate(node, signed)
        except NotServedError as error:  # commits are served, validators are not
            self._without_signatures(node, error)
        self._light.is_linked(header)
        self._light.add(header)

    async def _begin(self, node: ChainNode) -> None:
        """Take the operator's trusted block as the first that is believed."""
        if self._trusted is None or self._light.first is not None:
            return
        try:
            header = await node.header(self._trusted.height)
        except GoneError as error:
            raise ChainError(error.what, "name a later block in chain.trusted_block") from error
        self._check_trusted(header, node.name)
        self._light.add(header)

    def _check_trusted(self, header: Header, name: str) -> None:
        trusted = self._trusted
        if trusted is not None and header.height == trusted.height and header_hash(header) != trusted.block_hash:
            raise ChainError(
                f"block {header.height}: {name} says {header_hash(header).hex().upper()}, "
                f"chain.trusted_block says {trusted.block_hash.hex().upper()}",
                "one of them is of another chain: get the hash from a node that you trust, use no other node",
            )

    async def _authenticate(self, node: ChainNode, signed: SignedHeader) -> None:
        """Believe a header by its signatures; headers in between are asked for where too few validators stayed."""
        header = signed.header
        keys = signers(signed, await self._set(node, header.validators_hash, header.height))
        self._signing[node] = True
        if not self._light.is_linked(header):
            base = self._light.below(header.height)
            if base is None:
                self._unanchored(node, header)
            else:
                await self._across(node, header, keys, base)
        self._light.add(header)

    def _unanchored(self, node: ChainNode, header: Header) -> None:
        """Say of a header that no earlier one vouches for whose word it is taken on."""
        first = self._light.first
        if first is None:
            name = f"{header.height}:{header_hash(header).hex().upper()}"
            self._say(
                f"the validators of block {header.height} are taken as chain node {node.name} gives them; "
                f"compare {name} with a source that you trust, or name a block in chain.trusted_block"
            )
        else:
            self._say(f"blocks before {first.height}, where trust begins, are checked by the validators that they name")

    async def _across(self, node: ChainNode, header: Header, keys: frozenset[bytes], base: Believed) -> None:
        """Go from a believed header to a later one, in one step or by halves."""
        while True:
            trusted = await self._set(node, base.next_validators_hash, base.height + 1)
            if 3 * trusted.power_of(keys) > trusted.power:
                return
            middle = Height((base.height + header.height) // 2)
            if middle == base.height:
                raise DecodeError(f"block {header.height} is signed by other validators than block {base.height} names")
            between = await node.signed_header(middle)
            if between.header.chain_id != header.chain_id:
                raise DecodeError(f"block {middle} is of chain {between.header.chain_id}")
            await self._authenticate(node, between)
            base = self._light.below(header.height) or base
