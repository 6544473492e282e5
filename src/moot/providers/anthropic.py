"""Anthropic's API."""

from __future__ import annotations

from moot.providers.http import HttpProvider
from moot.types.facts import Facts


class Anthropic(HttpProvider):
    """`base_url` has no version, because the paths include it."""

    facts = Facts(
        "anthropic",
        "https://api.anthropic.com",
        dialect="anthropic",
        key_form=r"sk-ant-.+",
        priority=10,
        main="claude-sonnet-5-5",
        prices="anthropic",
    )
