"""The mempool: what CheckTx let in, in order, and the hashes seen of late (CometBFT's cache)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from gonka_devnet.app import App, At
from gonka_devnet.errors import SDK
from gonka_devnet.module import AbciError, Store
from gonka_devnet.store import Layer
from gonka_devnet.transaction import Tx

MOST_TXS = 20_000
MOST_BYTES = 1_048_576
CACHED = 100_000
IN_CACHE, FULL, TOO_LARGE = 19, 20, 21


@dataclass(frozen=True)
class Verdict:
    """CheckTx's answer: code 0 when the transaction is in."""

    code: int = 0
    codespace: str = ""
    log: str = ""


class Mempool:
    """Transactions that wait for a block. Its check state is the committed one with their ante rules applied."""

    def __init__(self, app: App, committed: Store, at: At) -> None:
        self._app = app
        self._committed = committed
        self._at = at
        self._state = Layer(committed)
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._waiting: OrderedDict[bytes, Tx] = OrderedDict()

    @property
    def state(self) -> Store:
        """The state with what waits applied: simulations run on it."""
        return self._state

    @property
    def at(self) -> At:
        """The newest block."""
        return self._at

    def __len__(self) -> int:
        return len(self._waiting)

    def _remember(self, digest: bytes) -> None:
        self._seen[digest] = None
        if len(self._seen) > CACHED:
            self._seen.popitem(last=False)

    def add(self, raw: bytes, digest: bytes) -> Verdict:
        """Check a transaction and keep it if it passes."""
        if len(raw) > MOST_BYTES:
            return Verdict(TOO_LARGE, SDK)
        if len(self._waiting) >= MOST_TXS:
            return Verdict(FULL, SDK)
        if digest in self._seen:
            return Verdict(IN_CACHE, SDK)
        self._remember(digest)
        try:
            tx = self._app.decoder.decode(raw)
            self._app.check(tx, self._state, self._at)
        except AbciError as error:
            self._seen.pop(digest, None)
            return Verdict(error.code, error.codespace, error.log)
        self._waiting[digest] = tx
        return Verdict()

    def forget(self, digest: bytes) -> None:
        """Lose a transaction as if it had never come: its bytes, its sequence and its timestamp may come again."""
        self._waiting.pop(digest, None)
        self._seen.pop(digest, None)
        self._check_all_again()

    def waiting(self) -> list[Tx]:
        """Return what waits, oldest first."""
        return list(self._waiting.values())

    def committed(self, done: Iterable[tuple[Tx, int]], at: At) -> None:
        """Take a block's transactions (with their codes) out and look at the rest again on the new state.

        One that failed in the block leaves the cache: its bytes may come again.
        """
        for tx, code in done:
            self._waiting.pop(tx.hash, None)
            if code:
                self._seen.pop(tx.hash, None)
            else:
                self._remember(tx.hash)
        self._at = at
        self._check_all_again()

    def _check_all_again(self) -> None:
        self._state = Layer(self._committed)
        for tx in self.waiting():
            self._check_again(tx)

    def _check_again(self, tx: Tx) -> None:
        from gonka_devnet.ante import Mode

        try:
            self._app.check(tx, self._state, self._at, Mode.RECHECK)
        except AbciError:
            self._waiting.pop(tx.hash)
            self._seen.pop(tx.hash, None)
