"""The user's own endpoints: those defined in the configuration, and LM Studio, llama.cpp and Ollama on the user's machine."""

from __future__ import annotations

from dataclasses import fields, replace
from urllib.parse import SplitResult

from moot.config.settings import ProviderSettings
from moot.errors import ConfigError, ProviderError
from moot.providers.catalogue import parse_list
from moot.providers.http import HttpProvider
from moot.types.model import Model
from moot.types.provider import Facts, Quirks


class Custom(HttpProvider):
    """An endpoint with `providers.<name>: {base_url, dialect, api_key, headers, models, quirks, …}`. The default dialect is openai-chat.

    `quirks` sets fields of `moot.types.provider.Quirks` by name, for example `quirks: {max_tokens: max_completion_tokens}`.
    """

    facts = Facts("custom", needs_key=False, priority=40, open_ended=True)
    options = (*HttpProvider.options, "quirks")

    def __init__(self, settings: ProviderSettings) -> None:
        super().__init__(settings)
        quirks = self.settings.options.get("quirks", {})
        known = {field.name: field.type for field in fields(Quirks) if field.name != "vendor_tools"}
        if not isinstance(quirks, dict) or quirks.keys() - known.keys():
            raise ConfigError(
                f"The option providers.{self.name}.quirks is {quirks!r}. Expected a mapping with these keys: {', '.join(known)}."
            )
        for name, value in quirks.items():
            if type(value) is not type(getattr(self.facts.quirks, name)):
                raise ConfigError(f"The option providers.{self.name}.quirks.{name} is {value!r}. Expected {known[name]}.")
        self.quirks = replace(self.quirks, **quirks)  # pyright: ignore[reportArgumentType]  (types checked above)


class LocalServer(HttpProvider):
    """A server without an API key or prices. Only the server knows its models."""

    async def listening(self, seconds: float = 0.5) -> bool:
        """Return True if the server answers within the given seconds and has a model."""
        try:
            body = await self._get(self.shape.models, seconds=seconds)
            return bool(parse_list(self.name, self.facts, self.settings, body))
        except ProviderError:
            return False


class LMStudio(LocalServer):
    """The local server of LM Studio, which its user starts with "Start server"."""

    facts = Facts("lm-studio", "http://127.0.0.1:1234/v1", needs_key=False, priority=81, free=True, open_ended=True)


class LlamaCpp(LocalServer):
    """The server of llama.cpp on its default port, which has a single model."""

    facts = Facts("llama-cpp", "http://127.0.0.1:8080/v1", needs_key=False, priority=82, free=True, open_ended=True)


_VERSION = "/v1"
_CLOUD = ("-cloud", ":cloud")


class Ollama(LocalServer):
    """A server of Ollama. Its `base_url` has no version, as in Ollama's clients; `/v1` is added for an OpenAI dialect.

    The setting `providers.ollama.models: {NAME: {context: 32768}}` sets the context size that requests ask for.
    """

    facts = Facts("ollama", "http://127.0.0.1:11434", dialect="ollama", needs_key=False, priority=80, free=True, open_ended=True)

    def describe(self, name: str) -> Model:
        """Return the facts about a model. Models that Ollama runs in its cloud have no known price and are not small."""
        model, own = super().describe(name), self.settings.models.get(name, {})
        if not name.endswith(_CLOUD):
            return model
        return replace(model, price=model.price if "price" in own else None, small=model.small if "small" in own else False)

    def _base_url(self) -> SplitResult:
        url = super()._base_url()
        return url._replace(path=url.path.removesuffix(_VERSION) + _VERSION) if self.dialect.startswith("openai-") else url
