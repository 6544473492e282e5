"""The configured providers, and the lookup of models by name."""

from __future__ import annotations

import asyncio
import difflib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, get_args, runtime_checkable

from moot.config.home import KEY_VARIABLES
from moot.config.settings import ProviderSettings, Settings
from moot.errors import ConfigError, MootError, ProviderError, UsageError
from moot.plugins import DIALECTS, PROVIDERS
from moot.plugins.registry import hint
from moot.providers import catalogue
from moot.types.context import Choice
from moot.types.model import Model, ModelId, ModelRole
from moot.types.provider import Facts, Provider

_log = logging.getLogger(__name__)

_LIST_SECONDS = 3.0
"""Time limit for fetching an endpoint's list of models when a bare name is looked up."""

_LAST = 10_000

_ALIKE = 0.8
"""Minimum similarity to a known name for an unknown name to count as a typo."""


@runtime_checkable
class Describes(Protocol):
    """Optional interface of a provider that can describe its models without a request."""

    def describe(self, name: str) -> Model:
        """Return the facts about a model. Raise UsageError if the provider can't have that model."""
        ...


@runtime_checkable
class Listens(Protocol):
    """Optional interface of a provider that can check whether its server is running on this machine."""

    async def listening(self, seconds: float = 0.5) -> bool: ...


@dataclass(frozen=True, slots=True)
class Listing:
    """The available models, and the reasons why some providers could not list theirs, by provider."""

    models: tuple[Model, ...]
    problems: Mapping[str, str] = field(default_factory=dict[str, str])


class Providers:
    """The providers of a configuration, with one instance each that is created on first use. Use one `Providers` per event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._instances: dict[str, Provider] = {}
        self._entries: dict[str, ProviderSettings] = {}
        self._retired: list[Provider] = []

    def update(self, settings: Settings) -> None:
        """Apply a reloaded configuration. Providers whose entries changed are recreated; open streams continue."""
        for name in list(self._instances):
            if settings.providers.get(name) != self.settings.providers.get(name) or settings.home != self.settings.home:
                self._retired.append(self._instances.pop(name))
        self.settings = settings
        self._entries.clear()

    async def close(self) -> None:
        """Close all providers, including those with open streams."""
        providers, self._instances, self._retired = [*self._instances.values(), *self._retired], {}, []
        for provider in providers:
            await provider.close()

    def names(self) -> list[str]:
        """Return all provider names, in the order in which a bare model name is looked up."""
        names = {*PROVIDERS.names(), *self.settings.providers} - {"custom"}
        return sorted(names, key=lambda name: (self._priority(name), name))

    def available(self) -> list[str]:
        """Return the enabled providers that have a key or need none, in the order of `names`. Servers are not contacted."""
        return [name for name in self.names() if not self._lack(name)]

    async def silent(self) -> set[str]:
        """Return the available providers whose server is expected on this machine but does not answer."""
        servers = {name: found for name in self.available() if isinstance(found := self.provider(name), Listens)}
        answers = await asyncio.gather(*(server.listening() for server in servers.values()))
        return {name for name, answers_now in zip(servers, answers, strict=True) if not answers_now}

    def facts(self, name: str) -> Facts:
        """Return the facts about a provider. Raise UsageError for an unknown name."""
        found = getattr(self._class(name), "facts", None)
        return found if isinstance(found, Facts) else Facts(name, needs_key=False, open_ended=True)

    def provider(self, name: str) -> Provider:
        """Return the provider's instance. Raise UsageError if it is unknown or disabled, ConfigError if its key is missing."""
        if name not in self._instances:
            lack = self._lack(name)
            if lack:
                raise lack
            self._instances[name] = self._make(name)
        return self._instances[name]

    async def choice(self, text: str = "", *, role: ModelRole = "main") -> Choice:
        """Return the model that a text names: `model@provider`, a bare name or a model type. An empty text means the type `role`.

        If no main model is configured, use the first one available: from a provider with a key, then from a local server such as Ollama,
        then the embedded model. Raise UsageError (ConfigError for a missing key) with a suggestion.
        """
        for replaced in [one for one in self._retired if not getattr(one, "live", 0)]:  # their streams have ended
            self._retired.remove(replaced)
            await replaced.close()
        name = self._configured(text, role) or await self._detect()
        id = ModelId.parse(name)
        if any(self.facts(name).prices for name in ([id.provider] if id.provider else self.available())):
            await asyncio.to_thread(catalogue.load_snapshot)
        name = id.provider or await self._find(id.model)
        provider = self.provider(name)
        model = await self._model(provider, name, id.model)
        return Choice(model, provider, DIALECTS.make(provider.dialect))

    async def choices(self, text: str, fallback: Sequence[str] = (), *, role: ModelRole = "main") -> tuple[Choice, ...]:
        """Return the model, then its fallbacks in order, without duplicates. Fallbacks without a key are skipped."""
        found = [await self.choice(text, role=role)]
        for other in fallback:
            try:
                choice = await self.choice(other)
            except ConfigError as error:
                _log.warning("skipping fallback %r: %s", other, error.message)
                continue
            if choice.model.id not in [one.model.id for one in found]:
                found.append(choice)
        return tuple(found)

    async def models(self, name: str = "") -> Listing:
        """Return the models of one provider, or of all available ones, as shown by `moot models list`.

        If an endpoint does not answer, the catalogue is used instead. Servers on this machine that are neither configured nor running are
        omitted.
        """
        out = {"demo", *(await self.silent() - self.settings.providers.keys())}
        names = [name] if name else [one for one in self.available() if one not in out]
        listings = await asyncio.gather(*(self._list(one) for one in names))
        problems = {one: problem for one, (_, problem) in zip(names, listings, strict=True) if problem}
        return Listing(tuple(model for models, _ in listings for model in models), problems)

    # ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _configured(self, text: str, role: ModelRole) -> str:
        """Return the configured model if the text is a model type, otherwise the text; empty if no main model is configured."""
        wanted = text or role
        if wanted not in get_args(ModelRole):
            return wanted
        configured = str(getattr(self.settings.models, wanted))
        if configured or wanted == "main":
            return configured
        if wanted == "compaction":
            return self.settings.models.main
        raise UsageError(f"No model is configured for {wanted!r}.", fix=f"Set models.{wanted} in {self._file}.")

    async def _detect(self) -> str:
        """Return the default model if no main model is configured."""
        for name in self.available():
            facts, entry = self.facts(name), self._entry(name)
            main = catalogue.default_model(facts, entry)
            if name == "demo":
                continue  # scripted answers must only be used on request
            provider = self.provider(name) if facts.open_ended else None
            if isinstance(provider, Listens):
                models = await provider.models() if await provider.listening() else ()
                main = next((model.id.model for model in models if "embed" not in model.id.model), "")
            if main:
                return f"{main}@{name}"
        raise UsageError("No model is available.", fix=f"Set a provider's API key, or models.main in {self._file}.")

    async def _find(self, model: str) -> str:
        """Return the first available provider that has the model. Raise UsageError if none has it."""
        for name in self.available():
            if model in await self._known(name, model):
                return name
        await asyncio.to_thread(catalogue.load_snapshot)
        lacks = {name: lack for name in self.names() if isinstance(lack := self._lack(name), ConfigError)}
        lacking = {name: lack for name, lack in lacks.items() if catalogue.wire_name_of(self.facts(name), model)}
        if lacking:
            raise ConfigError(f"The model {model!r} is available from {', '.join(lacking)}. {next(iter(lacking.values()))}")
        entries = [(name, self.facts(name), self._entry(name)) for name in reversed(self.available())]
        known = {found: name for name, facts, entry in entries for found in catalogue.known_models(facts, entry)}
        close = difflib.get_close_matches(model, known, n=1)
        meant = f"Did you mean '{close[0]}@{known[close[0]]}'?" if close else "Use the form model@provider."
        raise UsageError(f"No available provider has a model {model!r}. {meant}", fix="moot models list")

    async def _known(self, name: str, model: str) -> Sequence[str]:
        """Return the model's name if the provider is known to have it. If the provider's models are unknown, return the endpoint's list."""
        facts, entry = self.facts(name), self._entry(name)
        if model in catalogue.known_models(facts, entry) or catalogue.wire_name_of(facts, model):
            return (model,)
        if facts.prices:
            return ()
        provider = self.provider(name)
        if isinstance(provider, Listens) and not await provider.listening():
            return ()
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                return [found.id.model for found in await self._models_of(name)]
        except (ProviderError, TimeoutError) as error:
            _log.info("%s could not be searched for %r: %s", name, model, error)
            return ()

    async def _model(self, provider: Provider, name: str, wanted: str) -> Model:
        facts = self.facts(name)
        model = wanted or catalogue.default_model(facts, self._entry(name))
        if not model:
            listed = await provider.models()
            if not listed:
                raise UsageError(f"The provider {name!r} lists no models.", fix=f"Specify a model: MODEL@{name}.")
            return listed[0]
        if isinstance(provider, Describes):
            self._reject_typo(name, facts, model)
            return provider.describe(model)
        listed = await provider.models()
        found = next((one for one in listed if model in (one.id.model, one.wire_name)), None)
        if found is None:
            raise UsageError(f"The provider {name!r} has no model {model!r}.{hint(model, [one.id.model for one in listed])}")
        return found

    def _reject_typo(self, name: str, facts: Facts, model: str) -> None:
        """Raise UsageError if an unknown name is very similar to a known model's. Other unknown names may be new models."""
        known = catalogue.known_models(facts, self._entry(name))
        if model in known or catalogue.wire_name_of(facts, model):
            return
        words = {word for other in known for word in _words(other)}
        close = difflib.get_close_matches(model.lower(), {other.lower(): other for other in known}, n=1, cutoff=_ALIKE)
        if close and not set(_words(model)) <= words:
            raise UsageError(f"The provider {name!r} has no model {model!r}.{hint(model, known)}", fix=f"moot models list {name}")

    # ── instances ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _make(self, name: str) -> Provider:
        """Create an instance. Raise UsageError if a plugin fails, ConfigError if the entry is invalid."""
        return PROVIDERS.make(name if name in PROVIDERS else "custom", self._entry(name))

    def _class(self, name: str) -> Any:
        if name in PROVIDERS:
            return PROVIDERS.load(name)
        if name in self.settings.providers:
            return PROVIDERS.load("custom")
        names = self.names()
        raise UsageError(
            f"Provider {name!r} not found.{hint(name, names)} Known providers: {', '.join(sorted(names))}.", fix="moot providers list"
        )

    def _entry(self, name: str) -> ProviderSettings:
        if name not in self._entries:
            entry = self.settings.providers.get(name) or ProviderSettings(name)
            self._entries[name] = replace(entry, home=self.settings.home)
        return self._entries[name]

    def _priority(self, name: str) -> int:
        entry = self._entry(name)
        if entry.priority is not None:
            return entry.priority
        try:
            # a plan is already paid for, so prefer it
            return 5 if entry.plan else self.facts(name).priority
        except UsageError:
            return _LAST

    def _lack(self, name: str) -> UsageError | None:
        """Return the error that says why a provider can't be used as configured, or None if it can."""
        try:
            facts, entry = self.facts(name), self._entry(name)
        except UsageError as error:  # an unknown name, or a broken plugin, which must not affect other providers
            return error
        if not entry.enabled:
            return UsageError(f"The provider {name!r} is disabled.", fix=f"Remove providers.{name}.enabled from {self._file}.")
        if facts.needs_key and not (entry.api_key or entry.base_url or entry.headers):
            places = [*KEY_VARIABLES.get(name, ()), f"providers.{name}.api_key in {self._file}"]
            return ConfigError(f"The provider {name!r} has no API key. Set {', or '.join(places)}.")
        if PROVIDERS.package(name) and name not in self._instances:
            try:
                self._instances[name] = self._make(name)
            except UsageError as error:  # a plugin that can't be created must not affect other providers either
                return error
        return None

    @property
    def _file(self) -> Path:
        return self.settings.home / "config.yaml"

    async def _list(self, name: str) -> tuple[Sequence[Model], str]:
        facts, entry = self.facts(name), self._entry(name)
        try:
            models, problem = list(await self._models_of(name)), ""
            more: Sequence[str] = list(entry.models)
        except ProviderError as error:
            models, problem = [], error.message
            more = catalogue.known_models(facts, entry)
        have = {model.id.model for model in models}
        described = [catalogue.describe(name, facts, entry, other) for other in more if other not in have]
        return [*models, *described], problem

    async def _models_of(self, name: str) -> Sequence[Model]:
        """Return the provider's models. A plugin's errors are raised as ProviderError."""
        try:
            return await self.provider(name).models()
        except MootError:
            raise
        except Exception as error:
            package = PROVIDERS.package(name)
            if not package:
                raise
            _log.exception("the provider %r could not list its models", name)
            raise ProviderError(f"The provider {name!r} from the package {package} failed: {error!r}") from error


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+", catalogue.normalized_name(name))
