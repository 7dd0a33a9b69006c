"""What the actions work with: one run's rules, this host's identity, and the adapters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gonka_trainer.daemon.report import Reporter
from gonka_trainer.daemon.voice import Presence, Voices
from gonka_trainer.gradient.codec import Codec, codec
from gonka_trainer.gradient.header import Expected
from gonka_trainer.gradient.layout import Layout, layout_root
from gonka_trainer.gradient.outer import OuterSettings
from gonka_trainer.manifest import Manifest
from gonka_trainer.ports import Chain, Endpoint, Fetcher, Objects, Trainer, Unfinished
from gonka_trainer.round.events import Event
from gonka_trainer.round.params import RoundParams
from gonka_trainer.round.state import CoreState
from gonka_trainer.types import Address, Digest


@dataclass(frozen=True)
class Run:
    """The rules of the run, in the forms in which they are used. `participant` is None for an observer."""

    manifest: Manifest
    manifest_hash: Digest
    params: RoundParams
    layout: Layout
    layout_root: Digest
    codec: Codec
    outer: OuterSettings
    participant: Address | None

    def expected(self, round_number: int, participant: Address, base_root: Digest) -> Expected:
        """Return what the header of this participant's blob must say."""
        return Expected(
            chain_id=self.manifest.chain_id,
            run_id=self.params.run_id,
            round=round_number,
            participant=participant,
            base_root=base_root,
            manifest_hash=self.manifest_hash,
            layout_root=self.layout_root,
            codec=self.codec.name,
            codec_version=self.codec.version,
            max_inner_steps=self.manifest.inner.steps,
            tokens_per_step=self.manifest.inner.tokens_per_step,
        )


@dataclass(frozen=True)
class Kit:
    """The run, the adapters, how this host is known, and the two ways back to the host."""

    run: Run
    chain: Chain
    log: Voices
    store: Objects
    fetcher: Fetcher
    trainer: Trainer
    reporter: Reporter
    presence: Presence
    work: Path
    state: Callable[[], CoreState]
    emit: Callable[[Event], None]
    unfinished: Unfinished

    @property
    def endpoint(self) -> Endpoint:
        """This host's own endpoint as it is to be known."""
        return self.presence.endpoint

    @property
    def key(self) -> Address:
        """The address of the account key that speaks for this host now."""
        return self.log.key


def make_run(manifest: Manifest, manifest_hash: Digest, params: RoundParams, participant: Address | None) -> Run:
    """Derive what the actions need from the manifest."""
    layout = manifest.layout
    return Run(
        manifest,
        manifest_hash,
        params,
        layout,
        layout_root(layout),
        codec(manifest.codec, manifest.codec_version),
        OuterSettings(np.float32(manifest.outer.learning_rate), np.float32(manifest.outer.momentum)),
        participant,
    )
