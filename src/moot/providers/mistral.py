"""Mistral's API."""

from __future__ import annotations

from moot.providers.http import HttpProvider
from moot.types.facts import Facts
from moot.types.provider import Quirks


class Mistral(HttpProvider):
    """Rejects unknown fields (`stream_options`; usage is always sent) and tool call ids that don't have exactly nine characters."""

    facts = Facts(
        "mistral",
        "https://api.mistral.ai/v1",
        priority=34,
        main="mistral-large-latest",
        prices="mistral",
        quirks=Quirks(effort="none", stream_usage=False, call_ids="^[A-Za-z0-9]{9}$"),
    )
