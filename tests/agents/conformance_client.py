"""moot's MCP client as a program for the official conformance suite.

`python conformance_client.py URL` connects, signs in when the server wants that, and calls every tool. It answers questions with defaults.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

import aiohttp
import anyio

from moot.errors import ProviderError
from moot.mcp import oauth
from moot.mcp.elicitation import reply_to
from moot.mcp.servers import McpServers
from moot.types.agent import McpServer
from moot.types.canonical import Json, JsonObject
from moot.types.mcp import McpQuestion, McpReply
from moot.types.tool import Question, ToolContext

LOGINS = 3
"""Maximum number of times that the client signs in."""
_EXAMPLES: dict[str, Json] = {"number": 5, "integer": 5, "boolean": True, "array": [], "object": {}}


class Person:
    """Someone who answers each question with its default."""

    async def ask_and_wait(self, _title: str, questions: tuple[Question, ...]) -> tuple[tuple[str, ...], ...]:
        return tuple((next((option.label for option in one.options if option.description), "Accept"),) for one in questions)


async def browse(url: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        await response.read()


async def ignore(_: str) -> None:
    """Do nothing with progress."""


async def ask(question: McpQuestion) -> McpReply:
    return await reply_to("suite", question, cast("ToolContext", Person()))


def arguments_for(schema: JsonObject) -> JsonObject:
    properties = cast("dict[str, Any]", schema.get("properties") or {})
    return {name: _EXAMPLES.get(str(spec.get("type")), "text") for name, spec in properties.items()}


async def call_everything(servers: McpServers, server: McpServer, folder: Path) -> None:
    for tool in (await servers.fetch(server, str(folder))).usable:
        await servers.call(server, tool, arguments_for(tool.schema), str(folder), ignore, ask)


async def main(url: str) -> None:
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    client = oauth.RegisteredClient(given["client_id"], given.get("client_secret", "")) if "client_id" in given else None
    with tempfile.TemporaryDirectory() as name:
        folder, server = Path(name), McpServer("suite", url=url)
        async with anyio.create_task_group() as group:
            servers = McpServers(folder, group)
            for attempt in range(LOGINS + 1):
                try:
                    await call_everything(servers, server, folder)
                    break
                except ProviderError as error:
                    if error.kind != "auth" or attempt == LOGINS:
                        raise
                await oauth.log_in(folder, server, folder, browse, client=client)
            group.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
