"""Google's Gemini API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from moot.convert.vendor import count
from moot.providers.catalogue import rows_of
from moot.providers.http import HttpProvider
from moot.types.model import Model
from moot.types.provider import Facts


class Google(HttpProvider):
    """The Gemini API. The `base_url` has no version, because the paths include it.

    The key is sent in a header, because servers log URLs.
    """

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
        """Return the models that answer prompts, with their context sizes. Raise ProviderError if the request fails."""
        if self.dialect != self.facts.dialect:
            return await super().models()
        models: list[Model] = []
        for row in rows_of(self.name, await self._get(self.shape.models)):
            name, methods = row.get("name"), row.get("supportedGenerationMethods")
            if isinstance(name, str) and isinstance(methods, list) and "generateContent" in methods:
                model = self.describe(name.removeprefix("models/"))
                context, output = model.context or count(row.get("inputTokenLimit")), model.max_output or count(row.get("outputTokenLimit"))
                models.append(replace(model, context=context, max_output=output))
        return models
