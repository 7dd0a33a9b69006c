"""Asks a running daemon where it stands and follows its events: a start for one's own tools.

    python examples/control.py unix:data/control.sock
    python examples/control.py trainer.example:7443 --token-file token

The messages are those of proto/gonka_trainer/v1/control.proto; in any other language, generate them from that file.
"""

import argparse
import sys
from pathlib import Path

import grpc

from gonka_trainer._pb.gonka_trainer.v1 import control_pb2 as pb

SERVICE = "/gonka_trainer.v1.Control/"


def main() -> int:
    """Make the calls; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", help="unix:PATH or HOST:PORT")
    parser.add_argument("--token-file", type=Path, help="for TCP with a token")
    parser.add_argument("--events", type=int, default=0, help="how many events to wait for")
    arguments = parser.parse_args()
    metadata = []
    if arguments.token_file:
        metadata.append(("authorization", "Bearer " + arguments.token_file.read_text().strip()))

    with grpc.insecure_channel(arguments.target) as channel:
        status = channel.unary_unary(SERVICE + "Status", pb.StatusRequest.SerializeToString, pb.StatusReply.FromString)
        events = channel.unary_stream(SERVICE + "Events", pb.EventsRequest.SerializeToString, pb.Event.FromString)
        try:
            reply = status(pb.StatusRequest(), metadata=metadata, timeout=10)
            print(f"{reply.participant} is {reply.standing}, round {reply.round}, {reply.phase or 'no phase'}")
            for hold in reply.holds:
                print(f"GPUs held for {hold.who}: {hold.why}")
            if arguments.events:
                for count, event in enumerate(events(pb.EventsRequest(), metadata=metadata), 1):
                    print(event.kind, dict(sorted(event.details.items())))
                    if count == arguments.events:
                        break
        except grpc.RpcError as error:
            print(f"{error.code().name}: {error.details()}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
