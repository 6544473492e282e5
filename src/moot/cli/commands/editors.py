"""The command `moot acp`."""

from __future__ import annotations

import signal
import sys

import anyio

from moot.cli.console.output import cancel_on, handled_signals
from moot.cli.context.configuration import configured_loader
from moot.cli.context.engine import open_watched
from moot.cli.context.output import Out
from moot.errors import ConfigError
from moot.plugins.registry import attribute

_SERVE = "moot.editors.agent:serve"
"""Import path, because the protocol's library is an extra."""


async def serve_editor(*, output: Out) -> None:
    """Serve an editor until it closes stdin, or until a signal arrives. Only the protocol is written to stdout."""
    try:
        serve = attribute(_SERVE)
    except ModuleNotFoundError as error:
        if error.name != "acp":
            raise
        raise ConfigError("'moot acp' needs the package agent-client-protocol. Install it with: pip install 'moot[acp]'") from error
    if sys.stdin.isatty():
        output.say("moot: waiting for an editor on stdin; docs/editors.md describes how editors start this command", "dim")
    async with open_watched(configured_loader(output), output) as engine, anyio.create_task_group() as group:
        group.start_soon(cancel_on, group.cancel_scope, *(signal.Signals(one) for one in handled_signals()))
        await serve(engine)
        group.cancel_scope.cancel()
