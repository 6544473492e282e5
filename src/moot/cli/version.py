"""`moot version`."""

from __future__ import annotations

import platform
from importlib.metadata import version as installed

from moot.cli.options import AsJson, Out


def version(*, json: AsJson = False, output: Out) -> None:
    """moot's version."""
    if json:
        output.json({"version": installed("moot"), "python": platform.python_version()})
    else:
        output.line(f"moot {installed('moot')}")
