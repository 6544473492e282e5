"""`moot version`."""

from __future__ import annotations

import platform
from importlib.metadata import version as installed

from moot.cli.options import AsJson
from moot.cli.output import Output


def version(*, json: AsJson = False) -> None:
    """moot's version."""
    output = Output()
    if json:
        output.json({"version": installed("moot"), "python": platform.python_version()})
    else:
        output.line(f"moot {installed('moot')}")
