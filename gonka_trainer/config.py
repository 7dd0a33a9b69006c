"""The daemon's settings, frozen: what `config_file` reads. Secrets are never values here: keys are named by file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class NodeConfig:
    """A further chain node: gRPC `host:port`, CometBFT's RPC as URL, and `trust` as in `ChainConfig`."""

    grpc: str
    rpc: str
    trust: str = "own"


@dataclass(frozen=True)
class ChainConfig:
    """The chain node: gRPC `host:port`, CometBFT's RPC as URL, and what transactions pay.

    `chain_id` must be what the node says. `trust` is `own` (a node that you run) or `verify` (another's: blocks are
    checked against their hashes and the validators' signatures); `trusted_block` (HEIGHT:HASH, hex) is where that
    checking starts, the first block read when it is empty. `others` are nodes to fall back to and to compare with.
    `fee_granter` (bech32) pays the fees if it is given. `gas_price` is a decimal in `denom`; `fee_cap` the most that
    one transaction may cost. `style` is unordered or ordered; an unordered transaction times out `timeout_seconds`
    after the latest block's time, an ordered one `timeout_blocks` after the latest block.
    """

    grpc: str
    rpc: str
    chain_id: str
    prefix: str = "gonka"
    denom: str = "ngonka"
    gas_price: str = "0"
    gas_factor: str = "1.4"
    fee_cap: int = 1_000_000_000
    fee_granter: str = ""
    style: str = "unordered"
    trust: str = "own"
    trusted_block: str = ""
    others: tuple[NodeConfig, ...] = ()
    poll_seconds: float = 0.5
    timeout_seconds: int = 60
    timeout_blocks: int = 20


@dataclass(frozen=True)
class KeyConfig:
    """`account_file` holds the daemon's own account key; `participant` (bech32) is the account that it speaks for.

    Empty: the key's own account is the participant. `account_file = "credential:NAME"` is systemd's credential of that
    name; `passphrase_file` (the same forms) opens an encrypted one. `speaks_by` is `delegate` (a record on chain names
    the key) or, on the kv carrier, `authz` (the participant has granted the training messages to the key).
    """

    account_file: str
    participant: str = ""
    passphrase_file: str = ""
    speaks_by: str = "delegate"


@dataclass(frozen=True)
class ExchangeConfig:
    """`bind` is where the peer server listens, `advertise` the `host:port` at which other hosts reach it (NAT).

    `streams_per_peer` is how many streams one peer may have open here at once.
    """

    bind: str
    advertise: str
    streams_per_peer: int = 16


@dataclass(frozen=True)
class WorkerConfig:
    """The training process. `data` is the corpus file that the manifest pins; `command` replaces torchrun in tests.

    `rendezvous` is `standalone` (this machine alone) or `environment`: NODE_RANK, NNODES, MASTER_ADDR and MASTER_PORT
    say which of the host's machines this is (docs/trainshards.md).
    """

    data: str
    processes: int = 1
    threads: int = 1
    command: tuple[str, ...] = ()
    start_seconds: float = 180.0
    evaluate: bool = True
    rendezvous: str = "standalone"


@dataclass(frozen=True)
class GpuConfig:
    """How the GPUs are shared (docs/gpu.md).

    `mode`: `dedicated` (no ML node uses them: never a pause), `ml-node` (an ML node uses them for proof of compute: the
    worker is gone before each), `network-node-admin` (disabled in the network node while a run goes on) or
    `node-manager` (locked through the network node's NodeManager). `stop_seconds` is how long the worker may take to
    leave before it was measured. `state_url` is an ML node whose /api/v1/state is watched for POW. `admin_url`, `node`
    and `accept_lost_epoch` belong to network-node-admin, `manager` and `model` to node-manager.
    """

    mode: str = "dedicated"
    stop_seconds: float = 30.0
    state_url: str = ""
    admin_url: str = ""
    node: str = ""
    accept_lost_epoch: bool = False
    manager: str = ""
    model: str = ""


@dataclass(frozen=True)
class ControlConfig:
    """The control service: a Unix socket (empty: `control.sock` in the data directory), and TCP when `bind` is given.

    TCP needs `token_file`, or `tls_certificate`, `tls_key` and `tls_client_ca` (mutual TLS), or both.
    """

    socket: str = ""
    bind: str = ""
    token_file: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""


@dataclass(frozen=True)
class MlNodeConfig:
    """The ML node's HTTP surface for a network node: off unless `bind`. `forward_to` is a real ML node behind it."""

    bind: str = ""
    forward_to: str = ""


@dataclass(frozen=True)
class RunsConfig:
    """What the operator agrees to: manifest hashes (hex), and runs of the requesters (bech32) in `accept_from`.

    `max_parameters` bounds the models of requesters' runs and `max_fee` (in `chain.denom`) what this host may spend on
    one of them; 0: no limit. `downloads` allows fetching a manifest from its https URL. `checkpoints` (TEXT of
    `gonka-trainer checkpoint`) are where runs may be entered without reading their whole history.
    """

    accept: tuple[str, ...] = ()
    accept_from: tuple[str, ...] = ()
    max_parameters: int = 0
    max_fee: int = 0
    downloads: bool = False
    checkpoints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Config:
    """Everything the daemon is told."""

    data_dir: str
    chain: ChainConfig
    keys: KeyConfig
    exchange: ExchangeConfig
    worker: WorkerConfig
    runs: RunsConfig = field(default_factory=RunsConfig)
    gpu: GpuConfig = field(default_factory=GpuConfig)
    control: ControlConfig = field(default_factory=ControlConfig)
    ml_node: MlNodeConfig = field(default_factory=MlNodeConfig)

    @property
    def data_path(self) -> Path:
        """The data directory."""
        return Path(self.data_dir)
