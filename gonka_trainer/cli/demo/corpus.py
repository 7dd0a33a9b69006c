"""Text to train on: what the Python installation itself ships, or a file of one's own."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path
from typing import Final

from gonka_trainer.errors import ConfigError

_LIMIT_BYTES: Final = 8 << 20
_SKIPPED: Final = {"site-packages", "test", "tests", "idle_test", "__pycache__", "lib2to3"}


def write_corpus(target: Path, own: Path | None) -> None:
    """Write the corpus to `target`: the file or folder `own`, else the standard library's documentation and code."""
    if own is not None and own.is_file():
        shutil.copyfile(own, target)
        return
    root = own if own is not None else Path(sysconfig.get_path("stdlib"))
    written = 0
    with target.open("wb") as out:
        for path in _texts(root, any_kind=own is not None):
            data = path.read_bytes()[: _LIMIT_BYTES - written]
            written += out.write(data)
            if written >= _LIMIT_BYTES:
                break
    if written < 1 << 16:
        raise ConfigError(f"{root}: {written} bytes of text, at least {1 << 16} wanted", "name a larger file or folder")


def _texts(root: Path, any_kind: bool) -> list[Path]:
    """Return the text files below the folder: the documentation first, then code, in the order of their names."""
    kinds = {".py", ".txt", ".md", ".rst"} if any_kind else {".py"}
    found = [path for path in root.rglob("*") if path.suffix in kinds and path.is_file()]
    kept = [path for path in found if not _SKIPPED.intersection(path.relative_to(root).parts)]
    return sorted(kept, key=lambda path: (path.name != "topics.py", path.relative_to(root).as_posix()))
