"""Execution of a command: on the event loop if it is a coroutine function, with log records on stderr."""

from __future__ import annotations

import inspect
import sys
from functools import partial
from typing import Any

import anyio

from moot.cli.arguments.signatures import Call, wants_output
from moot.cli.logs import logging_to
from moot.cli.output import Output


def perform(call: Call) -> Any:
    """Run the command and return its result."""
    output = Output()
    with logging_to(output):
        work = partial(call.command, *call.args, **call.keywords, **({"output": output} if wants_output(call.command) else {}))
        if not inspect.iscoroutinefunction(call.command):
            return work()
        return anyio.run(work, backend_options={"use_uvloop": sys.platform != "win32"})
