"""OpenAI's own API, by Chat Completions."""

from __future__ import annotations

from moot.providers.http import HttpProvider
from moot.types.facts import Facts
from moot.types.provider import Quirks


class OpenAI(HttpProvider):
    """Reasoning models refuse `max_tokens` and the role `system`; the newer words hold for all of its models."""

    facts = Facts(
        "openai",
        "https://api.openai.com/v1",
        key_form=r"sk-(proj|svcacct|admin)-.+|sk-.*T3BlbkFJ.*",
        priority=20,
        main="gpt-5.5",
        prices="openai",
        quirks=Quirks(max_tokens="max_completion_tokens", developer_role=True),
    )
