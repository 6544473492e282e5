"""Ollama on this machine."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import SplitResult

from moot.providers._own_machine import OwnMachine
from moot.types.facts import Facts
from moot.types.model import Model

_VERSION = "/v1"
_CLOUD = ("-cloud", ":cloud")


class Ollama(OwnMachine):
    """`base_url` has no version, as in Ollama's own clients. With an OpenAI dialect, `/v1` is added.

    `models: {NAME: {context: 32768}}` of its entry sets the context size that requests ask the server for.
    """

    facts = Facts("ollama", "http://127.0.0.1:11434", dialect="ollama", needs_key=False, priority=80, free=True, open_ended=True)

    def describe(self, name: str) -> Model:
        """Return the facts about a model. The price of models that Ollama runs in its cloud is unknown."""
        model = super().describe(name)
        priced_here = "price" in self.settings.models.get(name, {})
        return replace(model, price=None) if name.endswith(_CLOUD) and not priced_here else model

    def _base_url(self) -> SplitResult:
        url = super()._base_url()
        return url._replace(path=url.path.removesuffix(_VERSION) + _VERSION) if self.dialect.startswith("openai-") else url
