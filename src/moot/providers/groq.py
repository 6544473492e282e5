"""Groq, a fast host of open models."""

from __future__ import annotations

from moot.providers.http import HttpProvider
from moot.types.facts import Facts
from moot.types.provider import Quirks


class Groq(HttpProvider):
    """A host of other vendors' models, so its priority is lower than theirs."""

    facts = Facts(
        "groq",
        "https://api.groq.com/openai/v1",
        key_form=r"gsk_.+",
        priority=50,
        main="openai/gpt-oss-120b",
        prices="groq",
        quirks=Quirks(max_tokens="max_completion_tokens"),
    )
