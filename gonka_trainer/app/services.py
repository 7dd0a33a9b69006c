"""What the daemon offers besides the run: the control service, and the ML node's surface."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from gonka_trainer.app.operations import ErrorEvents, Operations
from gonka_trainer.config import Config
from gonka_trainer.config_file import endpoint
from gonka_trainer.control.access import TcpSettings
from gonka_trainer.control.ml_node import serve_ml_node
from gonka_trainer.control.server import serve_control
from gonka_trainer.control.service import ControlService
from gonka_trainer.control.sharing import Patience
from gonka_trainer.controls import Gpu

_KILL_SECONDS: Final = 2.0
"""A worker that does not leave is killed after gpu.stop_seconds: so long its end may take from there."""


def control_socket(config: Config) -> Path:
    """Return where the control service's Unix socket is."""
    return Path(config.control.socket) if config.control.socket else config.data_path / "control.sock"


@asynccontextmanager
async def serve_host(config: Config, operations: Operations, gpu: Gpu) -> AsyncIterator[None]:
    """Offer the services while entered, between runs too; UserError when an address or a file cannot be used."""
    async with AsyncExitStack() as stack:
        errors = ErrorEvents(operations.tell, asyncio.get_running_loop())
        logging.getLogger("gonka_trainer").addHandler(errors)
        stack.callback(logging.getLogger("gonka_trainer").removeHandler, errors)
        service = ControlService(operations, gpu)
        await stack.enter_async_context(serve_control(service, control_socket(config), _tcp(config)))
        if config.ml_node.bind:
            bind = endpoint(config.ml_node.bind, "ml_node.bind")
            patience = Patience(leave=config.gpu.stop_seconds + _KILL_SECONDS)
            surface = serve_ml_node(operations, gpu, bind, config.ml_node.forward_to, patience)
            await stack.enter_async_context(surface)
        yield


def _tcp(config: Config) -> TcpSettings | None:
    control = config.control
    if not control.bind:
        return None
    return TcpSettings(
        control.bind, control.token_file, control.tls_certificate, control.tls_key, control.tls_client_ca
    )
