"""Moonshot AI, maker of the Kimi models."""

from __future__ import annotations

from moot.providers.http import HttpProvider
from moot.types.facts import Facts
from moot.types.provider import Quirks


class Moonshot(HttpProvider):
    """Plan `coding` is Kimi Code, with its own keys and model names (`kimi-for-coding`). `china` takes keys of moonshot.cn."""

    facts = Facts(
        "moonshot",
        "https://api.moonshot.ai/v1",
        priority=33,
        plans={"coding": "https://api.kimi.com/coding/v1", "china": "https://api.moonshot.cn/v1"},
        plan_models={"coding": ("kimi-for-coding",)},
        main="kimi-k3",
        prices="moonshotai",
        quirks=Quirks(effort="thinking", reasoning_back="reasoning_content"),
    )
