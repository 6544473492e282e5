"""Vercel AI Gateway: one key for many vendors' models."""

from __future__ import annotations

from moot.providers.http import HttpProvider
from moot.types.facts import Facts
from moot.types.provider import Quirks


class Vercel(HttpProvider):
    """It charges the vendors' own prices, as OpenRouter does, so the snapshot's table of that one serves for both."""

    facts = Facts(
        "vercel",
        "https://ai-gateway.vercel.sh/v1",
        key_form=r"vck_.+",
        priority=70,
        main="anthropic/claude-sonnet-5.5",
        prices="openrouter",
        vendors={"x-ai": "xai", "z-ai": "zai", "mistralai": "mistral", "meta-llama": "meta"},
        quirks=Quirks(effort="reasoning", reasoning_back="reasoning_details"),
    )
