"""Thinking options of Claude models: a token budget, or an effort level from version 4.6 on (reference: Claude API, extended thinking)."""

from __future__ import annotations

import re

from moot.types.canonical import JsonObject
from moot.types.model import Effort, Model, ModelSettings

_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2})(?!\d))?")
_BUDGETS: dict[Effort, int] = {"low": 4_096, "medium": 10_240, "high": 16_384, "max": 31_999}
_LEAST = 1_024

OUTPUT_TOKENS = 32_000
"""Default maximum of output tokens in a request."""


def max_tokens(settings: ModelSettings, model: Model) -> int:
    """Return `max_tokens`, which this wire format requires."""
    return settings.max_tokens or min(model.max_output or 8_192, OUTPUT_TOKENS)


def thinking_fields(settings: ModelSettings, model: Model, limit: int) -> JsonObject:
    """Return `thinking` and `output_config.effort` of a body; empty if no effort was set or the model does not reason."""
    effort = settings.effort
    if effort is None or not model.reasoning:
        return {}
    version = _version(model)
    if version >= (4, 6):
        return _adaptive(effort, version, show=settings.show_reasoning)
    budget = min(_BUDGETS.get(effort, 0), limit - _LEAST)
    if effort == "none" or budget < _LEAST:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def takes_sampling(model: Model) -> bool:
    """Return True if temperature and top_p may be set. Claude 4.7 and later answer 400."""
    return _version(model) < (4, 7)


def _adaptive(effort: Effort, version: tuple[int, int], *, show: bool) -> JsonObject:
    if effort == "none":
        # later models can't turn thinking off, only reduce it
        return {"thinking": {"type": "disabled"}} if version < (5, 0) else {"output_config": {"effort": "low"}}
    return {"thinking": {"type": "adaptive", "display": "summarized" if show else "omitted"}, "output_config": {"effort": effort}}


def _version(model: Model) -> tuple[int, int]:
    """Return the version; (0, 0) for other vendors' models behind this wire format, which take budgets."""
    match = _VERSION.search(model.wire_name)
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)
