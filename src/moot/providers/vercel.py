"""Vercel AI Gateway, a gateway to many vendors' models."""

from __future__ import annotations

from moot.providers.http import HttpProvider
from moot.types.facts import Facts
from moot.types.provider import Quirks


class Vercel(HttpProvider):
    """Charges the vendors' own prices, like OpenRouter, whose prices in the snapshot are therefore used."""

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
