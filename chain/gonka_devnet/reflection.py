"""gRPC reflection (v1alpha and v1): which services there are, and their descriptors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import grpc
from cosmpy.protos.cosmos.authz.v1beta1 import query_pb2 as _authz  # noqa: F401  (registers its service)
from cosmpy.protos.cosmos.base.node.v1beta1 import query_pb2 as _node  # noqa: F401
from cosmpy.protos.cosmos.tx.v1beta1 import service_pb2 as _tx  # noqa: F401
from google.protobuf import descriptor_pb2, descriptor_pool
from grpc_reflection.v1alpha import _async, reflection_pb2

from gonka_devnet._pb.inference import inference_pb2

V1ALPHA, V1 = "grpc.reflection.v1alpha.ServerReflection", "grpc.reflection.v1.ServerReflection"
INFERENCE = "inference.inference"


def services(paths: Iterable[str]) -> list[str]:
    """Return the names of the services that have these method paths, with reflection's own."""
    return sorted({path.strip("/").partition("/")[0] for path in paths} | {V1ALPHA, V1})


def _inference_pool(paths: Iterable[str]) -> descriptor_pool.DescriptorPool:
    """Return a pool with the chain's own messages and a service of the methods that are served."""
    pool, messages = descriptor_pool.DescriptorPool(), descriptor_pb2.FileDescriptorProto()
    inference_pb2.DESCRIPTOR.CopyToProto(messages)
    pool.Add(messages)
    names = {message.name for message in messages.message_type}
    served = descriptor_pb2.FileDescriptorProto(
        name="inference/inference/query.proto", package=INFERENCE, dependency=[messages.name], syntax="proto3"
    )
    query = served.service.add(name="Query")
    for path in sorted(paths):
        service, _, method = path.strip("/").partition("/")
        request, response = f"Query{method}Request", f"Query{method}Response"
        if service == f"{INFERENCE}.Query" and {request, response} <= names:
            types = {"input_type": f".{INFERENCE}.{request}", "output_type": f".{INFERENCE}.{response}"}
            query.method.add(name=method, **types)
    pool.Add(served)
    return pool


class Pools:
    """Several descriptor pools asked as one."""

    def __init__(self, pools: Sequence[Any]) -> None:
        self._pools = pools

    def _first(self, find: Callable[[Any], Any]) -> Any:
        for pool in self._pools:
            try:
                return find(pool)
            except KeyError:
                continue
        raise KeyError("in none of the pools")

    def FindFileByName(self, name: str) -> Any:
        """Return a file's descriptor; raise KeyError."""
        return self._first(lambda pool: pool.FindFileByName(name))

    def FindFileContainingSymbol(self, symbol: str) -> Any:
        """Return the descriptor of the file that defines a symbol; raise KeyError."""
        return self._first(lambda pool: pool.FindFileContainingSymbol(symbol))

    def FindMessageTypeByName(self, name: str) -> Any:
        """Return a message's descriptor; raise KeyError."""
        return self._first(lambda pool: pool.FindMessageTypeByName(name))

    def FindExtensionByNumber(self, message: Any, number: int) -> Any:
        """Refuse: there are no extensions."""
        raise KeyError(number)

    def FindAllExtensions(self, message: Any) -> list[Any]:
        """Return none."""
        return []


def handlers(paths: Iterable[str]) -> tuple[grpc.GenericRpcHandler[Any, Any], ...]:
    """Return the handlers of both versions; their messages have the same form."""
    known = list(paths)
    pools = Pools((_inference_pool(known), descriptor_pool.Default()))
    servicer = _async.ReflectionServicer(services(known), pool=pools)
    method = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    table = {"ServerReflectionInfo": method}
    return tuple(grpc.method_handlers_generic_handler(name, table) for name in (V1ALPHA, V1))
