"""Any endpoint of the configuration, in the dialect that its entry names."""

from __future__ import annotations

from dataclasses import fields, replace

from moot.config.settings import ProviderSettings
from moot.errors import ConfigError
from moot.providers.http import HttpProvider
from moot.types.facts import Facts
from moot.types.provider import Quirks


class Custom(HttpProvider):
    """`providers.<name>: {base_url, dialect, api_key, headers, models, quirks, …}`; the dialect is openai-chat unless it says otherwise.

    `quirks` sets fields of `moot.types.provider.Quirks` by name: `quirks: {max_tokens: max_completion_tokens}`.
    """

    facts = Facts("custom", needs_key=False, priority=40, open_ended=True)

    def __init__(self, settings: ProviderSettings) -> None:
        super().__init__(settings)
        self.quirks = self._read_quirks()

    def _read_quirks(self) -> Quirks:
        given = self.settings.options.get("quirks", {})
        known = {field.name: field.type for field in fields(Quirks) if field.name != "vendor_tools"}
        if not isinstance(given, dict) or given.keys() - known.keys():
            raise ConfigError(f"providers.{self.name}.quirks is {given!r}; expected a map with some of: {', '.join(known)}")
        for name, value in given.items():
            if type(value) is not type(getattr(self.facts.quirks, name)):
                raise ConfigError(f"providers.{self.name}.quirks.{name} is {value!r}; expected {known[name]}")
        return replace(self.quirks, **given)  # pyright: ignore[reportArgumentType]  (types compared above)
