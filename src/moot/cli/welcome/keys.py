"""Whose an API key is, as far as its form tells."""

from __future__ import annotations

import re

__all__ = ["is_key", "vendors_of"]

_FORMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"sk-ant-.+", ("anthropic",)),
    (r"sk-or-.+", ("openrouter",)),
    (r"sk-(proj|svcacct|admin)-.+", ("openai",)),
    (r"sk-.*T3BlbkFJ.*", ("openai",)),
    (r"sk-(api|cp)-.+", ("minimax",)),
    (r"gsk_.+", ("groq",)),
    (r"xai-.+", ("xai",)),
    (r"vck_.+", ("vercel",)),
    (r"[0-9a-f]{32}\.[0-9A-Za-z]{16}", ("zhipu",)),
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", ("minimax", "vercel")),
    (r"sk-[0-9a-f]{32}", ("deepseek",)),
    (r"sk-[0-9A-Za-z]{40,}", ("moonshot", "openai")),
    (r"[0-9A-Za-z]{32}", ("mistral",)),
)
"""Forms that vendors give their keys → whose they can be, the likelier first; the first form that fits is meant."""

_CERTAIN = 9
"""The forms before this one are one vendor's alone; the others are only shapes, which anybody may use."""
_KEY = re.compile(r"[\x21-\x7e]{16,}")


def is_key(text: str) -> bool:
    """Whether it can be a key at all: long, and without blanks."""
    return _KEY.fullmatch(text) is not None


def vendors_of(key: str) -> tuple[tuple[str, ...], bool]:
    """The providers that a key can belong to, the likelier first, and whether the form leaves no doubt; empty when it tells nothing."""
    for at, (form, vendors) in enumerate(_FORMS):
        if re.fullmatch(form, key):
            return vendors, at < _CERTAIN
    return (), False
