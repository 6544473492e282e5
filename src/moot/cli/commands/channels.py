"""The commands of `moot channels`."""

from __future__ import annotations

import signal
from typing import Annotated, cast

import anyio

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import print_table
from moot.cli.console.lines import write_done
from moot.cli.console.output import cancel_on
from moot.cli.context.configuration import configured, configured_loader
from moot.cli.context.engine import open_watched
from moot.cli.context.output import Out
from moot.engine.channels import channel_of, own_settings, serve, type_of
from moot.errors import NotFound, UsageError
from moot.plugins import CHANNELS
from moot.types.canonical import Json, JsonObject
from moot.types.channel import HasCheck

Name = Annotated[str, Parameter(help="Name of the channel.")]


def list_(*, json: AsJson = False, output: Out) -> None:
    """Print the channels and the packages that provide them."""
    channels = configured(output).settings.channels
    named = {**{name: type_of(name, settings) for name, settings in channels.items()}, **{kind: kind for kind in CHANNELS.names()}}
    found: list[JsonObject] = [
        {"name": name, "type": kind, "configured": name in channels, "package": CHANNELS.package(kind)}
        for name, kind in sorted(named.items())
    ]
    if json:
        output.json({"data": list[Json](found), "next_cursor": None})
        return
    states = [_state(channels.get(str(item["name"]))) for item in found]
    rows = [[str(item["name"]), state, str(item["package"] or "built in")] for item, state in zip(found, states, strict=True)]
    print_table(output, ["NAME", "STATE", "PACKAGE"], rows)


def _state(settings: JsonObject | None) -> str:
    if settings is None:
        return "not configured"
    return "disabled" if settings.get("enabled") is False else "configured"


async def serve_channel(name: Name, /, *, output: Out) -> None:
    """Answer messages from a channel until interrupted."""
    loader = configured_loader(output)
    async with open_watched(loader, output, resume=True) as engine, anyio.create_task_group() as group:
        group.start_soon(cancel_on, group.cancel_scope, signal.SIGINT, signal.SIGTERM)
        output.say(f"moot: serving {name}; press Ctrl+C to stop", "dim")
        await serve(engine, name)


async def test(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Connect to a channel and print the account that is signed in. Raise UsageError if the channel has no test."""
    settings = configured(output).settings.channels.get(name)
    if settings is None:
        raise NotFound(f"The channel {name!r} is not configured.", fix="Add it to `channels` in the configuration.")
    channel: object = channel_of(name, settings)
    if not isinstance(channel, HasCheck):
        raise UsageError(f"The channel {name!r} has no connection test.", fix=f"moot channels serve {name}")
    said = await channel.check(own_settings(settings))
    write_done(output, json, cast("JsonObject", {"name": name, "status": said}), said)
