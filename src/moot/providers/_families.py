"""Capabilities of model families, matched by model name. Price lists don't have these facts."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """Models with the same capabilities. `pattern` is searched in the lowercase model name without its vendor."""

    pattern: re.Pattern[str]
    modalities: tuple[str, ...] = ("text",)
    reasoning: bool = False
    max_output: int | None = None


def _family(pattern: str, modalities: str = "text", *, reasoning: bool = False, max_output: int | None = None) -> Family:
    return Family(re.compile(pattern), tuple(modalities.split()), reasoning, max_output)


_FAMILIES = (
    _family(r"^claude-(opus|sonnet|haiku|fable|mythos)-", "text image pdf", reasoning=True, max_output=64_000),
    _family(r"^claude-3[-.]7", "text image pdf", reasoning=True, max_output=64_000),
    _family(r"^claude-3", "text image pdf", max_output=8_192),
    _family(r"^gpt-oss", reasoning=True),
    _family(r"^gpt-([5-9]|\d\d)", "text image", reasoning=True, max_output=128_000),
    _family(r"^gpt-4(o|\.1|-turbo)", "text image", max_output=16_384),
    _family(r"^o[134](-|$)", "text image", reasoning=True, max_output=100_000),
    _family(r"^gemini-", "text image pdf audio video", reasoning=True, max_output=65_536),
    _family(r"^grok-([4-9]|build|code)", "text image", reasoning=True),
    _family(r"^grok-3-mini", reasoning=True),
    _family(r"^deepseek-(reasoner|r1|v3\.[1-9]|v[4-9]|flash)", reasoning=True),
    _family(r"^glm-\d(\.\d)?v", "text image", reasoning=True),
    _family(r"^glm-(4\.[5-9]|[5-9])", reasoning=True),
    _family(r"^kimi-(k2\.[5-9]|k[3-9]|for-coding)", "text image", reasoning=True),
    _family(r"^kimi-k2-thinking", reasoning=True),
    _family(r"^minimax-m\d", reasoning=True),
    _family(r"^(mistral-(small|medium|large)|pixtral|ministral)", "text image"),
    _family(r"^magistral", "text image", reasoning=True),
    _family(r"^(qwen[\d.]*-?vl|llava|gemma-?[3-9]|llama-?4|.*-vision)", "text image"),
    _family(r"^(qwen-?3|qwq)", reasoning=True),
)

_UNKNOWN = Family(re.compile(""))


def family_of(name: str) -> Family:
    """Return the first family that matches, or one for text only with unknown limits."""
    bare = name.lower().rpartition("/")[2]
    return next((family for family in _FAMILIES if family.pattern.search(bare)), _UNKNOWN)
