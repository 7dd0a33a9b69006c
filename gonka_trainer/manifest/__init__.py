"""The run manifest: what every host of a run must agree on before it starts, and its hash."""

from gonka_trainer.manifest.document import Manifest, load_manifest, manifest_hash, parse_manifest, render_manifest
from gonka_trainer.manifest.spec import (
    DataSpec,
    EndSpec,
    InnerSpec,
    MembershipSpec,
    ModelSpec,
    OuterSpec,
    WindowSpec,
)

__all__ = [
    "DataSpec",
    "EndSpec",
    "InnerSpec",
    "Manifest",
    "MembershipSpec",
    "ModelSpec",
    "OuterSpec",
    "WindowSpec",
    "load_manifest",
    "manifest_hash",
    "parse_manifest",
    "render_manifest",
]
