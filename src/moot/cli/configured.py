"""The configuration for one command."""

from __future__ import annotations

import os
from pathlib import Path

from moot.cli.lines import Lines
from moot.config.loading import Loaded, load
from moot.errors import UsageError


def here() -> Path:
    """The working directory. Raises UsageError when it has been deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageError("the working directory no longer exists", fix="Change to another one.") from error


def configured(output: Lines) -> Loaded:
    """The configuration for this directory; its secrets are masked on stderr and its `ui` heeded from here on. Raises ConfigError."""
    loaded = load(environ=os.environ, directory=here())
    output.hide(loaded.secrets)
    output.ui = loaded.settings.ui
    return loaded
