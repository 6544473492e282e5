"""The question which model to use: asked, tried, written down."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio

from moot.cli.configured import configured
from moot.cli.output import Output
from moot.cli.trying import ask_model
from moot.cli.weights import provide_weights
from moot.cli.welcome.asked import skipped
from moot.cli.welcome.drawing import Line, drawn, listed, wrapped
from moot.cli.welcome.finding import Found, Offered, look
from moot.cli.welcome.keys import is_key, vendor_of
from moot.cli.welcome.typing import ask_unseen
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
"""How long the first answer may take; a server may have to load the model first."""
_LATER = "Nothing is chosen, and you are not asked again; `moot models choose` brings this back."


async def choose(loaded: Loaded, output: Output, *, yes: bool = False) -> Loaded:
    """The configuration with the chosen model in it; as it was when the person decides later.

    Nothing is written before the model has answered. With `yes` the first is taken, fetched if need be, and nothing is
    asked. Raises UsageError when there is none to take, and with `yes` whatever the trial raises.
    """
    choosing = _Choosing(loaded.settings, await look(loaded.settings, os.environ), output, downloads=yes)
    if not yes:
        return configured(output) if await choosing.ask() else loaded
    if not choosing.found.offered:
        raise UsageError("no model can be had", fix="Set a provider's key, or models.main in the configuration.")
    await choosing.take(choosing.found.offered[0])
    return configured(output)


@dataclass(frozen=True, slots=True)
class _Choosing:
    settings: Settings
    found: Found
    output: Output
    downloads: bool

    async def ask(self) -> bool:
        """Asks until a model has answered; False when the person decides later."""
        self._say(drawn(self.found, self._width))
        while True:
            typed = await ask_unseen("> ", self.output)
            if typed is None or typed.lower() == "s":
                self._later()
                return False
            try:
                offered = await self._meant(typed)
                if offered is not None:
                    await self.take(offered)
                    return True
            except MootError as error:
                self._tell(f"moot: {error.message}", "red")
                if error.fix:
                    self._say(wrapped(error.fix, self._width, "", indent="  "))
            self.output.say("Another number or key, or s:")

    async def take(self, offered: Offered) -> None:
        """Tries the model and writes it down. Raises MootError; then nothing was written."""
        settings = offered.within(self.settings)
        await self._provide(offered, settings)
        self._tell(f"Asking {offered.id if offered.model else offered.provider} for one word …", "dim")
        answered = await _tried(settings, offered)
        file = self.settings.home / FILE
        set_values(file, {**offered.written, "models.main": str(answered.choice.model.id)}, os.environ)
        skipped(self.settings).unlink(missing_ok=True)
        self._tell(f"{answered.choice.model.id} answered in {answered.seconds:.1f} s and is your main model now.", "green")
        self._tell(f"Written as models.main into {file}.", "dim")
        if answered.choice.model.note:
            self._tell(f"note: {answered.choice.model.note}", "yellow")
        if f"providers.{offered.provider}.api_key" in offered.written:
            self._tell("Your key is in the same file, which nobody but you can read.")

    async def _provide(self, offered: Offered, settings: Settings) -> None:
        if offered.provider != "local":
            return
        providers = Providers(settings)
        try:
            await provide_weights(providers, offered.id, self.output, consent=self.downloads)
        finally:
            await providers.close()

    async def _meant(self, typed: str) -> Offered | None:
        """The model that a number, or whose key, was typed; None when the words mean nothing, which has been said."""
        offered = self.found.offered
        if re.fullmatch(r"[0-9]{0,3}", typed):
            number = int(typed or 1)
            if 1 <= number <= len(offered):
                return offered[number - 1]
            self.output.say(f"There is no {number}." if typed else "Enter alone takes nothing here.", "yellow")
            return None
        if is_key(typed):
            return await self._with_key(typed)
        self.output.say("That is neither a number of the list nor an API key.", "yellow")
        return None

    async def _with_key(self, key: str) -> Offered | None:
        self.output.hide((*self.output.secrets, key))
        providers = Providers(self.settings)  # for what they state alone; none is made
        name = vendor_of(key, providers) or await self._whose()
        if not name:
            return None
        entry = replace(self.settings.providers.get(name) or ProviderSettings(name), api_key=key)
        facts = providers.facts(name)
        written = {f"providers.{name}.api_key": key}
        return Offered(name, proposed(facts, entry), "pasted", entry, written)

    async def _whose(self) -> str:
        """The provider that a key is for; empty when the person does not say."""
        names = sorted(KEY_VARIABLES)
        self._tell("Whose key is it?")
        self._say(listed(names, self._width))
        typed = await ask_unseen("number or name> ", self.output)
        if typed in names:
            return typed
        if typed and re.fullmatch(r"[0-9]{1,2}", typed) and 1 <= int(typed) <= len(names):
            return names[int(typed) - 1]
        self.output.say("Then the key is forgotten.", "yellow")
        return ""

    def _later(self) -> None:
        file = skipped(self.settings)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        self._tell(_LATER, "dim")

    @property
    def _width(self) -> int:
        return shutil.get_terminal_size().columns

    def _tell(self, text: str, style: str = "") -> None:
        self._say(wrapped(text, self._width - 1, style))

    def _say(self, lines: Sequence[Line]) -> None:
        for text, style in lines:
            self.output.say(text, style)


async def _tried(settings: Settings, offered: Offered) -> Answered:
    """The model's answer. Raises ProviderError, also for one that takes for ever."""
    try:
        with anyio.fail_after(SECONDS):
            return await ask_model(settings, offered.id)
    except TimeoutError as error:
        words = f"{offered.id} did not answer within {SECONDS:.0f} seconds"
        raise ProviderError(words, fix="Try again, or choose another one.", kind="transport", retryable=True) from error
