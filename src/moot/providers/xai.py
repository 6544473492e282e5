"""xAI, maker of the Grok models."""

from __future__ import annotations

from moot.providers.http import HttpProvider
from moot.types.facts import Facts
from moot.types.provider import Quirks


class XAI(HttpProvider):
    """The newer models always think and accept no effort."""

    facts = Facts(
        "xai",
        "https://api.x.ai/v1",
        key_form=r"xai-.+",
        priority=35,
        main="grok-4.7",
        prices="x-ai",
        quirks=Quirks(max_tokens="max_completion_tokens"),
    )
