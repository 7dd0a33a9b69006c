"""Fetching a manifest: by https alone, redirections included, and nothing but the document that was wanted."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from gonka_trainer.app.documents import download
from gonka_trainer.errors import ConfigError
from gonka_trainer.manifest import manifest_hash
from gonka_trainer.manifest.document import MAX_MANIFEST_BYTES
from gonka_trainer.types import sha256
from tests.support.https_server import https_server

PROGRAM = """
import asyncio, sys
from gonka_trainer.app.documents import download
from gonka_trainer.errors import ConfigError

async def main():
    for url in sys.argv[2:]:
        try:
            print(len(await download(url, bytes.fromhex(sys.argv[1]))))
        except ConfigError as error:
            print(error.what)

asyncio.run(main())
"""


async def test_what_is_fetched(tmp_path: Path) -> None:
    document = b'{"a document": 1}'
    async with https_server(tmp_path) as web:
        plain = web.url.replace("https", "http")
        web.files |= {
            "/good": document,
            "/moved": "/good",
            "/elsewhere": f"{plain}/good",
            "/round": "/round",
            "/other": b"{}",
            "/huge": bytes(MAX_MANIFEST_BYTES + (1 << 20)),
        }
        paths = ["/good", "/moved", "/elsewhere", "/round", "/other", "/huge", "/none"]
        wanted = manifest_hash(document)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            PROGRAM,
            wanted.hex(),
            *(web.url + path for path in paths),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "SSL_CERT_FILE": str(web.authority)},  # read when aiohttp is imported
        )
        out, _ = await process.communicate()
    good, moved, elsewhere, circle, other, huge, none = out.decode().splitlines()
    assert good == moved == str(len(document))
    assert elsewhere == f"{plain}/good: only https URLs are fetched"
    assert "too many redirections" in circle
    assert f"is not the manifest {wanted.hex()}" in other
    assert f"is not the manifest {wanted.hex()}" in huge
    assert "404" in none


async def test_a_certificate_of_nobody_known(tmp_path: Path) -> None:
    async with https_server(tmp_path) as web:
        web.files["/good"] = b"{}"
        with pytest.raises(ConfigError, match="certificate"):
            await download(f"{web.url}/good", sha256(b""))
        assert web.asked == []
    with pytest.raises(ConfigError, match="only https"):
        await download("file:///etc/passwd", sha256(b""))
