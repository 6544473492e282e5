"""Endpoints defined in the configuration."""

from __future__ import annotations

from dataclasses import fields, replace

from moot.config.settings import ProviderSettings
from moot.errors import ConfigError
from moot.providers.http import HttpProvider
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
