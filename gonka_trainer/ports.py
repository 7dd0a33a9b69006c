"""What the daemon needs of the outside, as interfaces. Adapters implement them; tests run one suite on each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gonka_trainer import jobs
from gonka_trainer.round.commands import Keep
from gonka_trainer.round.environment import Environment, EpochSchedule
from gonka_trainer.round.events import Event
from gonka_trainer.round.records import PlacedRecord, Record
from gonka_trainer.types import Address, Digest, Height, Verdict


@dataclass(frozen=True, slots=True)
class TxResult:
    """What the chain says of a transaction, by its position in the block. `log` and `data` are raw bytes."""

    code: int
    codespace: str
    log: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Block:
    """A whole block: raw transactions and their results by position; times in nanoseconds since 1970."""

    height: Height
    block_hash: Digest
    previous_hash: Digest
    time_ns: int
    transactions: tuple[bytes, ...]
    results: tuple[TxResult, ...]


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What the node says of itself."""

    chain_id: str
    height: Height
    earliest_height: Height
    time_ns: int
    syncing: bool
    version: str
    training_module: bool


@dataclass(frozen=True, slots=True)
class Receipt:
    """A transaction that is in a block with code 0."""

    tx_hash: str
    height: Height
    fee: int
    gas_used: int


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run that is on chain: its manifest's hash, where the document may be, and who put it there at which height.

    `task_id` is 0 where the source has no tasks. `named` are the participants that the source names for it, None where
    it names nobody. What a source says of `author` is a claim until `TaskSource.vouched` has looked at it.
    """

    manifest_hash: Digest
    url: str
    author: Address
    height: Height
    task_id: int
    named: frozenset[Address] | None = None


@dataclass(frozen=True, slots=True)
class ConfirmationPoc:
    """A confirmation of proof of compute that the chain has called: heights, each the first of its stage but `end`.

    GPUs are wanted at generation_start <= h < end; `trigger` is where it was called.
    """

    trigger: Height
    generation_start: Height
    validation_start: Height
    end: Height


@dataclass(frozen=True, slots=True)
class ProofOfCompute:
    """When GPUs are wanted for proof of compute, as of the latest block: the schedule, and a confirmation going on.

    `epoch_shift_blocks` is how much earlier than epoch_length the first proof of compute of the chain comes.
    """

    height: Height
    time_ns: int
    schedule: EpochSchedule
    confirmation: ConfirmationPoc | None
    epoch_shift_blocks: int = 0


class Chain(Protocol):
    """Reading a chain node: ChainUnavailableError while it does not answer, ChainError for what will not mend."""

    async def info(self) -> NodeInfo:
        """Ask the node about itself."""

    async def block(self, height: Height) -> Block:
        """Return the block; ChainUnavailableError when it is not there yet."""

    async def environment(self, height: Height) -> Environment:
        """Return epoch schedule and validation weights as of the end of the block."""

    async def proof_of_compute(self) -> ProofOfCompute:
        """Return when GPUs are wanted, as the chain says now; a chain without epochs wants none."""


class RunLog(Protocol):
    """One run's records on the chain, over one carrier."""

    def records(self, block: Block) -> tuple[PlacedRecord, ...]:
        """Return the run's records of the block in order: pure, never raises for any bytes."""

    async def publish(self, records: Sequence[Record]) -> Receipt:
        """Send the records (in one transaction where the carrier can) and wait until they are in a block with code 0.

        Sends again with the same records when an earlier try is known to have failed or to be past its timeout, never
        before. Runs until it succeeds or is cancelled; raises ChainError when sending again cannot help.
        """


class TaskSource(Protocol):
    """Where runs come from."""

    @property
    def settled(self) -> bool:
        """Whether what was found once stays as it was, so that only newer heights need be asked for."""

    async def runs(self, since: Height) -> tuple[FoundRun, ...]:
        """Return the runs that were put on chain at or after the height, oldest first."""

    async def vouched(self, run: FoundRun) -> bool:
        """Whether the run's author signed that it be put on chain: read from a block, not from a module's state.

        ChainError when the block cannot be had.
        """


class ChunkIndex(Protocol):
    """The checkable list of a blob's or state's chunks (`gradient.blob.BlobIndex`, `gradient.state.StateIndex`)."""

    @property
    def preamble(self) -> bytes:
        """The header's canonical bytes."""

    @property
    def leaf_list(self) -> bytes:
        """The leaf list's wire form."""

    @property
    def count(self) -> int:
        """How many chunks there are."""

    def chunk_bytes(self, i: int) -> int:
        """The exact length of chunk i."""

    def offset(self, i: int) -> int:
        """Where chunk i starts in the whole payload."""

    def check(self, i: int, data: bytes) -> Verdict:
        """Check a chunk: digest first, then form, then the exact sum."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a peer's daemon listens, and the SPKI digest of its TLS certificate, from its join record."""

    participant: Address
    host: str
    port: int
    spki: Digest


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A blob or state on disk: preamble, leaf list and the payload's file (raw bytes, chunk after chunk)."""

    preamble: bytes
    leaf_list: bytes
    payload: Path


class ObjectSource(Protocol):
    """What the peer server serves: looked up by what the records name."""

    def blob(self, round_number: int, commitment: Digest) -> StoredObject | None:
        """Return a blob whose bytes (or a part: see `has`) are here."""

    def state(self, root: Digest) -> StoredObject | None:
        """Return a complete state."""

    def has(self, stored: StoredObject, chunk: int) -> bool:
        """Whether the chunk's checked bytes are on disk."""

    def document(self, digest: Digest) -> bytes | None:
        """Return a small document by its digest: the manifest, an environment's preimage."""


class Gate(Protocol):
    """Who may ask for what (docs/protocol.md 1: serving by role)."""

    def caller(self, spki: Digest) -> Address | None:
        """Return the participant that a certificate's SPKI digest belongs to, if it is in the run's joins."""

    def may_have_blob(self, caller: Address, round_number: int, commitment: Digest) -> bool:
        """Whether the commit window of the round is closed here and the caller is a member or validator."""

    def may_have_state(self, caller: Address) -> bool:
        """Whether the caller joined in any role."""


class Peers(Protocol):
    """Fetching from peers. Faults of peers come back as Verdicts, never as exceptions."""

    async def fetch_index(
        self, endpoint: Endpoint, kind: str, key: bytes, round_number: int
    ) -> tuple[bytes, bytes] | Verdict:
        """Return (preamble, leaf list) of a blob ("blob", commitment) or state ("state", root)."""

    def fetch_chunks(
        self, endpoint: Endpoint, kind: str, key: bytes, round_number: int, chunks: Sequence[int]
    ) -> AsyncIterator[tuple[int, bytes] | Verdict]:
        """Stream the chunks in the order asked; a Verdict ends the stream."""

    async def fetch_document(self, endpoint: Endpoint, digest: Digest) -> bytes | Verdict:
        """Return a document by its digest (any tag: the caller checks)."""


class Journal(Protocol):
    """The host's events on disk: what is appended is durable when `append` returns."""

    def append(self, event: Event) -> None:
        """Add one event."""

    def replay(self) -> Iterable[Event]:
        """Give all events from the first on."""


class ObjectDraft(Protocol):
    """A blob or state that is being written, of a size known before; gone when left unpublished."""

    @property
    def payload(self) -> Path:
        """The payload's file, to be written in place (memory-mapped) by whoever does not append."""

    def append(self, data: bytes) -> None:
        """Write the next bytes of the payload."""

    def publish(self, kind: str, key: bytes, round_number: int, index: ChunkIndex) -> StoredObject:
        """Make the object durable under its commitment or root."""


class Objects(ObjectSource, Protocol):
    """Blobs ("blob"), states ("state") and small documents on disk."""

    def complete(self, kind: str, key: bytes, round_number: int) -> bool:
        """Whether all of it is here."""

    def draft(self, size_bytes: int) -> AbstractContextManager[ObjectDraft]:
        """Start an object of this host's own; StorageError when the disk has no room for it."""

    def put_document(self, digest: Digest, data: bytes) -> None:
        """Keep a small document under the digest that names it."""

    def remove_document(self, digest: Digest) -> None:
        """Forget a small document, if it is here."""

    def prune(self, keep: Keep) -> tuple[Path, ...]:
        """Remove the states and the rounds' blobs that `keep` does not name; return what was removed."""


@dataclass(frozen=True, slots=True)
class Blame:
    """What one peer did wrong while an object was fetched."""

    participant: Address
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Fetched:
    """The outcome of a fetch: `stored` is the complete object, None when nobody had the rest.

    `form` is GOOD, or the author's fault: what matches the commitment and breaks a rule. `blames` are the senders'
    faults, also when it went well in the end. Asking again goes on where this stopped.
    """

    stored: StoredObject | None
    form: Verdict
    blames: tuple[Blame, ...]


OpenIndex = Callable[[bytes, bytes], "ChunkIndex | Verdict"]
"""From preamble and leaf list to a checked index, or what is wrong with them."""


class Fetcher(Protocol):
    """Getting whole objects from peers into the store. Faults of peers come back as values."""

    async def fetch(
        self, kind: str, key: Digest, round_number: int, holders: Sequence[Endpoint], open_index: OpenIndex
    ) -> Fetched:
        """Fetch from the holders, the preferred first, what is not here yet."""

    async def document(
        self, holders: Sequence[Endpoint], digest: Digest, check: Callable[[bytes], bool]
    ) -> bytes | tuple[Blame, ...]:
        """Return the first document for the digest that passes the check, or what each holder did wrong."""


class Stops(Protocol):
    """How long the last stops of the worker took."""

    @property
    def bound_seconds(self) -> float:
        """When the worker is killed, from the hold on."""

    @property
    def seconds(self) -> float:
        """The longest of the last stops; the bound when none was measured."""

    def add(self, seconds: float) -> None:
        """Keep one more."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What came of a round's inner steps, and on what they were made (a header's `hardware`)."""

    done: jobs.Done
    hardware: str


class Unfinished(Protocol):
    """The result so far of one round whose training was interrupted, on disk."""

    def keep(self, trained: Trained, base_root: str) -> Trained:
        """Take the result in hand, in place of any other, and return it with the file where it now is."""

    def of(self, round_number: int, base_root: str) -> Trained | None:
        """Return what is kept of the round from this base."""

    def clear(self) -> None:
        """Forget it."""


class Trainer(Protocol):
    """The worker behind its job link. WorkerError when it cannot do its work."""

    async def start(self) -> jobs.Ready:
        """Have a worker ready and return what it says of itself."""

    async def train(self, job: jobs.Train, progress: Callable[[jobs.Progress], None]) -> jobs.Done:
        """Run a round's inner steps; `yielded` says that `vacate` ended them before their time."""

    def finish(self, round_number: int) -> None:
        """Ask for the round's end after the step in hand."""

    async def stop(self) -> None:
        """Have the worker end after the job in hand; the next job starts one."""

    async def evaluate(self, label: str, path: str) -> jobs.Evaluated:
        """Return the held-out loss of the parameters in a flat file."""

    @property
    def admitted(self) -> bool:
        """Whether a worker may be started."""

    @property
    def in_use(self) -> bool:
        """Whether any process of a worker is alive."""

    def bar(self) -> None:
        """From now on no worker is started: calls wait for `admit`."""

    def admit(self) -> None:
        """Let workers start again."""

    async def vacate(self, seconds: float) -> None:
        """Bar, let the worker keep the round in hand, and end it, by SIGKILL after that long; no process is left."""
