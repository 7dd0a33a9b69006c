"""`python -m gonka_trainer.worker`: serve a daemon's job link, or `describe` a model's parameters."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gonka_trainer.errors import UserError, WorkerError
from gonka_trainer.jobs import Failed
from gonka_trainer.worker.link import JobLink, connect


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 after a Shutdown, 1 when it cannot be done (said on the link, or on standard error)."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    os.environ["HF_HUB_OFFLINE"] = "1"  # a manifest comes from strangers: nothing is ever fetched by its configuration
    if options.command == "describe":
        return _describe(options.config)
    return _serve(options.socket, options.manifest, options.data, options.threads)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gonka_trainer.worker")
    parser.add_argument("--socket", type=Path, help="the daemon's Unix socket")
    parser.add_argument("--manifest", type=Path, help="the run manifest")
    parser.add_argument("--data", type=Path, help="the corpus file that the manifest pins")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads; the result's bits depend on it")
    parser.set_defaults(command="serve")
    describe = parser.add_subparsers().add_parser("describe", help="print name, shape and init of each parameter")
    describe.add_argument("--config", type=Path, required=True, help="a transformers config.json")
    describe.set_defaults(command="describe")
    return parser


def _serve(socket: Path | None, manifest: Path | None, data: Path | None, threads: int) -> int:
    if os.environ.get("RANK", "0") != "0":
        return _follow()
    if socket is None or manifest is None or data is None:
        _parser().error("--socket, --manifest and --data are required")
    with JobLink(connect(socket)) as link:  # before the slow imports, so that a daemon that goes away is noticed
        try:
            _check_ranks()
            _serve_link(link, manifest, data, threads)
        except UserError as error:
            logging.getLogger(__name__).error("%s", error)
            link.send(Failed(error.what, error.remedy))
            return 1
    return 0


def _follow() -> int:
    """Be another rank than 0: without a link to the daemon, what is wrong goes to standard error alone."""
    try:
        _check_ranks()
    except UserError as error:
        logging.getLogger(__name__).error("%s", error)
        return 1
    return 0


def _serve_link(link: JobLink, manifest: Path, data: Path, threads: int) -> None:
    from gonka_trainer.manifest import load_manifest
    from gonka_trainer.worker.serve import serve
    from gonka_trainer.worker.session import open_session

    serve(open_session(load_manifest(manifest), data, threads), link)


def _check_ranks() -> None:
    """One process for now. With FSDP2, rank 0 alone keeps the link and `torch.distributed` is initialised here."""
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks != 1:
        what = f"one of {ranks} processes: this version trains on one"
        raise WorkerError(what, "set worker.processes = 1, and NNODES=1")


def _describe(config: Path) -> int:
    from gonka_trainer.worker.model import describe

    try:
        value = json.loads(config.read_bytes())
        lines = [json.dumps({"name": name, "shape": shape, "init": init}) for name, shape, init in describe(value)]
    except (OSError, ValueError, UserError) as error:
        sys.stderr.write(f"{config}: {error}\n")
        return 1
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    _status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_status)  # all that matters is on disk, and taking torch down in order takes seconds
