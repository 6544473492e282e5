"""The commands `moot mcp resources` and `moot mcp read`."""

from __future__ import annotations

import base64
import sys
from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.commands.extensions.mcp import Name, opened, server_named
from moot.cli.console.format import print_table
from moot.cli.context.configuration import here
from moot.cli.options import Out
from moot.errors import UsageError
from moot.guard.hidden import spelled_out
from moot.types.canonical import Json


async def list_resources(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Connect to a server and print its resources and templates."""
    async with opened(output) as (settings, servers):
        found = await servers.resources(server_named(settings, name), str(here()))
    if json:
        output.json({"data": list[Json](resource.to_json() for resource in found)})
    elif found:
        rows = [[spelled_out(one.uri), spelled_out(" ".join(one.name.split())), one.media_type] for one in found]
        print_table(output, ["URI", "NAME", "TYPE"], rows)
    else:
        output.say(f"moot: {name} has no resources", "dim")


async def read_resource(
    name: Name,
    uri: Annotated[str, Parameter(metavar="URI", help="URI of the resource.")],
    /,
    *,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print a resource. One that is not text is written unchanged, but not to a terminal."""
    async with opened(output) as (settings, servers):
        found = await servers.read(server_named(settings, name), uri, str(here()))
    if json:
        output.json({"data": [{"uri": one.name, "mediaType": one.media_type, **_content(one.data, one.media_type)} for one in found]})
        return
    for file in found:
        if file.media_type.startswith("text/"):
            output.line(file.data.decode())
        elif output.stdout_terminal:
            about = f"{file.name} is not text ({file.media_type}, {len(file.data):,} bytes)."
            raise UsageError(about, fix=f"moot mcp read {name} {uri} > FILE")
        else:
            sys.stdout.buffer.write(file.data)
            sys.stdout.buffer.flush()


def _content(data: bytes, media_type: str) -> dict[str, Json]:
    return {"text": data.decode()} if media_type.startswith("text/") else {"base64": base64.b64encode(data).decode()}
