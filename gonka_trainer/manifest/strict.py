"""Reading plain values (of JSON or TOML) into frozen dataclasses: unknown, missing and mistyped keys are errors."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from gonka_trainer.errors import ConfigError

_T = TypeVar("_T")
_WORDS: Final[Mapping[Any, str]] = {
    int: "a whole number",
    float: "a number",
    str: "text in quotes",
    bool: "true or false",
    tuple: "a list",
    dict: "a table of keys",
}


def build(cls: type[_T], value: Any, where: str, remedy: str) -> _T:
    """Return `cls` with its fields from `value` (defaults may be left out); ConfigError says `where`, key and value."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: {value!r:.60} is not a table of keys", remedy)
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for name in value:
        if name not in fields:
            raise ConfigError(f"{where}: {name} is unknown (known: {', '.join(fields)})", remedy)
    given: dict[str, Any] = {}
    for name, field in fields.items():
        if name in value:
            given[name] = _read(hints[name], value[name], f"{where}: {name}", remedy)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"{where}: {name} is missing", remedy)
    return cls(**given)


def _read(kind: Any, value: Any, where: str, remedy: str) -> Any:
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return build(kind, value, where, remedy)
    origin = typing.get_origin(kind)
    if origin is tuple and isinstance(value, list):
        return _read_tuple(typing.get_args(kind), value, where, remedy)
    if origin is dict and isinstance(value, dict):
        return value
    if kind is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if kind in (int, str, bool) and type(value) is kind:
        return value
    raise ConfigError(f"{where}: {value!r:.60} is not {_WORDS.get(origin or kind, kind)}", remedy)


def _read_tuple(kinds: tuple[Any, ...], value: list[Any], where: str, remedy: str) -> tuple[Any, ...]:
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        raise ConfigError(f"{where}: {len(value)} items, {len(kinds)} wanted", remedy)
    pairs = enumerate(zip(kinds, value, strict=True))
    return tuple(_read(kind, item, f"{where}[{i}]", remedy) for i, (kind, item) in pairs)
