"""Generate the devnet's wire types. usage: python chain/proto/generate.py   (needs grpcio-tools and mypy-protobuf)"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "gonka_devnet" / "_pb"


def main() -> int:
    """Compile wire.proto into _pb/wire; return protoc's exit status."""
    (OUT / "wire").mkdir(parents=True, exist_ok=True)
    (OUT / "wire" / "__init__.py").touch()
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{HERE}", f"--python_out={OUT}", f"--pyi_out={OUT}"]
    return subprocess.run([*command, "wire/wire.proto"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
