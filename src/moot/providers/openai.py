"""OpenAI's API, using Responses by default."""

from __future__ import annotations

from moot.providers.http import HttpProvider
from moot.types.facts import Facts
from moot.types.provider import Quirks


class OpenAI(HttpProvider):
    """`dialect: openai-chat` in its entry selects Chat Completions, which the quirks are for: reasoning models reject `max_tokens` and the
    role `system`, and all models accept the newer names."""

    facts = Facts(
        "openai",
        "https://api.openai.com/v1",
        dialect="openai-responses",
        key_form=r"sk-(proj|svcacct|admin)-.+|sk-.*T3BlbkFJ.*",
        priority=20,
        main="gpt-5.5",
        prices="openai",
        quirks=Quirks(max_tokens="max_completion_tokens", developer_role=True),
    )
