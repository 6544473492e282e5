"""The provider `rules`: answers by patterns of the configuration, so the same request has the same answer, always.

providers:
  rules:
    rules: {"(?i)hello": "Good morning.", "price of (\\w+)": "The price of \\1 is not known."}
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence

from moot.config.settings import ProviderSettings
from moot.errors import ConfigError, UsageError
from moot.types.canonical import Json, JsonObject, dumps, loads_object
from moot.types.event import Raw
from moot.types.model import Model, ModelId, Price
from moot.types.provider import Facts, ModelRequest

NOTHING_FITS = "No rule fits that."


class Rules:
    """What a provider has to be: a name, a dialect that exists, its quirks, and `stream`, `models`, `close`.

    `describe` is an optional power: with it nobody is asked for a list before a model is used.
    """

    # priority: behind every real model, so that it answers only when it is named; note and price: nobody takes it for one
    facts = Facts("rules", needs_key=False, priority=995, main="rules", free=True)

    def __init__(self, settings: ProviderSettings) -> None:
        self.name = settings.name
        self.dialect = self.facts.dialect
        self.quirks = self.facts.quirks
        self._rules = _compiled(settings.options.get("rules", {}))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[Raw, ...], None]:
        """The answer in the shape of openai-chat: each raw is a whole event of the stream, with its framing."""
        answer = self._answer(_prompt(request.body))
        for word in re.findall(r"\S+\s*", answer):
            yield (_frame({"index": 0, "delta": {"content": word}, "finish_reason": None}),)
        yield (_frame({"index": 0, "delta": {}, "finish_reason": "stop"}), b"data: [DONE]\n\n")

    async def models(self) -> Sequence[Model]:
        return [self.describe("rules")]

    def describe(self, name: str) -> Model:
        """Raises UsageError for a model that there is not."""
        if name != "rules":
            raise UsageError(f"provider {self.name!r} has no model {name!r}; did you mean 'rules'?")
        return Model(ModelId(name, self.name), name, context=100_000, price=Price(0, 0, 0, 0), tools="none", note="rules, no model")

    async def close(self) -> None:
        """Nothing to let go of."""

    def _answer(self, prompt: str) -> str:
        for pattern, answer in self._rules:
            if found := pattern.search(prompt):
                return found.expand(answer)
        return NOTHING_FITS


def _compiled(rules: Json) -> list[tuple[re.Pattern[str], str]]:
    if not isinstance(rules, dict):
        raise ConfigError(f"providers.rules.rules is {rules!r}; expected a map of patterns to answers")
    try:
        return [(re.compile(pattern), str(answer)) for pattern, answer in rules.items()]
    except re.error as error:
        raise ConfigError(f"providers.rules.rules: {error.pattern!r} is no regular expression: {error}") from error


def _prompt(body: bytes) -> str:
    """The last thing that the person said."""
    messages = loads_object(body).get("messages")
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            parts = content if isinstance(content, list) else []
            return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
    return ""


def _frame(choice: JsonObject) -> Raw:
    return (
        b"data: " + dumps({"id": "rules", "object": "chat.completion.chunk", "created": 0, "model": "rules", "choices": [choice]}) + b"\n\n"
    )
