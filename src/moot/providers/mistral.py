"""Mistral's own API."""

from __future__ import annotations

from moot.providers.http import HttpProvider
from moot.types.facts import Facts
from moot.types.provider import Quirks


class Mistral(HttpProvider):
    """It refuses fields that it does not know (`stream_options`; usage comes by itself) and tool call ids of any but nine characters."""

    facts = Facts(
        "mistral",
        "https://api.mistral.ai/v1",
        priority=34,
        main="mistral-large-latest",
        prices="mistral",
        quirks=Quirks(effort="none", stream_usage=False, call_ids="^[A-Za-z0-9]{9}$"),
    )
