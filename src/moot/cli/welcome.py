"""The first-run screen: discover the available models and agents, list them, and ask which model to use.

It is shown if no main model is configured, before the engine is opened. Only local servers and configured endpoints are contacted. The
chosen model is tested with one short call before it is written to the configuration as `models.main`.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import anyio

from moot.agents.known import known_agents, presence_of
from moot.cli.console.output import Output
from moot.cli.context.configuration import configured
from moot.cli.models import ask_model, provide_weights, skip_file
from moot.cli.terminal.prompts.plain import ask_hidden
from moot.cli.terminal.prompts.rows import wrap_words
from moot.cli.terminal.text import cut, width_of
from moot.config.changes import set_values
from moot.config.home import KEY_VARIABLES
from moot.config.loader import FILE, Loaded
from moot.config.settings import ProviderSettings, Settings
from moot.errors import MootError, UsageError
from moot.providers.catalogue import default_model
from moot.providers.machine import check_machine
from moot.providers.pool import Listens, Providers
from moot.providers.weights import DEFAULT, find, weights_path
from moot.runtime.approvals.typed_answers import parse_number
from moot.types.model import Model

_KEY = re.compile(r"[\x21-\x7e]{16,}")


def is_key(text: str) -> bool:
    """Return True if the text can be an API key: at least 16 visible ASCII characters without spaces."""
    return _KEY.fullmatch(text) is not None


def vendor_of(key: str, providers: Providers) -> str:
    """Return the provider if it is the only one whose API keys have this format,
    otherwise an empty string, because a wrong guess would leak the key.
    """
    forms = {name: providers.facts(name).key_form for name in providers.names()}
    found = [name for name, form in forms.items() if form and re.fullmatch(form, key)]
    return found[0] if len(found) == 1 else ""


Line = tuple[str, str]
"""A text and its style, as passed to `Lines.say`."""

MAX_WIDTH = 100
"""Maximum width of lines in columns. Longer lines are hard to read."""
_PRIVATE = "No account is needed, and nothing is sent before you choose. The chosen model is tested with one short question."


def render(found: Discovery, width: int) -> list[Line]:
    """Return the lines of the screen, without the input line."""
    width = min(width - 1, MAX_WIDTH)
    lines: list[Line] = [*wrap("No model is configured yet. Available models:", width, "bold"), ("", "")]
    lines += _offers(found.offers, width)
    notes: list[Line] = []
    if found.missing:
        notes += wrap(found.missing, width, "dim")
    if found.agents:
        agents = ", ".join(found.agents)
        notes += wrap(f"Installed agents: {agents}. Run one with moot run -a NAME; it uses its own model and login.", width, "dim")
    if notes:
        lines += [("", ""), *notes]
    default = f" Press Enter for 1 ({_default(found.offers[0])})." if found.offers else ""
    number = "Type a number or paste" if found.offers else "Paste"
    question = f"{number} an API key, then press Enter.{default} Press Esc or type s to decide later."
    lines += [("", ""), *wrap(question, width, ""), *wrap(_PRIVATE, width, "dim")]
    return lines


def _default(offer: Offer) -> str:
    return f"{offer.provider}, a download of {offer.download / 1_000_000:,.0f} MB" if offer.download else offer.provider


def number_names(names: Sequence[str], width: int) -> list[Line]:
    """Number the names, and return lines with as many names per line as fit."""
    numbered = [f"{number} {name}" for number, name in enumerate(names, 1)]
    column = max(map(width_of, numbered)) + 3
    each = max((min(width - 1, MAX_WIDTH) - 2) // column, 1)
    rows = [numbered[at : at + each] for at in range(0, len(numbered), each)]
    return [("  " + "".join(f"{name:<{column}}" for name in row).rstrip(), "") for row in rows]


def wrap(text: str, width: int, style: str, indent: int = 0) -> list[Line]:
    """Return the text in lines of at most `width` columns."""
    return [(" " * indent + line, style) for line in wrap_words(text, max(width, 20) - indent)]


def _offers(offers: Sequence[Offer], width: int) -> Iterator[Line]:
    names = [offer.provider for offer in offers]
    models = [offer.model or "(first model)" for offer in offers]
    name_width, model_width = max(map(width_of, names), default=0), max(map(width_of, models), default=0)
    details = max((width_of(offer.detail) for offer in offers), default=0)
    wide = 9 + name_width + model_width + details <= width
    for number, (offer, model) in enumerate(zip(offers, models, strict=True), 1):
        name = offer.provider + " " * (name_width - width_of(offer.provider))
        if wide:
            yield f"{number:>3}  {name}  {model}{' ' * (model_width - width_of(model))}  {offer.detail}", ""
        else:
            yield cut(f"{number:>3}  {offer.provider}  {model}", width, mark="…"), ""
            yield from wrap(offer.detail, width, "dim", indent=5)


SECONDS = 90.0
"""Timeout in seconds for the test answer. A server may have to load the model before it can answer."""
_LATER = "No model was chosen, and you won't be asked again. To choose one later, run `moot models choose`."


async def choose(loaded: Loaded, output: Output, *, yes: bool = False) -> Loaded:
    """Ask for a model, write it to the configuration and return the new configuration. Return `loaded` if the user wants to choose later.

    Nothing is written before the model has answered. If `yes` is True, choose the first model without asking, and download it if needed;
    then errors of the test call are not caught. Raise UsageError if there is no model.
    """
    chooser = _Chooser(loaded.settings, await discover(loaded.settings, os.environ), output, downloads=yes)
    if not yes:
        return configured(output) if await chooser.ask() else loaded
    if not chooser.found.offers:
        raise UsageError("No model is available.", fix="Set a provider's API key, or models.main in the configuration.")
    await chooser.take(chooser.found.offers[0])
    return configured(output)


@dataclass(frozen=True, slots=True)
class _Chooser:
    """The question and its state."""

    settings: Settings
    found: Discovery
    output: Output
    downloads: bool

    async def ask(self) -> bool:
        """Ask until a chosen model has answered. Return False if the user wants to choose later."""
        self._say(render(self.found, self._width))
        while True:
            typed = await ask_hidden("> ", self.output)
            if typed is None or typed.lower() == "s":
                file = skip_file(self.settings)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
                self._tell(_LATER, "dim")
                return False
            try:
                offer = await self._parse(typed)
                if offer is not None:
                    await self.take(offer)
                    return True
            except MootError as error:
                self._tell(f"moot: {error.message}", "red")
                if error.fix:
                    self._say(wrap(error.fix, self._width, "", indent=2))
            self.output.say("Type another number or key, or s to skip:")

    async def take(self, offer: Offer) -> None:
        """Try the model and write it to the configuration. Raise MootError, and write nothing, if it fails."""
        settings = offer.apply(self.settings)
        if offer.provider == "local":
            providers = Providers(settings)
            try:
                await provide_weights(providers, offer.id, self.output, consent=self.downloads)
            finally:
                await providers.close()
        self._tell(f"Testing {offer.id if offer.model else offer.provider} …", "dim")
        answered = await ask_model(settings, offer.id, seconds=SECONDS)
        file = self.settings.home / FILE
        set_values(file, {**offer.values, "models.main": str(answered.choice.model.id)}, os.environ)
        skip_file(self.settings).unlink(missing_ok=True)
        self._tell(f"{answered.choice.model.id} answered in {answered.seconds:.1f} s. It is your main model now.", "green")
        self._tell(f"Saved as models.main in {file}.", "dim")
        if answered.choice.model.note:
            self._tell(f"Note: {answered.choice.model.note}", "yellow")
        if f"providers.{offer.provider}.api_key" in offer.values:
            self._tell("Your key is saved in the same file, which only you can read.")

    async def _parse(self, typed: str) -> Offer | None:
        """Return the offer for a typed number or API key. For anything else, print a message and return None."""
        offers = self.found.offers
        if re.fullmatch(r"[0-9]{0,3}", typed):
            if number := parse_number(typed or "1", len(offers)):
                return offers[number - 1]
            self.output.say(f"{typed} is not on the list." if typed else "There is no model to choose. Paste an API key.", "yellow")
            return None
        if not is_key(typed):
            self.output.say("That is neither a number on the list nor an API key.", "yellow")
            return None
        self.output.hide((*self.output.secrets, typed))
        providers = Providers(self.settings)  # only for their facts; no provider is created
        name = vendor_of(typed, providers) or await self._ask_vendor()
        if not name:
            return None
        entry = replace(self.settings.providers.get(name) or ProviderSettings(name), api_key=typed)
        return Offer(name, default_model(providers.facts(name), entry), "pasted", entry, {f"providers.{name}.api_key": typed})

    async def _ask_vendor(self) -> str:
        """Ask which provider an API key belongs to. Return the provider's name, or an empty string if the user doesn't enter one."""
        names = sorted(KEY_VARIABLES)
        self._tell("Which provider is this key for?")
        self._say(number_names(names, self._width))
        typed = await ask_hidden("Number or name> ", self.output)
        if typed in names:
            return typed
        if typed and (number := parse_number(typed, len(names))):
            return names[number - 1]
        self.output.say("Unknown provider. The key was not saved.", "yellow")
        return ""

    @property
    def _width(self) -> int:
        return shutil.get_terminal_size().columns

    def _tell(self, text: str, style: str = "") -> None:
        self._say(wrap(text, self._width - 1, style))

    def _say(self, lines: Sequence[Line]) -> None:
        for text, style in lines:
            self.output.say(text, style)


_LOCAL_SECONDS = 0.3
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
    with anyio.move_on_after(_LOCAL_SECONDS if server else _CONFIGURED_SECONDS) as scope:
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
    with anyio.move_on_after(_LOCAL_SECONDS):
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
