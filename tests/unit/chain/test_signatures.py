"""Our signatures against those of an independent signer: the same bytes."""

from __future__ import annotations

import random

from cosmpy.crypto.keypairs import PrivateKey, PublicKey

from gonka_trainer.chain import keys

KEYS = 200
HALF_ORDER = keys._ORDER // 2


def test_200_keys_and_messages_give_the_bytes_that_cosmpy_gives() -> None:
    draw = random.Random(20261130)
    lower = 0
    for _ in range(KEYS):
        secret = draw.randrange(1, keys._ORDER).to_bytes(32, "big")
        message = draw.randbytes(draw.randrange(0, 400))
        mine, theirs = keys.AccountKey.from_bytes(secret), PrivateKey(secret)
        signature = mine.sign(message)
        assert signature == theirs.sign(message, deterministic=True)
        assert signature == mine.sign(message)
        assert int.from_bytes(signature[32:], "big") <= HALF_ORDER
        raw = theirs.sign(message, deterministic=True, canonicalise=False)
        lower += raw == signature
        assert PublicKey(mine.public_key).verify(message, signature)
    assert KEYS // 4 < lower < 3 * KEYS // 4, "both halves were met, so the lower one was chosen"
