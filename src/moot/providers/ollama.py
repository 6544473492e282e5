"""Ollama on this machine, in its own dialect."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import SplitResult

from moot.providers._own_machine import OwnMachine
from moot.types.facts import Facts
from moot.types.model import Model

_VERSION = "/v1"
_CLOUD = ("-cloud", ":cloud")


class Ollama(OwnMachine):
    """`base_url` has no version, as Ollama's own clients take it; with a dialect of OpenAI's the `/v1` of that side is added here.

    `models: {NAME: {context: 32768}}` of its entry is what a request asks the server to make room for.
    """

    facts = Facts("ollama", "http://127.0.0.1:11434", dialect="ollama", needs_key=False, priority=80, free=True, open_ended=True)

    def describe(self, name: str) -> Model:
        """As everywhere; models that Ollama passes on to its cloud are not computed here, and their price is unknown."""
        model = super().describe(name)
        priced_here = "price" in self.settings.models.get(name, {})
        return replace(model, price=None) if name.endswith(_CLOUD) and not priced_here else model

    def _base_url(self) -> SplitResult:
        url = super()._base_url()
        return url._replace(path=url.path.removesuffix(_VERSION) + _VERSION) if self.dialect.startswith("openai-") else url
