"""Zhipu AI (Z.ai), maker of the GLM models."""

from __future__ import annotations

from moot.providers.http import HttpProvider
from moot.types.facts import Facts
from moot.types.provider import Quirks


class Zhipu(HttpProvider):
    """Plan `coding` is the base URL of the subscription. The `china` plans take keys of bigmodel.cn."""

    facts = Facts(
        "zhipu",
        "https://api.z.ai/api/paas/v4",
        key_form=r"[0-9a-f]{32}\.[0-9A-Za-z]{16}",
        priority=31,
        plans={
            "coding": "https://api.z.ai/api/coding/paas/v4",
            "china": "https://open.bigmodel.cn/api/paas/v4",
            "china-coding": "https://open.bigmodel.cn/api/coding/paas/v4",
        },
        main="glm-5.3",
        prices="zai",
        lower_case=True,
        quirks=Quirks(effort="thinking", reasoning_back="reasoning_content"),
    )
