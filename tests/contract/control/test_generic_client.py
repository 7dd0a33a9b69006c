"""Clients that have none of this project's code: all that they know comes from reflection, or is the standard's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
from control_world import RUN, World
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.json_format import MessageToDict, ParseDict
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

NAME = "gonka_trainer.v1.Control"


class Generic:
    """A client in the manner of grpcurl: JSON in, JSON out, messages built from reflected descriptors."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel
        self.database = ProtoReflectionDescriptorDatabase(channel)
        self.service = descriptor_pool.DescriptorPool(self.database).FindServiceByName(NAME)

    def call(self, name: str, request: dict[str, Any]) -> Any:
        method = self.service.methods_by_name[name]
        kind = message_factory.GetMessageClass(method.input_type)
        reply = message_factory.GetMessageClass(method.output_type)
        path = f"/{self.service.full_name}/{name}"
        call = self._channel.unary_unary(path, kind.SerializeToString, reply.FromString)
        return MessageToDict(call(ParseDict(request, kind()), timeout=30), preserving_proto_field_name=True)

    def first_event(self, happen: Any) -> Any:
        method = self.service.methods_by_name["Events"]
        kind = message_factory.GetMessageClass(method.input_type)
        reply = message_factory.GetMessageClass(method.output_type)
        call = self._channel.unary_stream(f"/{NAME}/Events", kind.SerializeToString, reply.FromString)
        stream = call(kind(), timeout=30)
        stream.initial_metadata()
        happen()
        return MessageToDict(next(iter(stream)))


def talk(target: str, loop: asyncio.AbstractEventLoop, world: World) -> dict[str, Any]:
    with grpc.insecure_channel(target) as channel:
        client = Generic(channel)
        said: dict[str, Any] = {"services": set(client.database.get_services())}
        said["methods"] = set(client.service.methods_by_name)
        said["pause"] = client.call("Pause", {"why": "by a generic client"})
        said["status"] = client.call("Status", {})
        said["tasks"] = client.call("Tasks", {})
        said["event"] = client.first_event(lambda: loop.call_soon_threadsafe(world.operations.resume))
        try:
            client.call("Start", {"manifest_hash": "zz"})
        except grpc.RpcError as error:
            said["refused"] = (error.code(), error.details())
        return said


async def test_a_generic_client_finds_and_drives_everything(world: World) -> None:
    said = await asyncio.to_thread(talk, f"unix:{world.socket}", asyncio.get_running_loop(), world)
    assert said["services"] == {NAME, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}
    assert said["methods"] == {"Status", "Tasks", "Start", "Pause", "Drain", "Resume", "Stop", "Events"}
    assert said["pause"] == {}
    assert said["status"]["asked"] == "pause"
    assert said["status"]["holds"] == [{"who": "operator", "why": "by a generic client"}]
    assert said["status"]["manifest_hash"] == RUN.hex()
    assert [task["standing"] for task in said["tasks"]["tasks"]] == ["serving", "refused"]
    assert (said["event"]["kind"], said["event"]["details"]) == ("gpu_freed", {"who": "operator"})
    code, details = said["refused"]
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "64 hex digits" in details


async def test_the_standard_health_call_says_serving(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.serving(), world.channel() as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for name in ("", NAME):
            said = await health.Check(health_pb2.HealthCheckRequest(service=name), timeout=30)
            assert said.status == health_pb2.HealthCheckResponse.SERVING
        watching = health.Watch(health_pb2.HealthCheckRequest(service=NAME))
        assert (await watching.read()).status == health_pb2.HealthCheckResponse.SERVING
