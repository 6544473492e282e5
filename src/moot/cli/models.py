"""The models that a run needs: ask for a main model if none is configured, download weights, and make test calls.

This module imports little, because many commands call it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from moot.cli.console.format import format_bytes, print_table
from moot.cli.console.lines import Progress
from moot.cli.console.output import Output
from moot.cli.terminal.prompts.plain import confirm
from moot.config.loader import Loader
from moot.config.settings import Settings
from moot.errors import MootError, UsageError
from moot.plugins.registry import attribute
from moot.providers.pool import Providers
from moot.providers.status import TestAnswer, answer_json
from moot.providers.status import check_model as ask_with
from moot.providers.weights import MANIFEST, weights_path
from moot.types.canonical import JsonObject

if TYPE_CHECKING:
    from moot.providers.download import Offer


_CHOOSE = "moot.cli.welcome:choose"
_AGENT_CALLED = "moot.agents.known:agent_named"


async def ensure_model(loader: Loader, output: Output, *, yes: bool = False) -> None:
    """Ask for a main model if none is configured and there is a terminal, then reload the configuration.

    If `yes` is True, choose the first available model without asking, and download it if needed.
    Then errors of the test call are not caught.
    """
    loaded = loader.current
    asks = output.attended and output.stderr_terminal and not skip_file(loaded.settings).exists()
    if not loaded.settings.models.main and (yes or asks):
        await attribute(_CHOOSE)(loaded, output, yes=yes)
        loader.reload()


def needs_main_model(settings: Settings, agent: str | None, model: str | None) -> bool:
    """Return True if a new conversation would use the main model and none is configured."""
    if settings.models.main or model not in (None, "", "main"):
        return False
    named = attribute(_AGENT_CALLED)(settings, agent or "default")
    return named is not None and named.agent_type == "moot" and named.model in ("", "main")


def skip_file(settings: Settings) -> Path:
    """Return the path of the marker file, which exists if the user wants to choose a model later."""
    return settings.home / "state" / "model-later"


# import paths, loaded on first use: most runs and the first prompt don't need them
_CHECK_MACHINE = "moot.providers.machine:check_machine"
_WRAP = "moot.cli.terminal.prompts.rows:wrap_words"
_PULL = "moot.providers.download:pull"


async def provide_weights(providers: Providers, model: str, output: Output, *, consent: bool) -> None:
    """If no model is configured, print which one is used. Download the weights of an embedded model if needed.

    Raise UsageError if the user cannot be asked, and ProviderError if the model cannot run on this machine.
    """
    choice = await providers.choice(model)
    if model in ("", "main") and not providers.settings.models.main:
        output.say(f"moot: no model is configured; using {choice.model.id}", "dim")
    if choice.provider.name == "local":
        name, home = choice.model.id.model, providers.settings.home
        if _is_missing(name, home):
            attribute(_CHECK_MACHINE)(MANIFEST[name].memory)
            await fetch(name, home, output, consent=consent)


async def wants_weights(providers: Providers, model: str) -> bool:
    """Return True if `provide_weights` would download weights. Raise the same errors as `Providers.choice`."""
    choice = await providers.choice(model)
    return choice.provider.name == "local" and _is_missing(choice.model.id.model, providers.settings.home)


async def ask_model(settings: Settings, model: str, *, seconds: float = inf) -> TestAnswer:
    """Send a short prompt to the model and return its answer. Raise UsageError or ProviderError on failure, also after `seconds`."""
    providers = Providers(settings)
    try:
        return await ask_with(providers, model, seconds=seconds)
    finally:
        await providers.close()


async def try_model(settings: Settings, model: str, output: Output, *, as_json: bool) -> int:
    """Call the model once and print the result. Raise UsageError or ProviderError on failure."""
    answered = await ask_model(settings, model)
    found = answered.choice.model
    if as_json:
        output.json(answer_json(answered))
    else:
        output.line(f"{found.id}: {' '.join(answered.text.split()) or '(no text)'}")
        output.say(f"moot: answered in {answered.seconds:.1f} s", "green")
    if found.note:
        output.say(f"note: {found.note}", "yellow")
    return 0


def embedded_json(home: Path) -> list[JsonObject]:
    """Return the embedded models that can be downloaded, each with its size, its memory, and a reason if it can't run on this machine."""

    def problem(memory: int) -> str:
        try:
            attribute(_CHECK_MACHINE)(memory)
        except MootError as error:
            return error.message
        return ""

    return [
        {
            "name": weights.name,
            "title": weights.title,
            "license": weights.license,
            "size": weights.size,
            "memory": weights.memory,
            "installed": weights_path(weights.name, home) is not None,
            "problem": problem(weights.memory),
        }
        for weights in MANIFEST.values()
    ]


def print_embedded(models: Sequence[JsonObject], output: Output) -> None:
    """Print a table of the embedded models."""
    rows = [
        [
            str(model["name"]),
            *(format_bytes(size) if isinstance(size := model[key], int) else "?" for key in ("size", "memory")),
            str(model["license"]),
            str(model["problem"]) or ("installed" if model["installed"] else "can run on this machine"),
        ]
        for model in models
    ]
    output.line("")
    output.line("Embedded models. To download one: moot models pull NAME")
    print_table(output, ["NAME", "DOWNLOAD", "MEMORY", "LICENSE", "STATE"], rows)


def _is_missing(name: str, home: Path) -> bool:
    return name in MANIFEST and weights_path(name, home) is None


async def fetch(name: str, home: Path, output: Output, *, consent: bool, source: Path | None = None, verbose: bool = False) -> Path:
    """Download weights and return their path. `source` is a local file to use instead of a download.

    Raise UsageError if the user cannot be asked, Refused if they decline, and ProviderError if the download fails.
    """
    if source is not None:
        try:
            source.open("rb").close()
        except OSError as error:
            raise UsageError(f"Cannot read {str(source)!r}: {error.strerror}.", fix="Pass the weights file to --from.") from error

    async def ask(offer: Offer) -> bool:
        for line in offer.lines(verbose=verbose):
            for piece in attribute(_WRAP)(line, shutil.get_terminal_size().columns - 1) if output.attended else [line]:
                output.say(piece)
        if consent:
            return True
        if not output.attended:
            words = " ".join(["moot models pull", name, *(["--from", str(source)] if source else []), "--yes-download"])
            raise UsageError(f"The weights of {name!r} are not installed, and downloading them requires your consent.", fix=words)
        return await confirm("Download it?", output)

    with Progress(output) as progress:

        def show(done: int, total: int) -> None:
            progress.show(f"{done / total if total else 1:.0%} of {format_bytes(total)}")

        return await attribute(_PULL)(name, home=home, consent=ask, progress=show, source=source)
