"""OpenRouter, a gateway to many vendors' models."""

from __future__ import annotations

from moot.providers.http import HttpProvider
from moot.types.facts import Facts
from moot.types.provider import Quirks


class OpenRouter(HttpProvider):
    """Reasoning is requested with an object, and sent back with all details, including signatures."""

    facts = Facts(
        "openrouter",
        "https://openrouter.ai/api/v1",
        key_form=r"sk-or-.+",
        priority=60,
        main="anthropic/claude-sonnet-5.5",
        prices="openrouter",
        quirks=Quirks(effort="reasoning", reasoning_back="reasoning_details", extra={"usage": {"include": True}}),
    )
