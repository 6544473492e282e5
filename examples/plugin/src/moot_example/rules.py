"""The provider `rules`: answers by patterns from the configuration, so that the same request always has the same answer.

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

NO_MATCH = "No rule fits that."


class Rules:
    """A complete provider: a name, an existing dialect and its quirks, `stream`, `models` and `close`.

    `describe` is optional: with it, a model can be used without listing models first.
    """

    # priority: after all real models, so that it only answers if named; note and price: make clear that it is not a model
    facts = Facts("rules", needs_key=False, priority=995, main="rules", free=True)

    def __init__(self, settings: ProviderSettings) -> None:
        self.name = settings.name
        self.dialect = self.facts.dialect
        self.quirks = self.facts.quirks
        self._rules = _compiled(settings.options.get("rules", {}))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[Raw, ...], None]:
        """Stream the answer in the openai-chat format: each raw is a complete event of the stream, with its framing."""
        answer = self._answer(_prompt(request.body))
        for word in re.findall(r"\S+\s*", answer):
            yield (_frame({"index": 0, "delta": {"content": word}, "finish_reason": None}),)
        yield (_frame({"index": 0, "delta": {}, "finish_reason": "stop"}), b"data: [DONE]\n\n")

    async def models(self) -> Sequence[Model]:
        return [self.describe("rules")]

    def describe(self, name: str) -> Model:
        """Return the model. Raise UsageError if the name is unknown."""
        if name != "rules":
            raise UsageError(f"provider {self.name!r} has no model {name!r}; did you mean 'rules'?")
        return Model(ModelId(name, self.name), name, context=100_000, price=Price(0, 0, 0, 0), tools="none", note="rules, no model")

    async def close(self) -> None:
        """Do nothing: the provider holds no resources."""

    def _answer(self, prompt: str) -> str:
        for pattern, answer in self._rules:
            if found := pattern.search(prompt):
                return found.expand(answer)
        return NO_MATCH


def _compiled(rules: Json) -> list[tuple[re.Pattern[str], str]]:
    if not isinstance(rules, dict):
        raise ConfigError(f"providers.rules.rules is {rules!r}; expected a map of patterns to answers")
    try:
        return [(re.compile(pattern), str(answer)) for pattern, answer in rules.items()]
    except re.error as error:
        raise ConfigError(f"providers.rules.rules: {error.pattern!r} is not a regular expression: {error}") from error


def _prompt(body: bytes) -> str:
    """Return the user's last message."""
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
