from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from exchange_world import LAYOUT, Host, World, address, keep, liar, make_state

from gonka_trainer.errors import ConfigError, StorageError
from gonka_trainer.exchange import identity as identities
from gonka_trainer.exchange.client import PeerClient
from gonka_trainer.exchange.identity import Identity, load_or_create_identity, new_identity, spki_digest
from gonka_trainer.exchange.server import PeerServer
from gonka_trainer.ports import Endpoint
from gonka_trainer.types import Fault, Verdict


async def _with_state(world: World) -> tuple[Host, bytes]:
    host = await world.host("a")
    index, payload = make_state()
    keep(host.store, "state", index.root, 0, index, payload)
    return host, index.root


async def test_a_joined_host_is_served(world: World) -> None:
    a, root = await _with_state(world)
    b = await world.host("b")
    answer = await b.client.fetch_index(a.endpoint, "state", root, 0)
    assert not isinstance(answer, Verdict)
    assert len(answer[1]) == 2 * LAYOUT.chunk_count * 32


async def test_a_stranger_gets_nothing_on_any_method(world: World) -> None:
    a, root = await _with_state(world)
    async with PeerClient(new_identity()) as stranger:
        index = await stranger.fetch_index(a.endpoint, "state", root, 0)
        chunks = [answer async for answer in stranger.fetch_chunks(a.endpoint, "state", root, 0, [0])]
        document = await stranger.fetch_document(a.endpoint, root)
    for answer in (index, chunks[0], document):
        assert isinstance(answer, Verdict)
        assert "PERMISSION_DENIED" in answer.detail
    assert a.store.reads == 0


async def test_a_strangers_request_is_refused_before_it_is_parsed(world: World) -> None:
    a, _ = await _with_state(world)
    stranger = new_identity()
    code = await _raw_code(a, stranger, b"\xff" * 100)
    assert code is grpc.StatusCode.PERMISSION_DENIED
    world.gate.members[stranger.spki] = address("s")
    assert await _raw_code(a, stranger, b"\xff" * 100) is grpc.StatusCode.INVALID_ARGUMENT


async def test_requests_beyond_64_kib_are_refused(world: World) -> None:
    a, _ = await _with_state(world)
    code = await _raw_code(a, a.identity, b"\x00" * (64 << 10 | 1))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_server_with_another_key_than_the_record_is_refused(world: World) -> None:
    a, root = await _with_state(world)
    b = await world.host("b")
    pinned_elsewhere = replace(a.endpoint, spki=b.identity.spki)
    answer = await b.client.fetch_index(pinned_elsewhere, "state", root, 0)
    assert isinstance(answer, Verdict)
    assert answer.fault is Fault.PROTOCOL
    assert a.identity.spki.hex() in answer.detail


async def test_a_caller_with_a_copied_name_is_a_stranger(world: World) -> None:
    a, root = await _with_state(world)
    b = await world.host("b")
    async with PeerClient(_with_name_of(b.identity)) as impostor:
        answer = await impostor.fetch_index(a.endpoint, "state", root, 0)
    assert isinstance(answer, Verdict)
    assert "PERMISSION_DENIED" in answer.detail


async def test_a_server_that_shows_anothers_certificate_first_fails_in_the_handshake(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unverified first step is fooled on purpose; the channel is not."""
    a, root = await _with_state(world)
    b = await world.host("b")

    async def fooled(endpoint: Endpoint, seconds: float) -> bytes:
        return a.identity.certificate

    monkeypatch.setattr("gonka_trainer.exchange.pin.server_certificate", fooled)
    async with liar(_with_name_of(a.identity), "a", GetIndex=_never) as endpoint:
        answer = await b.client.fetch_index(replace(endpoint, spki=a.identity.spki), "state", root, 0)
    assert isinstance(answer, Verdict)
    assert answer.fault is Fault.UNREACHABLE


async def test_a_member_cannot_vouch_for_another_key(world: World) -> None:
    """A certificate that a member's own key signs for somebody else is refused in the handshake."""
    a, root = await _with_state(world)
    b = await world.host("b")
    outsider = new_identity()
    signed = identities._builder("x", b.identity.spki.hex(), _key(outsider), authority=False)
    caller = signed.sign(_key(b.identity), hashes.SHA256()).public_bytes(Encoding.PEM)
    async with PeerClient(replace(outsider, caller=caller + b.identity.caller)) as client:
        answer = await client.fetch_index(a.endpoint, "state", root, 0)
    assert isinstance(answer, Verdict)
    assert "UNAVAILABLE" in answer.detail


async def test_no_certificate_is_refused_in_the_handshake(world: World) -> None:
    a, _ = await _with_state(world)
    credentials = grpc.ssl_channel_credentials(a.identity.certificate)
    assert await _raw_code(a, None, b"", credentials) is grpc.StatusCode.UNAVAILABLE


async def test_a_self_signed_caller_certificate_is_refused_in_the_handshake(world: World) -> None:
    a, root = await _with_state(world)
    b = await world.host("b")
    async with PeerClient(replace(b.identity, caller=b.identity.certificate)) as client:
        answer = await client.fetch_index(a.endpoint, "state", root, 0)
    assert isinstance(answer, Verdict)
    assert "UNAVAILABLE" in answer.detail


async def test_a_revoked_key_is_refused_on_the_open_connection(world: World) -> None:
    a, root = await _with_state(world)
    b = await world.host("b")
    assert not isinstance(await b.client.fetch_index(a.endpoint, "state", root, 0), Verdict)
    world.gate.members.pop(b.identity.spki)
    answer = await b.client.fetch_index(a.endpoint, "state", root, 0)
    assert isinstance(answer, Verdict)
    assert "PERMISSION_DENIED" in answer.detail
    world.gate.members[b.identity.spki] = address("b")
    assert not isinstance(await b.client.fetch_index(a.endpoint, "state", root, 0), Verdict)


async def test_a_restarted_server_is_reached_again(world: World) -> None:
    a, root = await _with_state(world)
    b = await world.host("b")
    assert not isinstance(await b.client.fetch_index(a.endpoint, "state", root, 0), Verdict)
    port = a.server.port
    await a.server.__aexit__(None, None, None)
    down = await b.client.fetch_index(a.endpoint, "state", root, 0)
    assert isinstance(down, Verdict)
    assert down.fault is Fault.UNREACHABLE
    again = PeerServer(a.identity, world.gate, a.store, bind=f"127.0.0.1:{port}")
    await world.stack.enter_async_context(again)
    assert not isinstance(await b.client.fetch_index(a.endpoint, "state", root, 0), Verdict)


async def test_a_port_in_use_is_a_clear_error(world: World) -> None:
    a = await world.host("a")
    with pytest.raises(ConfigError, match="cannot be bound"):
        async with PeerServer(new_identity(), world.gate, a.store, bind=f"127.0.0.1:{a.server.port}"):
            pass


@pytest.mark.parametrize("host", ["unix:/etc/passwd", "dns://h/x", "a b", "", "a" * 64, "x\x00y", "-v", "1.2.3.4:80"])
async def test_hosts_that_are_no_hosts_are_not_dialled(world: World, host: str) -> None:
    b = await world.host("b")
    answer = await b.client.fetch_index(Endpoint(address("a"), host, 1, b.identity.spki), "state", bytes(32), 0)
    assert isinstance(answer, Verdict)
    assert answer.fault is Fault.PROTOCOL


async def test_a_closed_port_is_unreachable(world: World) -> None:
    b = await world.host("b")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = replace(b.endpoint, port=unused.getsockname()[1])
        answer = await b.client.fetch_index(endpoint, "state", bytes(32), 0)
    assert isinstance(answer, Verdict)
    assert answer.fault is Fault.UNREACHABLE


def test_the_identity_is_made_once_and_kept_private(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "identity.pem"
    first, second = load_or_create_identity(path), load_or_create_identity(path)
    assert (first.key, first.certificate, first.spki) == (second.key, second.certificate, second.spki)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]
    certificate = x509.load_pem_x509_certificate(first.certificate)
    assert spki_digest(certificate) == first.spki
    assert certificate.subject.rfc4514_string() == f"CN={first.spki.hex()}"
    assert "PRIVATE" not in repr(first)


@pytest.mark.parametrize("damage", [b"", b"nonsense", "key only", "other certificate"])
def test_a_damaged_identity_is_a_clear_error(tmp_path: Path, damage: bytes | str) -> None:
    path = tmp_path / "identity.pem"
    one, other = new_identity(), new_identity()
    texts = {"key only": one.key, "other certificate": one.key + other.certificate}
    path.write_bytes(texts[damage] if isinstance(damage, str) else damage)
    path.chmod(0o600)
    with pytest.raises(StorageError, match=r"identity\.pem"):
        load_or_create_identity(path)


def test_a_readable_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "identity.pem"
    load_or_create_identity(path)
    path.chmod(0o644)
    with pytest.raises(StorageError, match="chmod 600"):
        load_or_create_identity(path)


async def _never(raw: bytes, context: object) -> None:
    raise AssertionError("an impostor was called")


async def _raw_code(
    host: Host, caller: Identity | None, request: bytes, credentials: grpc.ChannelCredentials | None = None
) -> grpc.StatusCode:
    if caller is not None:
        credentials = grpc.ssl_channel_credentials(host.identity.certificate, caller.key, caller.caller)
    assert credentials is not None
    options = [("grpc.ssl_target_name_override", "gonka-trainer")]
    async with grpc.aio.secure_channel(f"127.0.0.1:{host.server.port}", credentials, options=options) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary("/gonka_trainer.v1.Exchange/GetDocument")(request, timeout=20)
    return caught.value.code()


def _key(identity: Identity) -> ec.EllipticCurvePrivateKey:
    key = identities.load_pem_private_key(identity.key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def _with_name_of(victim: Identity) -> Identity:
    """An identity of a key of its own whose certificates carry the victim's name."""
    own = new_identity()
    name, key = victim.spki.hex(), _key(own)
    caller = identities._builder(name, identities._INTRODUCER, key, authority=False)
    served = identities._builder(name, name, key, authority=False).sign(key, hashes.SHA256())
    return replace(
        own,
        certificate=served.public_bytes(Encoding.PEM),
        caller=caller.sign(identities._introducer_key(), hashes.SHA256()).public_bytes(Encoding.PEM),
    )
