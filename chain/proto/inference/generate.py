"""Generate `gonka_devnet/_pb/inference` from inference.proto: run `python chain/proto/inference/generate.py`.

The generated module gets a descriptor pool of its own. The chain's names (`inference.inference.*`) are also those that
a client of the chain generates for itself; in the default pool the two could not be imported into one process.
"""

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
TARGET = HERE.parents[1] / "gonka_devnet" / "_pb" / "inference"
SHARED_POOL = "_descriptor_pool.Default()"


def main(target: Path = TARGET) -> int:
    """Write inference_pb2.py and its type stubs; return protoc's exit status."""
    target.mkdir(parents=True, exist_ok=True)
    status = protoc.main(
        ["protoc", f"-I{HERE}", f"--python_out={target}", f"--pyi_out={target}", str(HERE / "inference.proto")]
    )
    if status == 0:
        _give_own_pool(target / "inference_pb2.py")
    return int(status)


def _give_own_pool(generated: Path) -> None:
    text = generated.read_text()
    if SHARED_POOL not in text:
        raise SystemExit(f"{generated.name} does not name {SHARED_POOL}: protoc's output has changed")
    generated.write_text(text.replace(SHARED_POOL, "_descriptor_pool.DescriptorPool()"))


if __name__ == "__main__":
    sys.exit(main())
