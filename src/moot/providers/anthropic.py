"""Anthropic's own API, in its own dialect."""

from __future__ import annotations

from moot.providers._facts import Facts
from moot.providers._http import HttpProvider


class Anthropic(HttpProvider):
    """`base_url` has no version: the paths bring their own."""

    facts = Facts(
        "anthropic",
        "https://api.anthropic.com",
        dialect="anthropic",
        priority=10,
        main="claude-sonnet-5-5",
        prices="anthropic",
    )
