"""Whether the person is asked for a model before a command goes on."""

from __future__ import annotations

from pathlib import Path

from moot.agents.known.finding import agent_called
from moot.cli.output import Output
from moot.config.loading import Loaded
from moot.config.settings import Settings
from moot.plugins.registry import attribute

__all__ = ["asks_main", "settled", "skipped"]

_CHOOSE = "moot.cli.welcome.choosing:choose"


async def settled(loaded: Loaded, output: Output, *, yes: bool = False) -> Loaded:
    """The configuration with a main model in it, where none was ever chosen and the person can be asked for one; else as it is.

    `yes` takes the first that can be had, fetches it if need be, and asks nothing. Raises as the call that tries the model.
    """
    if loaded.settings.models.main:
        return loaded
    asks = output.attended and output.stderr_terminal and not skipped(loaded.settings).exists()
    return await attribute(_CHOOSE)(loaded, output, yes=yes) if yes or asks else loaded


def asks_main(settings: Settings, agent: str | None, model: str | None) -> bool:
    """Whether a new conversation would be the main model's: nothing else was named, and the agent brings none of its own."""
    if model not in (None, "", "main"):
        return False
    named = agent_called(settings, agent or "default")
    return named is not None and named.agent_type == "moot" and named.model in ("", "main")


def skipped(settings: Settings) -> Path:
    """The file that says that the person wants to decide later."""
    return settings.home / "state" / "model-later"
