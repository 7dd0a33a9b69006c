"""Stand-ins for a host's network node, with what recordings of a real one show, oddities included.

`AdminStandIn`: the admin API; `TrainingStandIn`: NetworkNodeService over a real chain, with a warm key;
`ManagerStandIn`: NodeManager.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from aiohttp import web

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2
from gonka_trainer._pb.gonka_trainer.node.v1 import network_node_pb2 as wire
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.sender import Sender
from gonka_trainer.chain.transactions import Message, exec_message
from gonka_trainer.errors import ChainError
from gonka_trainer.types import sha256

MISREAD = "failed to unmarshal response at index 0: proto: wrong wireType = 2 for field Status"


@dataclass
class AdminNode:
    """An ML node as the network node keeps it."""

    id: str
    enabled: bool = True
    epoch: int = 0
    status: str = "INFERENCE"

    def entry(self) -> dict[str, Any]:
        weight = {"node_id": self.id, "poc_weight": 60, "timeslot_allocation": [True, False]}
        state = {
            "intended_status": self.status,
            "current_status": self.status,
            "poc_intended_status": "VALIDATING",
            "poc_current_status": "IDLE",
            "lock_count": 0,
            "failure_reason": "No epoch models available for this node",
            "admin_state": {"enabled": self.enabled, "epoch": self.epoch},
            "epoch_models": {},
            "epoch_ml_nodes": {"Qwen/Qwen2.5-7B-Instruct": weight},
        }
        return {
            "node": {"id": self.id, "host": "127.0.0.1", "poc_port": 8080, "models": {}, "hardware": []},
            "state": state,
        }


@dataclass
class AdminStandIn:
    """Disable counts from the next `poc_start`, enable at once; an unknown id gets 404 and the last answer ever."""

    nodes: dict[str, AdminNode]
    epoch: int = 1
    url: str = ""
    requests: list[str] = field(default_factory=list)
    wedged: bool = False
    ml_node_requests: list[str] = field(default_factory=list)

    def poc_start(self) -> None:
        """The block at which proof of compute starts: disabled nodes are stopped and left alone."""
        self.epoch += 1
        for node in self.nodes.values():
            node.status = "INFERENCE" if node.enabled else "STOPPED"
            self.ml_node_requests.append("pow/init/generate" if node.enabled else "stop")

    async def _wait_if_wedged(self) -> None:
        if self.wedged:
            await asyncio.Event().wait()

    async def list(self, request: web.Request) -> web.Response:
        self.requests.append("list")
        await self._wait_if_wedged()
        return web.json_response([node.entry() for node in self.nodes.values()])

    async def switch(self, request: web.Request) -> web.Response:
        name, word = request.match_info["id"], request.match_info["word"]
        self.requests.append(f"{word} {name}")
        await self._wait_if_wedged()
        if name not in self.nodes:
            self.wedged = True
            return web.json_response({"error": f"node not found: {name}"}, status=404)
        node = self.nodes[name]
        node.enabled, node.epoch = word == "enable", self.epoch
        if node.enabled and node.status == "STOPPED":
            node.status = "INFERENCE"
            self.ml_node_requests += ["stop", "inference/up"]
        return web.json_response({"message": f"node {word}d successfully", "node_id": name})


@asynccontextmanager
async def admin_stand_in(*ids: str) -> AsyncIterator[AdminStandIn]:
    stand_in = AdminStandIn({name: AdminNode(name) for name in ids})
    app = web.Application()
    app.router.add_get("/admin/v1/nodes", stand_in.list)
    app.router.add_post("/admin/v1/nodes/{id}/{word:enable|disable}", stand_in.switch)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    stand_in.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield stand_in
    finally:
        await runner.cleanup()


Handler = Callable[[bytes, grpc.aio.ServicerContext], Awaitable[bytes]]


class _Methods(grpc.GenericRpcHandler):
    def __init__(self, methods: Mapping[str, Handler]) -> None:
        self._methods = methods

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        found = self._methods.get(details.method)
        return None if found is None else grpc.unary_unary_rpc_method_handler(found)  # bytes in, bytes out


@asynccontextmanager
async def _served(methods: Mapping[str, Handler]) -> AsyncIterator[str]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Methods(methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0.1)


class TrainingStandIn:
    """The service with a warm key: every write is a MsgExec on the chain, whose result the node cannot read."""

    def __init__(self, chain: ChainClient, warm: Sender, participant: str, ask: Callable[..., Awaitable[Any]]) -> None:
        self._chain = chain
        self._warm = warm
        self._participant = participant
        self._ask = ask
        self._writes = 0
        self.lose = False

    @property
    def methods(self) -> dict[str, Handler]:
        calls = {
            "JoinTraining": self._write("MsgJoinTraining", wire.JoinTrainingRequest, wire.MsgJoinTraining),
            "GetJoinTrainingStatus": self._write(
                "MsgJoinTrainingStatus", wire.JoinTrainingRequest, wire.MsgJoinTraining
            ),
            "SendHeartbeat": self._write("MsgTrainingHeartbeat", wire.HeartbeatRequest, wire.MsgTrainingHeartbeat),
            "SetBarrier": self._write("MsgSetBarrier", wire.SetBarrierRequest, wire.MsgSetBarrier),
            "GetAliveNodes": self.alive,
            "GetBarrierStatus": self.barrier,
            "SetStoreRecord": self.set_record,
            "GetStoreRecord": self.get_record,
        }
        return {f"/inference.inference.NetworkNodeService/{name}": call for name, call in calls.items()}

    def _write(self, name: str, kind: Any, message: Any) -> Handler:
        async def call(raw: bytes, context: grpc.aio.ServicerContext) -> bytes:
            inner = message(creator=self._participant, req=kind.FromString(raw)).SerializeToString()
            if not self.lose:
                await self._send(Message(f"/inference.inference.{name}".encode(), inner), context)
            await context.abort(grpc.StatusCode.UNKNOWN, MISREAD)
            raise AssertionError

        return call

    async def _send(self, inner: Message, context: grpc.aio.ServicerContext) -> None:
        self._writes += 1
        try:
            digest = sha256(b"stand-in", self._writes.to_bytes(4, "big"))
            await self._warm.deliver(digest, [exec_message(self._warm.text, [inner])])
        except ChainError as error:
            await context.abort(grpc.StatusCode.UNKNOWN, f"transaction HASH failed: code=1, log={error.what}")

    async def set_record(self, raw: bytes, context: grpc.aio.ServicerContext) -> bytes:
        asked = wire.SetStoreRecordRequest.FromString(raw)
        record = inference_pb2.MsgSubmitTrainingKvRecord(
            creator=self._participant.encode(),
            task_id=asked.run_id,
            participant=self._participant.encode(),
            key=asked.record.key,
            value=asked.record.value,
        )
        await self._send(
            Message(b"/inference.inference.MsgSubmitTrainingKvRecord", record.SerializeToString()), context
        )
        return b""

    async def alive(self, raw: bytes, context: grpc.aio.ServicerContext) -> bytes:
        request = wire.QueryTrainingAliveNodesRequest(req=wire.GetAliveNodesRequest.FromString(raw))
        answer = await self._query("TrainingAliveNodes", request, wire.QueryTrainingAliveNodesResponse, context)
        return answer.resp.SerializeToString()

    async def barrier(self, raw: bytes, context: grpc.aio.ServicerContext) -> bytes:
        request = wire.QueryTrainingBarrierRequest(req=wire.GetBarrierStatusRequest.FromString(raw))
        answer = await self._query("TrainingBarrier", request, wire.QueryTrainingBarrierResponse, context)
        return answer.resp.SerializeToString()

    async def get_record(self, raw: bytes, context: grpc.aio.ServicerContext) -> bytes:
        request = wire.GetStoreRecordRequest.FromString(raw)
        answer = await self._query("TrainingKvRecord", request, wire.QueryTrainingKvRecordResponse, context)
        stored = wire.StoreRecord(key=answer.record.key, value=answer.record.value)
        return wire.GetStoreRecordResponse(record=stored).SerializeToString()

    async def _query(self, name: str, request: Any, kind: Any, context: grpc.aio.ServicerContext) -> Any:
        try:
            return await self._ask(f"/inference.inference.Query/{name}", request, kind)
        except ChainError as error:
            code = grpc.StatusCode.NOT_FOUND if "NOT_FOUND" in error.what else grpc.StatusCode.UNKNOWN
            await context.abort(code, f"rpc error: {error.what}")


@asynccontextmanager
async def training_stand_in(stand_in: TrainingStandIn) -> AsyncIterator[str]:
    async with _served(stand_in.methods) as target:
        yield target


@dataclass
class Places:
    """An ML node's places for requests."""

    model: str
    max_concurrent: int
    status: str = "INFERENCE"
    locks: set[str] = field(default_factory=set)


class ManagerStandIn:
    """NodeManager over a few ML nodes: a lock is given on the least busy node that does inference."""

    def __init__(self, nodes: dict[str, Places]) -> None:
        self.nodes = nodes
        self._next = 0
        self.target = ""

    def take(self, name: str) -> str:
        """Lock a place as a request of somebody else does."""
        self._next += 1
        lock = f"lock-{self._next}"
        self.nodes[name].locks.add(lock)
        return lock

    async def acquire(self, raw: bytes, context: grpc.aio.ServicerContext) -> bytes:
        asked = wire.AcquireMlNodeRequest.FromString(raw)
        free = [
            (len(node.locks), name)
            for name, node in self.nodes.items()
            if node.model == asked.model
            and name not in asked.excluded_nodes
            and node.status == "INFERENCE"
            and len(node.locks) < node.max_concurrent
        ]
        if not free:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "no nodes available")
        name = min(free)[1]
        answer = wire.AcquireMlNodeResponse(lock_id=self.take(name), node_id=name.encode(), endpoint=b"http://ml:8080")
        return answer.SerializeToString()

    async def release(self, raw: bytes, context: grpc.aio.ServicerContext) -> bytes:
        lock = wire.ReleaseMlNodeRequest.FromString(raw).lock_id
        for node in self.nodes.values():
            if lock in node.locks:
                node.locks.remove(lock)
                return b""
        await context.abort(grpc.StatusCode.NOT_FOUND, f"lock {lock} not found")
        raise AssertionError

    async def capacity(self, raw: bytes, context: grpc.aio.ServicerContext) -> bytes:
        entries = [
            wire.NodeCapacityEntry(
                node_id=name.encode(),
                model=node.model.encode(),
                max_concurrent=node.max_concurrent,
                lock_count=len(node.locks),
                status=node.status.encode(),
            )
            for name, node in self.nodes.items()
        ]
        return wire.ListNodeCapacityResponse(nodes=entries).SerializeToString()


@asynccontextmanager
async def manager_stand_in(nodes: dict[str, Places]) -> AsyncIterator[ManagerStandIn]:
    stand_in = ManagerStandIn(nodes)
    calls = {
        "AcquireMLNode": stand_in.acquire,
        "ReleaseMLNode": stand_in.release,
        "ListNodeCapacity": stand_in.capacity,
    }
    async with _served({f"/nodemanager.NodeManager/{name}": call for name, call in calls.items()}) as target:
        stand_in.target = target
        yield stand_in
