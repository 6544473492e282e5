"""Ask for a main model if none is configured. This module imports little, because many commands call it."""

from __future__ import annotations

from pathlib import Path

from moot.cli.console.output import Output
from moot.config.loader import Loader
from moot.config.settings import Settings
from moot.plugins.registry import attribute

_CHOOSE = "moot.cli.welcome.screen:choose"
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
