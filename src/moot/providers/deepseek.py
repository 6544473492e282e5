"""DeepSeek's API."""

from __future__ import annotations

from moot.providers.http import HttpProvider
from moot.types.facts import Facts
from moot.types.provider import Quirks


class DeepSeek(HttpProvider):
    """Reasoning must be sent back together with a step's tool calls, otherwise the request is rejected."""

    facts = Facts(
        "deepseek",
        "https://api.deepseek.com/v1",
        priority=30,
        main="deepseek-v4-pro",
        prices="deepseek",
        quirks=Quirks(effort="thinking", reasoning_back="reasoning_content"),
    )
