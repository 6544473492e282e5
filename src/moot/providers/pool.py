"""The way in: from a configuration to providers, and from a name to a model with whom to call and how to speak."""

from __future__ import annotations

import asyncio
import difflib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, get_args, runtime_checkable

from moot.config.home import KEY_VARIABLES
from moot.config.settings import ProviderSettings, Settings
from moot.errors import ConfigError, MootError, ProviderError, UsageError
from moot.plugins import DIALECTS, PROVIDERS
from moot.providers import catalogue
from moot.types.context import Choice
from moot.types.facts import Facts
from moot.types.model import Model, ModelId, ModelRole
from moot.types.provider import Provider
from moot.types.usage import Usage

_log = logging.getLogger(__name__)

_LIST_SECONDS = 3.0
"""How long a bare name waits for one endpoint's list."""

_LAST = 10_000

_ALIKE = 0.8
"""How much a name must resemble a known one to be taken for a slip."""


@runtime_checkable
class Describes(Protocol):
    """An optional power of a provider: knowing its models without asking anybody."""

    def describe(self, name: str) -> Model:
        """Raises UsageError for a model that it can't have."""
        ...


@runtime_checkable
class Listens(Protocol):
    """An optional power: saying whether its server runs on this machine."""

    async def listening(self, seconds: float = 0.5) -> bool: ...


@dataclass(frozen=True, slots=True)
class Listing:
    """All models that can be named, and why some providers had none to show."""

    models: tuple[Model, ...]
    problems: Mapping[str, str] = field(default_factory=dict[str, str])


class Providers:
    """The providers of a configuration: one instance each, made when first wanted. One for each event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._made: dict[str, Provider] = {}
        self._retired: list[Provider] = []

    def update(self, settings: Settings) -> None:
        """Takes a reloaded configuration. Providers whose entry changed are made anew; streams that are open run to their end."""
        for name in list(self._made):
            if settings.providers.get(name) != self.settings.providers.get(name) or settings.home != self.settings.home:
                self._retired.append(self._made.pop(name))
        self.settings = settings

    async def close(self) -> None:
        """Closes all providers, also those whose streams are open."""
        providers, self._made, self._retired = [*self._made.values(), *self._retired], {}, []
        for provider in providers:
            await provider.close()

    def names(self) -> list[str]:
        """All providers that can be named, in the order in which a bare model name is looked up."""
        names = {*PROVIDERS.names(), *self.settings.providers} - {"custom"}
        return sorted(names, key=lambda name: (self._priority(name), name))

    def available(self) -> list[str]:
        """Those that are enabled and have a key or need none, in the same order. Whether a server answers is not looked at."""
        return [name for name in self.names() if not self._lack(name)]

    async def silent(self) -> set[str]:
        """Those of the available ones whose server should run on this machine and does not."""
        servers = {name: found for name in self.available() if isinstance(found := self.provider(name), Listens)}
        answers = await asyncio.gather(*(server.listening() for server in servers.values()))
        return {name for name, answers_now in zip(servers, answers, strict=True) if not answers_now}

    def facts(self, name: str) -> Facts:
        """What is stated about a provider. Raises UsageError for an unknown name."""
        found = getattr(self._class(name), "facts", None)
        return found if isinstance(found, Facts) else Facts(name, needs_key=False, open_ended=True)

    def provider(self, name: str) -> Provider:
        """The one instance of a provider. Raises UsageError for an unknown or disabled one, ConfigError when its key is missing."""
        if name not in self._made:
            lack = self._lack(name)
            if lack:
                raise lack
            self._made[name] = self._make(name)
        return self._made[name]

    def price(self, model: Model, usage: Usage) -> int | None:
        """What a call cost, in nano-dollars; None = unknown."""
        return catalogue.price(model, usage)

    async def choice(self, text: str = "", *, role: ModelRole = "main") -> Choice:
        """The model that a text means: `model@provider`, a bare name, a model type, or nothing for the type `role`.

        With no main model configured, what can be found is taken: a provider with a key, then a listening Ollama or LM Studio, then the
        embedded model. Raises UsageError (a ConfigError for a missing key) that names the nearest thing there is.
        """
        await self._sweep()
        wanted = self._configured(text, role) or await self._detect()
        id = ModelId.parse(wanted)
        await self._warm([id.provider] if id.provider else self.available())
        name = id.provider or await self._find(id.model)
        provider = self.provider(name)
        model = await self._model(provider, name, id.model)
        return Choice(model, provider, DIALECTS.make(provider.dialect))

    async def choices(self, text: str, fallback: Sequence[str] = (), *, role: ModelRole = "main") -> tuple[Choice, ...]:
        """The model meant, then its fallbacks in order, each once. A fallback without its key is passed over."""
        found = [await self.choice(text, role=role)]
        for other in fallback:
            try:
                choice = await self.choice(other)
            except ConfigError as error:
                _log.warning("fallback %r is passed over: %s", other, error.message)
                continue
            if choice.model.id not in [one.model.id for one in found]:
                found.append(choice)
        return tuple(found)

    async def models(self, name: str = "") -> Listing:
        """What `moot models list` shows: of one provider, or of all available ones.

        An endpoint that answers says what it has; for one that does not, the catalogue speaks. A server of this machine that is not
        configured and does not run is no part of it.
        """
        out = {"demo", *(await self.silent() - self.settings.providers.keys())}
        names = [name] if name else [one for one in self.available() if one not in out]
        listings = await asyncio.gather(*(self._list(one) for one in names))
        problems = {one: problem for one, (_, problem) in zip(names, listings, strict=True) if problem}
        return Listing(tuple(model for models, _ in listings for model in models), problems)

    # ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _configured(self, text: str, role: ModelRole) -> str:
        """The text with model types replaced; empty only for a main model that is not configured."""
        wanted = text or role
        if wanted not in get_args(ModelRole):
            return wanted
        configured = str(getattr(self.settings.models, wanted))
        if configured or wanted == "main":
            return configured
        if wanted == "compaction":
            return self.settings.models.main
        raise UsageError(f"no model is configured for {wanted!r}", fix=f"set models.{wanted} in {self._file()}")

    async def _detect(self) -> str:
        """The main model where none is configured."""
        for name in self.available():
            facts, entry = self.facts(name), self._entry(name)
            main = catalogue.proposed(facts, entry)
            if name == "demo":
                continue  # words of a script must never pass for an answer that nobody asked a script for
            provider = self.provider(name) if facts.open_ended else None
            if isinstance(provider, Listens):
                main = await self._first_listed(provider)
            if main:
                return f"{main}@{name}"
        raise UsageError("no model can be had", fix=f"set a provider's key, or models.main in {self._file()}")

    async def _first_listed(self, provider: Any) -> str:
        """The first model of a server on this machine that can talk; empty when it does not run."""
        if not await provider.listening():
            return ""
        return next((model.id.model for model in await provider.models() if "embed" not in model.id.model), "")

    async def _find(self, model: str) -> str:
        """The first available provider that has a model of this name. Raises UsageError."""
        for name in self.available():
            if model in await self._known(name, model):
                return name
        await asyncio.to_thread(catalogue.load_snapshot)
        lacking = [
            name for name in self.names() if isinstance(self._lack(name), ConfigError) and catalogue.wire_name_of(self.facts(name), model)
        ]
        if lacking:
            lack = self._lack(lacking[0])
            raise ConfigError(f"model {model!r} is known at {', '.join(lacking)}, but {lack}")
        known = {found: name for name in reversed(self.available()) for found in catalogue.known(self.facts(name), self._entry(name))}
        close = difflib.get_close_matches(model, known, n=1)
        hint = f"did you mean '{close[0]}@{known[close[0]]}'?" if close else "name one as model@provider"
        raise UsageError(f"no available provider has a model {model!r}; {hint}", fix="moot models list")

    async def _known(self, name: str, model: str) -> Sequence[str]:
        """The given name if the provider has it, however spelled; where only the endpoint knows, what it lists."""
        facts, entry = self.facts(name), self._entry(name)
        if model in catalogue.known(facts, entry) or catalogue.wire_name_of(facts, model):
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
            _log.info("%s could not be asked for %r: %s", name, model, error)
            return ()

    async def _warm(self, names: Sequence[str]) -> None:
        """Loads the price snapshot beside the event loop when one of these providers is in it."""
        if any(self.facts(name).prices for name in names):
            await asyncio.to_thread(catalogue.load_snapshot)

    async def _model(self, provider: Provider, name: str, wanted: str) -> Model:
        facts = self.facts(name)
        model = wanted or catalogue.proposed(facts, self._entry(name))
        if not model:
            listed = await provider.models()
            if not listed:
                raise UsageError(f"provider {name!r} has no model", fix=f"name one: MODEL@{name}")
            return listed[0]
        if isinstance(provider, Describes):
            self._refuse_slip(name, facts, model)
            return provider.describe(model)
        listed = await provider.models()
        found = next((one for one in listed if model in (one.id.model, one.wire_name)), None)
        if found is None:
            raise UsageError(f"provider {name!r} has no model {model!r}{_hint(model, [one.id.model for one in listed])}")
        return found

    def _refuse_slip(self, name: str, facts: Facts, model: str) -> None:
        """A name nobody knows may be a new model, and passes, unless it is nearly one that is known and not a version of it."""
        known = catalogue.known(facts, self._entry(name))
        if model in known or catalogue.wire_name_of(facts, model):
            return
        words = {word for other in known for word in _words(other)}
        close = difflib.get_close_matches(model.lower(), {other.lower(): other for other in known}, n=1, cutoff=_ALIKE)
        if close and not set(_words(model)) <= words:
            raise UsageError(f"provider {name!r} has no model {model!r}{_hint(model, known)}", fix=f"moot models list {name}")

    # ── instances ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _make(self, name: str) -> Provider:
        """Raises UsageError for a plugin that can't be made, ConfigError for an entry that doesn't do."""
        return PROVIDERS.make(name if name in PROVIDERS else "custom", self._entry(name))

    def _class(self, name: str) -> Any:
        if name in PROVIDERS:
            return PROVIDERS.load(name)
        if name in self.settings.providers:
            return PROVIDERS.load("custom")
        names = self.names()
        raise UsageError(f"no provider named {name!r}{_hint(name, names)} known: {', '.join(sorted(names))}", fix="moot providers list")

    def _entry(self, name: str) -> ProviderSettings:
        return replace(self.settings.providers.get(name) or ProviderSettings(name), home=self.settings.home)

    def _priority(self, name: str) -> int:
        entry = self._entry(name)
        if entry.priority is not None:
            return entry.priority
        try:
            # what a plan includes is paid for already
            return 5 if entry.plan else self.facts(name).priority
        except UsageError:
            return _LAST

    def _lack(self, name: str) -> UsageError | None:
        """Why a provider can't be used as it is configured; None when it can."""
        try:
            facts, entry = self.facts(name), self._entry(name)
        except UsageError as error:  # an unknown name, or a plugin that does not import, which must not take the others along
            return error
        if not entry.enabled:
            return UsageError(f"provider {name!r} is disabled", fix=f"remove providers.{name}.enabled from {self._file()}")
        if not facts.needs_key or entry.api_key or entry.base_url or entry.headers:
            return self._fault(name)
        variables = " or ".join(KEY_VARIABLES.get(name, ()))
        place = f"providers.{name}.api_key in {self._file()}"
        return ConfigError(f"provider {name!r} has no key: set {f'{variables}, or ' if variables else ''}{place}")

    def _fault(self, name: str) -> UsageError | None:
        """Why a plugin can't be made, which must not take the others along; None for all else."""
        if not PROVIDERS.package(name) or name in self._made:
            return None
        try:
            self._made[name] = self._make(name)
        except UsageError as error:
            return error
        return None

    def _file(self) -> str:
        return str(self.settings.home / "config.yaml")

    async def _list(self, name: str) -> tuple[Sequence[Model], str]:
        facts, entry = self.facts(name), self._entry(name)
        try:
            models, problem = list(await self._models_of(name)), ""
            more: Sequence[str] = list(entry.models)
        except ProviderError as error:
            models, problem = [], error.message
            more = catalogue.known(facts, entry)
        have = {model.id.model for model in models}
        described = [catalogue.describe(name, facts, entry, other) for other in more if other not in have]
        return [*models, *described], problem

    async def _models_of(self, name: str) -> Sequence[Model]:
        """What the provider lists. Raises ProviderError, whatever a plugin may raise."""
        try:
            return await self.provider(name).models()
        except MootError:
            raise
        except Exception as error:
            package = PROVIDERS.package(name)
            if not package:
                raise
            _log.exception("the provider %r could not list its models", name)
            raise ProviderError(f"the provider {name!r}, from the package {package}, failed: {error!r}") from error

    async def _sweep(self) -> None:
        """Closes providers of an older configuration whose streams have ended."""
        for provider in [one for one in self._retired if not getattr(one, "live", 0)]:
            self._retired.remove(provider)
            await provider.close()


def _hint(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ";"


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+", catalogue.plain(name))
