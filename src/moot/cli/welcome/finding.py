"""What can be had on this machine without asking anybody for anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import anyio

from moot.agents.known.finding import known_agents, presence_of
from moot.config.home import KEY_VARIABLES
from moot.config.settings import ProviderSettings, Settings
from moot.errors import MootError
from moot.providers.catalogue import proposed
from moot.providers.local import check_machine
from moot.providers.pool import Listens, Providers
from moot.providers.weights.here import path_of
from moot.providers.weights.manifest import DEFAULT, find
from moot.types.model import Model

__all__ = ["Found", "Offered", "look"]

SECONDS = 0.3
"""How long a server of this machine is waited for."""
_CONFIGURED_SECONDS = 2.0
"""How long an endpoint is waited for that the person has put into the configuration, and that may be far away."""


@dataclass(frozen=True, slots=True)
class Offered:
    """One model that can be chosen."""

    provider: str
    model: str
    """Its name there; empty = the first that the server has, which did not say in time."""
    detail: str
    """Where it comes from, for a person."""
    entry: ProviderSettings | None = None
    """What the configuration does not have yet; None = it has all."""
    written: Mapping[str, str] = field(default_factory=dict[str, str])
    """Dotted key → value that go into the file beside the model."""

    @property
    def id(self) -> str:
        return f"{self.model}@{self.provider}"

    def within(self, settings: Settings) -> Settings:
        """The settings as they will be when this one is chosen."""
        added = {self.provider: self.entry} if self.entry else {}
        return replace(settings, providers={**settings.providers, **added}, models=replace(settings.models, main=self.id))


@dataclass(frozen=True, slots=True)
class Found:
    """All that was found."""

    offered: tuple[Offered, ...]
    """What is there already first, then what must be fetched, then what is no model."""
    agents: tuple[str, ...] = ()
    """Outside agents that can be run here."""
    lacking: str = ""
    """Why the embedded model is none of them; empty when it is."""


async def look(settings: Settings, environ: Mapping[str, str]) -> Found:
    """What can be had. Servers are asked all at once; one that is silent holds nobody up."""
    providers = Providers(settings)
    found: dict[str, Offered] = {}

    async def ask(name: str) -> None:
        if (offered := await _offered(name, providers, settings, environ)) is not None:
            found[name] = offered

    try:
        names = [name for name in providers.available() if name not in ("local", "demo")]
        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(ask, name)
        always = set(providers.available())
    finally:
        await providers.close()
    offered = [found[name] for name in names if name in found]
    embedded, lacking = _embedded(settings) if "local" in always else (None, "")
    if embedded is not None:
        offered.append(embedded)
    if "demo" in always:
        offered.append(Offered("demo", "demo", "no model: fixed words, to look around"))
    agents = tuple(name for name, entry in known_agents().items() if presence_of(entry.agent(), environ).ready)
    return Found(tuple(offered), agents, lacking)


async def _offered(name: str, providers: Providers, settings: Settings, environ: Mapping[str, str]) -> Offered | None:
    """What a provider has to offer; None when it does not answer or can't be asked."""
    entry = settings.providers.get(name) or ProviderSettings(name)
    try:
        provider, facts = providers.provider(name), providers.facts(name)
    except MootError:  # a plugin that can't be made: `moot doctor` says so
        return None
    url = entry.base_url or facts.base_url
    server = isinstance(provider, Listens)
    main = "" if server else proposed(facts, entry)
    if main:
        return Offered(name, main, _source(name, entry, environ))
    models: list[Model] = []
    with anyio.move_on_after(SECONDS if server else _CONFIGURED_SECONDS) as scope:
        try:
            models = [model for model in await provider.models() if "embed" not in model.id.model]
        except MootError:
            return None
    if models:
        more = f", {len(models) - 1} more" if len(models) > 1 else ""
        return Offered(name, models[0].id.model, f"answers at {url}{more}")
    if scope.cancelled_caught and await _accepts(url):
        return Offered(name, "", f"at {url}, slow to answer")
    return None


async def _accepts(url: str) -> bool:
    """Whether somebody is there, however busy."""
    split = urlsplit(url)
    if split.hostname is None:
        return False
    with anyio.move_on_after(SECONDS):
        try:
            async with await anyio.connect_tcp(split.hostname, split.port or (443 if split.scheme == "https" else 80)):
                return True
        except OSError:
            return False
    return False


def _source(name: str, entry: ProviderSettings, environ: Mapping[str, str]) -> str:
    variable = next((name for name in KEY_VARIABLES.get(name, ()) if environ.get(name) and environ[name] == entry.api_key), "")
    return f"key in {variable}" if variable else "in your configuration"


def _embedded(settings: Settings) -> tuple[Offered | None, str]:
    """The embedded model, or why it can't be had."""
    weights = find(DEFAULT)
    try:
        check_machine(weights.size)
    except MootError as error:
        return None, f"{error.message} ({error.fix})" if error.fix else error.message
    size = f"{weights.size / 1_000_000:,.0f} MB"
    here = path_of(DEFAULT, settings.home) is not None
    detail = f"embedded, tiny; {size}{'' if here else ' to fetch'}, {weights.licence}"
    return Offered("local", DEFAULT, detail), ""
