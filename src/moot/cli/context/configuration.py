"""The working directory and the configuration of a command."""

from __future__ import annotations

import os
from pathlib import Path

from moot.cli.console.lines import Lines
from moot.config.loader import Loaded, Loader, load
from moot.errors import UsageError


def here() -> Path:
    """Return the working directory. Raise UsageError if it has been deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageError("The working directory no longer exists.", fix="Change to another directory.") from error


def configured(output: Lines) -> Loaded:
    """Load the configuration and apply its secrets and `ui` to the output. Raise ConfigError if it is invalid."""
    loaded = load(environ=os.environ, directory=here())
    apply(loaded, output)
    return loaded


def configured_loader(output: Lines) -> Loader:
    """Load the configuration like `configured`, but return a loader, for a command that follows changes to the configuration."""
    loader = Loader(environ=os.environ, directory=here())
    apply(loader.current, output)
    return loader


def apply(loaded: Loaded, output: Lines) -> None:
    """Apply the secrets and `ui` of a configuration to the output."""
    output.hide(loaded.secrets)
    output.ui = loaded.settings.ui
