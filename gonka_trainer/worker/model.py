"""The model: built from a `transformers` configuration, filled from a flat file. No weights or code from any hub."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import torch
from torch import nn

from gonka_trainer.errors import ConfigError, WorkerError
from gonka_trainer.gradient.layout import Layout
from gonka_trainer.worker.flat import F32

REFUSED_KEYS: Final = frozenset(
    {
        "_attn_implementation",
        "_attn_implementation_internal",
        "_name_or_path",
        "attn_implementation",
        "auto_map",
        "dtype",
        "experts_implementation",
        "name_or_path",
        "quantization_config",
        "torch_dtype",
        "trust_remote_code",
        "use_kernels",
    }
)
"""Keys by which a stranger's configuration could fetch code or weights, or change the arithmetic."""


def build_model(config: dict[str, Any]) -> nn.Module:
    """Return the model in float32 on torch's current default device; ConfigError when the configuration is no good."""
    refused = sorted(_refused(config))
    if refused:
        raise ConfigError(f"model.config: {', '.join(refused)} is not allowed", "take the key out of the manifest")
    # Slow to import, so only when a model is built.
    from huggingface_hub.errors import StrictDataclassError
    from transformers import AutoConfig, AutoModelForCausalLM

    values = {key: value for key, value in config.items() if key != "model_type"}
    try:
        settings = AutoConfig.for_model(config.get("model_type", ""), **values)
        model: nn.Module = AutoModelForCausalLM.from_config(
            settings, dtype=torch.float32, attn_implementation="sdpa", trust_remote_code=False
        )
    except (StrictDataclassError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"model.config: transformers refuses it: {error}", "see the model's documentation") from error
    _check(model)
    return model


def _refused(value: Any) -> set[str]:
    """Return the refused keys of the configuration and of all that is nested in it."""
    if isinstance(value, dict):
        return set(REFUSED_KEYS & value.keys()).union(*map(_refused, value.values()))
    return set().union(*map(_refused, value)) if isinstance(value, list) else set()


def parameters_once(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Yield name and parameter in `named_parameters()` order, tied weights once, by storage."""
    seen: set[int] = set()
    for name, parameter in model.named_parameters():
        storage = parameter.untyped_storage()._cdata
        if storage not in seen:
            seen.add(storage)
            yield name, parameter


def check_layout(model: nn.Module, layout: Layout) -> None:
    """Raise ConfigError unless the model has the layout's names and shapes in the layout's order."""
    have = [(name, tuple(parameter.shape)) for name, parameter in parameters_once(model)]
    want = [(entry.name, entry.shape) for entry in layout.entries]
    if have == want:
        return
    place = next((i for i, (a, b) in enumerate(zip(have, want, strict=False)) if a != b), min(len(have), len(want)))
    pair = [str(side[place]) if place < len(side) else "nothing" for side in (have, want)]
    raise ConfigError(
        f"the model's tensor {place} is {pair[0]}, the manifest's is {pair[1]}",
        "the manifest was made with another transformers version: make it again, or install the version that made it",
    )


def load_parameters(model: nn.Module, flat: F32, layout: Layout) -> None:
    """Copy a flat vector of shape (total_elements,) into the model.

    With FSDP2 each rank copies only its own shard of the same ranges here.
    """
    with torch.no_grad():
        for (_, parameter), entry, start in zip(parameters_once(model), layout.entries, layout.offsets, strict=True):
            part = flat[start : start + entry.elements].astype("<f4")
            parameter.copy_(torch.from_numpy(part).view(entry.shape))


def flat_parts(model: nn.Module) -> Iterator[F32]:
    """Yield the parameters' values in the layout's order (FSDP2: `full_tensor()` of each, one at a time)."""
    for _, parameter in parameters_once(model):
        yield parameter.detach().to("cpu", torch.float32).contiguous().numpy()


def buffers_digest(model: nn.Module) -> bytes:
    """Return a digest of all buffers, which the state does not carry: they must stay what the configuration made."""
    state = hashlib.sha256()
    for name, buffer in model.named_buffers():
        state.update(name.encode() + buffer.detach().to("cpu").contiguous().view(torch.uint8).numpy().tobytes())
    return state.digest()


def _check(model: nn.Module) -> None:
    learned = dict(model.named_parameters(remove_duplicate=False))
    kept = sorted(name for name in model.state_dict() if name not in learned)
    if kept:
        raise WorkerError(f"the model keeps buffers beside its parameters: {', '.join(kept[:5])}", "take another model")
    frozen = [name for name, parameter in learned.items() if not parameter.requires_grad]
    if frozen:
        raise WorkerError(f"the model has frozen parameters: {', '.join(frozen[:5])}", "take another model")


def describe(config: dict[str, Any]) -> list[tuple[str, tuple[int, ...], str]]:
    """Return name, shape and init of every parameter in canonical order, without allocating any.

    Init: `ones` for norms' weights, `zeros` for biases, else `uniform:<initializer_range>`, the standard deviation.
    """
    with torch.device("meta"):
        model = build_model(config)
    spread = getattr(model.config, "initializer_range", None) or 0.02
    deviation = format(Decimal(repr(float(spread))), "f")
    modules = dict(model.named_modules())
    return [
        (name, tuple(parameter.shape), _init(name, parameter, modules, deviation))
        for name, parameter in parameters_once(model)
    ]


def _init(name: str, parameter: nn.Parameter, modules: dict[str, nn.Module], deviation: str) -> str:
    owner, _, kind = name.rpartition(".")
    if kind == "bias":
        return "zeros"
    if parameter.dim() == 1 and "norm" in f"{type(modules[owner]).__name__}.{owner}".lower():
        return "ones"
    return f"uniform:{deviation}"
