"""A gRPC client that knows nothing of the chain but what the node's reflection service tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc


class Reflected:
    """Calls methods by their full names with JSON-like dictionaries, over descriptors that the node gave."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel
        self._stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        self._pool = descriptor_pool.DescriptorPool()
        self._known: set[str] = set()

    def _ask(self, **request: str) -> reflection_pb2.ServerReflectionResponse:
        answers: Iterator[Any] = self._stub.ServerReflectionInfo(
            iter([reflection_pb2.ServerReflectionRequest(**request)]), timeout=30
        )
        answer: reflection_pb2.ServerReflectionResponse = next(answers)
        if answer.HasField("error_response"):
            raise LookupError(answer.error_response.error_message)
        return answer

    def services(self) -> set[str]:
        """The names of what the node serves."""
        return {service.name for service in self._ask(list_services="").list_services_response.service}

    def _learn(self, **request: str) -> None:
        """Add the files of an answer, those that they need first."""
        for raw in self._ask(**request).file_descriptor_response.file_descriptor_proto:
            file = descriptor_pb2.FileDescriptorProto.FromString(raw)
            if file.name in self._known:
                continue
            self._known.add(file.name)
            for needed in file.dependency:
                if needed not in self._known:
                    self._learn(file_by_filename=needed)
            self._pool.Add(file)

    def call(self, service: str, method: str, **fields: Any) -> dict[str, Any]:
        """The answer as JSON, its fields named as in the protobuf source."""
        self._learn(file_containing_symbol=service)
        found = self._pool.FindServiceByName(service).methods_by_name[method]
        request = message_factory.GetMessageClass(found.input_type)()
        json_format.ParseDict(fields, request)
        ask = self._channel.unary_unary(
            f"/{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(found.output_type).FromString,
        )
        return self._shown(ask(request, timeout=30))

    def _shown(self, answer: Any) -> dict[str, Any]:
        """The message as JSON; the types inside each Any are asked for as they turn up."""
        while True:
            try:
                shown: dict[str, Any] = json_format.MessageToDict(
                    answer, preserving_proto_field_name=True, descriptor_pool=self._pool
                )
                return shown
            except TypeError as error:
                name = str(error).rpartition("/")[2]
                self._learn(file_containing_symbol=name)
                self._pool.FindMessageTypeByName(name)
