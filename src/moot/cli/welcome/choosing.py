"""The question which model to use. The chosen model is tried and written to the configuration."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio

from moot.cli.asking import parse_number
from moot.cli.configured import configured
from moot.cli.output import Output
from moot.cli.trying import ask_model
from moot.cli.weights import provide_weights
from moot.cli.welcome.asked import skip_file
from moot.cli.welcome.drawing import Line, number_names, render, wrap
from moot.cli.welcome.finding import Discovery, Offer, discover
from moot.cli.welcome.keys import is_key, vendor_of
from moot.cli.welcome.typing import ask_hidden
from moot.config.home import KEY_VARIABLES
from moot.config.loading import FILE, Loaded
from moot.config.settings import ProviderSettings, Settings
from moot.config.writing import set_values
from moot.errors import MootError, ProviderError, UsageError
from moot.providers.catalogue import proposed
from moot.providers.pool import Providers
from moot.providers.trying import Answered

__all__ = ["choose"]

SECONDS = 90.0
"""Timeout of the first answer. A server may have to load the model first."""
_LATER = "No model was chosen, and you won't be asked again. To choose one later, run `moot models choose`."


async def choose(loaded: Loaded, output: Output, *, yes: bool = False) -> Loaded:
    """Return the configuration with the chosen model; unchanged if the user decides later.

    Nothing is written before the model has answered. `yes` chooses the first model without asking, and downloads it if needed.
    Raise UsageError if there is no model; with `yes`, errors of the test call are passed on.
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
        """Ask until a model has answered. Return False if the user decides later."""
        self._say(render(self.found, self._width))
        while True:
            typed = await ask_hidden("> ", self.output)
            if typed is None or typed.lower() == "s":
                self._later()
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
        await self._download(offer, settings)
        self._tell(f"Testing {offer.id if offer.model else offer.provider} …", "dim")
        answered = await _try(settings, offer)
        file = self.settings.home / FILE
        set_values(file, {**offer.values, "models.main": str(answered.choice.model.id)}, os.environ)
        skip_file(self.settings).unlink(missing_ok=True)
        self._tell(f"{answered.choice.model.id} answered in {answered.seconds:.1f} s. It is your main model now.", "green")
        self._tell(f"Saved as models.main in {file}.", "dim")
        if answered.choice.model.note:
            self._tell(f"Note: {answered.choice.model.note}", "yellow")
        if f"providers.{offer.provider}.api_key" in offer.values:
            self._tell("Your key is saved in the same file, which only you can read.")

    async def _download(self, offer: Offer, settings: Settings) -> None:
        if offer.provider != "local":
            return
        providers = Providers(settings)
        try:
            await provide_weights(providers, offer.id, self.output, consent=self.downloads)
        finally:
            await providers.close()

    async def _parse(self, typed: str) -> Offer | None:
        """Return the offer for a typed number or API key. Print a message and return None for anything else."""
        offers = self.found.offers
        if re.fullmatch(r"[0-9]{0,3}", typed):
            if number := parse_number(typed or "1", len(offers)):
                return offers[number - 1]
            self.output.say(f"{typed} is not on the list." if typed else "There is no model to choose. Paste an API key.", "yellow")
            return None
        if is_key(typed):
            return await self._with_key(typed)
        self.output.say("That is neither a number on the list nor an API key.", "yellow")
        return None

    async def _with_key(self, key: str) -> Offer | None:
        self.output.hide((*self.output.secrets, key))
        providers = Providers(self.settings)  # only for their facts; no provider is created
        name = vendor_of(key, providers) or await self._ask_vendor()
        if not name:
            return None
        entry = replace(self.settings.providers.get(name) or ProviderSettings(name), api_key=key)
        facts = providers.facts(name)
        values = {f"providers.{name}.api_key": key}
        return Offer(name, proposed(facts, entry), "pasted", entry, values)

    async def _ask_vendor(self) -> str:
        """Return the provider that a key belongs to; empty if the user doesn't say."""
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

    def _later(self) -> None:
        file = skip_file(self.settings)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        self._tell(_LATER, "dim")

    @property
    def _width(self) -> int:
        return shutil.get_terminal_size().columns

    def _tell(self, text: str, style: str = "") -> None:
        self._say(wrap(text, self._width - 1, style))

    def _say(self, lines: Sequence[Line]) -> None:
        for text, style in lines:
            self.output.say(text, style)


async def _try(settings: Settings, offer: Offer) -> Answered:
    """Return the model's answer. Raise ProviderError if it fails or takes too long."""
    try:
        with anyio.fail_after(SECONDS):
            return await ask_model(settings, offer.id)
    except TimeoutError as error:
        message = f"{offer.id} did not answer within {SECONDS:.0f} seconds."
        raise ProviderError(message, fix="Try again, or choose another model.", kind="transport", retryable=True) from error
