"""Google's Gemini API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from moot.convert.dialects.frames import KEPT
from moot.errors import ProviderError
from moot.providers.http import HttpProvider
from moot.types.canonical import Json, JsonObject, loads
from moot.types.model import Model
from moot.types.provider import Facts

_METHOD = "generateContent"


class Google(HttpProvider):
    """`base_url` has no version, because the paths include it. The key is sent in a header, because servers log URLs."""

    facts = Facts(
        "google",
        "https://generativelanguage.googleapis.com",
        dialect="google",
        key_form=r"AIza[\w-]{35}",
        priority=22,
        main="gemini-3.8-flash",
        prices="google",
        sold=r"^(gemini|gemma)-",
    )

    async def models(self) -> Sequence[Model]:
        """Return the models that answer prompts, with their context sizes. Raise ProviderError."""
        if self.dialect != self.facts.dialect:
            return await super().models()
        body = await self._get(self.shape.models)
        try:
            value = loads(body)
        except ValueError:
            value = None
        rows = value.get("models") if isinstance(value, dict) else None
        if not isinstance(rows, list):
            fix = f"check providers.{self.name}.base_url"
            raise ProviderError(f"{self.name} did not return a list of models", fix=fix, kind="protocol", raw=body[:KEPT])
        return [self._listed(row) for row in rows if isinstance(row, dict) and _answers(row)]

    def _listed(self, row: JsonObject) -> Model:
        model = self.describe(str(row["name"]).removeprefix("models/"))
        context, output = row.get("inputTokenLimit"), row.get("outputTokenLimit")
        return replace(
            model,
            context=model.context or (context if isinstance(context, int) else None),
            max_output=model.max_output or (output if isinstance(output, int) else None),
        )


def _answers(row: JsonObject) -> bool:
    methods: Json = row.get("supportedGenerationMethods")
    return isinstance(row.get("name"), str) and isinstance(methods, list) and _METHOD in methods
