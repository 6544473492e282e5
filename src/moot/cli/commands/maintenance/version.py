"""The command `moot version`."""

from __future__ import annotations

import platform
from typing import Annotated

from moot import __version__
from moot.cli.arguments.signatures import AsJson, Plain
from moot.cli.console.lines import Lines


def version(*, json: AsJson = False, output: Annotated[Lines, Plain]) -> None:
    """Print the version of moot."""
    if json:
        output.json({"version": __version__, "python": platform.python_version()})
    else:
        output.line(f"moot {__version__}")
