"""A wrong configuration names file, key and value."""

from __future__ import annotations

from pathlib import Path

import pytest

from gonka_trainer.config_file import endpoint, load_config
from gonka_trainer.errors import ConfigError

GOOD = """
data_dir = "data"
[chain]
grpc = "127.0.0.1:9090"
rpc = "http://127.0.0.1:26657"
chain_id = "gonka-mainnet"
[keys]
account_file = "account.key"
[exchange]
bind = "0.0.0.0:7070"
advertise = "host.example:7070"
[worker]
data = "/srv/corpus.txt"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "gonka-trainer.toml"
    path.write_text(text)
    return path


def test_a_good_file_is_read_with_paths_relative_to_it(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, GOOD), {})
    assert config.data_path == tmp_path / "data"
    assert config.keys.account_file == str(tmp_path / "account.key")
    assert config.worker.data == "/srv/corpus.txt"
    assert config.chain.style == "unordered"


def test_the_environment_stands_above_the_file(tmp_path: Path) -> None:
    environment = {
        "GONKA_TRAINER_CHAIN_GRPC": "node:9090",
        "GONKA_TRAINER_WORKER_THREADS": "8",
        "GONKA_TRAINER_CHAIN_GAS_PRICE": "0.25",
        "GONKA_TRAINER_CHAIN_POLL_SECONDS": "1",
        "GONKA_TRAINER_WORKER_EVALUATE": "false",
        "GONKA_TRAINER_DATA_DIR": "/var/lib/gonka-trainer",
        "OTHER": "x",
    }
    config = load_config(write(tmp_path, GOOD), environment)
    assert (config.chain.grpc, config.worker.threads, config.worker.evaluate) == ("node:9090", 8, False)
    assert (config.chain.gas_price, config.chain.poll_seconds) == ("0.25", 1.0)
    assert config.data_path == Path("/var/lib/gonka-trainer")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"127.0.0.1:9090"', '"127.0.0.1"', "chain.grpc: '127.0.0.1' is not host:port"),
        ('"127.0.0.1:9090"', '"127.0.0.1:99999"', "chain.grpc"),
        ('"127.0.0.1:9090"', "9090", "grpc: 9090 is not text in quotes"),
        ('rpc = "http://', 'rpc = "tcp://', "chain.rpc"),
        ("[keys]", "[keyz]", "keyz is unknown"),
        ('account_file = "account.key"', "", "account_file is missing"),
        ("host.example", "https://host.example", "no host name or address"),
        ("host.example", "my_host", "no host name or address"),
        ("host.example", "h" * 65, "longer than 64 bytes"),
        ("[worker]", '[runs]\naccept = ["xyz"]\n[worker]', "runs.accept: 'xyz'"),
        ("[worker]", '[runs]\naccept = "xyz"\n[worker]', "accept: 'xyz' is not a list"),
        ("[worker]", "[worker", "not TOML"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError, match=said) as caught:
        load_config(path, {})
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml"):
        load_config(tmp_path / "none.toml", {})


def test_version_six_addresses_have_brackets() -> None:
    assert endpoint("[::1]:7070", "here") == ("::1", 7070)


@pytest.mark.parametrize(
    ("bind", "forward_to", "circle"),
    [
        ("10.0.0.5:8080", "http://10.0.0.5:8080/", True),
        ("0.0.0.0:8080", "http://localhost:8080", True),
        ("10.0.0.5:8080", "http://127.0.0.1:8080", False),
        ("0.0.0.0:8080", "http://mlnode:8080", False),
        ("0.0.0.0:8080", "http://mlnode:99999", True),
    ],
)
def test_the_ml_node_behind_is_another(tmp_path: Path, bind: str, forward_to: str, circle: bool) -> None:
    more = f'[gpu]\nmode = "ml-node"\n[ml_node]\nbind = "{bind}"\nforward_to = "{forward_to}"\n'
    path = write(tmp_path, GOOD + more)
    if circle:
        with pytest.raises(ConfigError, match=r"ml_node\.forward_to"):
            load_config(path, {})
    else:
        assert load_config(path, {}).ml_node.forward_to == forward_to


def test_a_variable_that_names_no_section_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "host.toml"
    path.write_text(GOOD)
    with pytest.raises(ConfigError, match="GONKA_TRAINER_CHIAN_GRPC: names no section"):
        load_config(path, {"GONKA_TRAINER_CHIAN_GRPC": "127.0.0.1:1"})
    load_config(path, {"GONKA_TRAINER_CHAIN_GRPC": "127.0.0.1:1", "GONKA_TRAINER_DATA_DIR": "d", "PATH": "/"})
