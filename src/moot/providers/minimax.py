"""MiniMax's API."""

from __future__ import annotations

from moot.providers.http import HttpProvider
from moot.types.facts import Facts
from moot.types.provider import Quirks


class MiniMax(HttpProvider):
    """The coding plan has its own keys but no base URL of its own. The `china` plans take keys of minimaxi.com."""

    facts = Facts(
        "minimax",
        "https://api.minimax.io/v1",
        key_form=r"sk-(api|cp)-.+",
        priority=32,
        plans={
            "coding": "https://api.minimax.io/v1",
            "china": "https://api.minimaxi.com/v1",
            "china-coding": "https://api.minimaxi.com/v1",
        },
        main="MiniMax-M3",
        prices="minimax",
        quirks=Quirks(effort="none", reasoning_back="reasoning_details", extra={"reasoning_split": True}),
    )
