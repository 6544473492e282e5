"""Discover the available models and agents. Only local servers and configured endpoints are contacted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import anyio

from moot.agents.known import known_agents, presence_of
from moot.config.home import KEY_VARIABLES
from moot.config.settings import ProviderSettings, Settings
from moot.errors import MootError
from moot.providers.catalogue import default_model
from moot.providers.machine import check_machine
from moot.providers.pool import Listens, Providers
from moot.providers.weights import DEFAULT, find, weights_path
from moot.types.model import Model

SECONDS = 0.3
"""Timeout in seconds for a server on this machine."""
_CONFIGURED_SECONDS = 2.0
"""Timeout in seconds for a configured endpoint, which may be remote."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One model that can be chosen."""

    provider: str
    model: str
    """The model's name at the provider; empty for the first model of a server that did not answer in time."""
    detail: str
    """Source of the model, such as an environment variable or a server; shown to the user."""
    entry: ProviderSettings | None = None
    """Settings of the provider to add to the configuration; None to add none."""
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values to write to the configuration along with the model, by dotted key."""
    download: int = 0
    """Number of bytes to download before the model can be used."""

    @property
    def id(self) -> str:
        return f"{self.model}@{self.provider}"

    def apply(self, settings: Settings) -> Settings:
        """Return the settings with this model as the main model."""
        added = {self.provider: self.entry} if self.entry else {}
        return replace(settings, providers={**settings.providers, **added}, models=replace(settings.models, main=self.id))


@dataclass(frozen=True, slots=True)
class Discovery:
    """The available models and agents."""

    offers: tuple[Offer, ...]
    """Ready models first, then those to download, then the demo."""
    agents: tuple[str, ...] = ()
    """Names of the outside agents that are ready to use."""
    missing: str = ""
    """The reason why the embedded model is not offered; empty if it is offered."""


async def discover(settings: Settings, environ: Mapping[str, str]) -> Discovery:
    """Return the available models and agents. Servers are queried concurrently, with a short timeout."""
    providers = Providers(settings)
    found: dict[str, Offer] = {}

    async def ask(name: str) -> None:
        if (offer := await _offer(name, providers, settings, environ)) is not None:
            found[name] = offer

    try:
        names = [name for name in providers.available() if name not in ("local", "demo")]
        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(ask, name)
        available = set(providers.available())
    finally:
        await providers.close()
    offers = [found[name] for name in names if name in found]
    embedded, missing = _embedded(settings) if "local" in available else (None, "")
    if embedded is not None:
        offers.append(embedded)
    if "demo" in available:
        offers.append(Offer("demo", "demo", "not a real model: canned answers to try moot with"))
    agents = tuple(name for name, entry in known_agents().items() if presence_of(entry.agent(), environ).ready)
    return Discovery(tuple(offers), agents, missing)


async def _offer(name: str, providers: Providers, settings: Settings, environ: Mapping[str, str]) -> Offer | None:
    """Return a provider's best model, or None if the provider does not answer or cannot be loaded."""
    entry = settings.providers.get(name) or ProviderSettings(name)
    try:
        provider, facts = providers.provider(name), providers.facts(name)
    except MootError:  # a broken plugin; `moot doctor` reports it
        return None
    url = entry.base_url or facts.base_url
    server = isinstance(provider, Listens)
    main = "" if server else default_model(facts, entry)
    if main:
        variable = next((key for key in KEY_VARIABLES.get(name, ()) if environ.get(key) and environ[key] == entry.api_key), "")
        return Offer(name, main, f"key in {variable}" if variable else "in your configuration")
    models: list[Model] = []
    with anyio.move_on_after(SECONDS if server else _CONFIGURED_SECONDS) as scope:
        try:
            models = [model for model in await provider.models() if "embed" not in model.id.model]
        except MootError:
            return None
    if models:
        more = f", {len(models) - 1} more" if len(models) > 1 else ""
        return Offer(name, models[0].id.model, f"server at {url}{more}")
    if scope.cancelled_caught and await _accepts(url):
        return Offer(name, "", f"slow server at {url}")
    return None


async def _accepts(url: str) -> bool:
    """Return True if the port accepts connections."""
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


def _embedded(settings: Settings) -> tuple[Offer | None, str]:
    """Return the offer of the embedded model, or None together with the reason why this machine can't run it."""
    weights = find(DEFAULT)
    try:
        check_machine(weights.memory)
    except MootError as error:
        return None, f"{error.message} {error.fix}".rstrip()
    download = 0 if weights_path(DEFAULT, settings.home) is not None else weights.size
    size = f"a download of {download / 1_000_000:,.0f} MB" if download else "already downloaded"
    return Offer("local", DEFAULT, f"runs on this machine; {size}. {_LIMITS}", download=download), ""


_LIMITS = "Very small: for short, plain requests; check its answers."
