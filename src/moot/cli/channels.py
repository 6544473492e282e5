"""The commands `moot channels list` and `serve`."""

from __future__ import annotations

import signal
from typing import Annotated

import anyio

from moot.cli.arguments.parameters import Parameter
from moot.cli.configured import configured
from moot.cli.opening import opened
from moot.cli.options import AsJson, Out
from moot.cli.tables import print_table
from moot.engine.channels import serve as serve_channel
from moot.plugins import CHANNELS
from moot.types.canonical import Json, JsonObject


def list_(*, json: AsJson = False, output: Out) -> None:
    """Print the channels and the packages that provide them."""
    settings = configured(output).settings
    found: list[JsonObject] = [
        {"name": name, "configured": name in settings.channels, "package": CHANNELS.package(name)} for name in CHANNELS.names()
    ]
    if json:
        output.json({"data": list[Json](found), "next_cursor": None})
    elif found:
        rows = [[str(item["name"]), "configured" if item["configured"] else "not configured", str(item["package"])] for item in found]
        print_table(output, ["NAME", "STATE", "PACKAGE"], rows)
    else:
        output.say("moot: no channels are installed; see docs/plugins.md", "dim")


async def serve(name: Annotated[str, Parameter(help="Name of the channel.")], /, *, output: Out) -> None:
    """Serve one channel until it is stopped."""
    async with opened(output) as engine, anyio.create_task_group() as group:
        group.start_soon(_until_stopped, group.cancel_scope)
        output.say(f"moot: serving {name}; Ctrl+C stops it", "dim")
        await serve_channel(engine, name)


async def _until_stopped(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()
            return
