"""The output object that is passed to commands."""

from __future__ import annotations

from typing import Annotated

from moot.cli.arguments.signatures import Parameter
from moot.cli.console.output import Output

Out = Annotated[Output, Parameter(parse=False)]
"""The output that `main` passes to a command."""
