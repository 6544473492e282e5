"""Tools of MCP servers as tools of moot's own loop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, cast

import anyio

from moot.errors import FenceLost, MootError, StoreFull, UsageError
from moot.guard.json_schema import find_problem
from moot.guard.terminal import clean
from moot.mcp.accepted import identity_of
from moot.mcp.elicitation import reply_to
from moot.mcp.servers import McpServers
from moot.plugins.registry import attribute
from moot.tools.basics import error_text
from moot.types.agent import Agent, McpServer
from moot.types.approval import Effect
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.mcp import RULE_PREFIX, McpQuestion, McpReply, McpTool
from moot.types.message import Part
from moot.types.tool import Tool, ToolContext, ToolOutput, View

if TYPE_CHECKING:
    from pydantic import BaseModel

NAME_CHARACTERS = 64
"""Maximum length of a tool's name that all providers accept."""
REPORT_SECONDS = 1.0
"""Minimum number of seconds between two reports of a call's progress."""
_ALLOWED = re.compile(r"[^A-Za-z0-9_-]")
_HASH = 8


class ServerTool:
    """A tool of an MCP server. The model sees it as `SERVER__TOOL`."""

    hidden = False
    beta = False
    badge = "mcp"
    needs_folder = False
    ends_run = False
    examples: tuple[JsonObject, ...] = ()

    def __init__(self, servers: McpServers, server: McpServer, tool: McpTool) -> None:
        self.server = server
        self.definition = tool
        self.name = name_of(server.name, tool.name)
        self.rule_name = f"{RULE_PREFIX}{server.name}__{tool.name}"
        """The name of the tool in permission rules, approvals and hooks."""
        self.description = clean(tool.description or tool.title)
        self.schema = tool.schema
        is_harmless = server.trust_hints and tool.read_only
        # without trusted hints, assume that the tool may change anything
        self.effects: frozenset[Effect] = frozenset({"read"} if is_harmless else {"write", "network"})
        self.concurrent = is_harmless
        self.idempotent = server.trust_hints and tool.idempotent
        self._servers = servers

    @property
    def arguments(self) -> type[BaseModel]:
        """A model that accepts any object. `find_problem` checks the arguments."""
        return cast("type[BaseModel]", attribute("moot.tools.arguments:Anything"))

    def identity(self) -> JsonObject:
        """Return data that, like the tool's definition, invalidates an approval of a call when it changes."""
        return {"server": identity_of(self.server)}

    async def find_problem(self, input: JsonObject) -> str:
        """Return why the arguments don't match the tool's schema, or an empty string if they do or the schema itself can't be used."""
        try:
            problem = await find_problem(input, self.schema, "arguments")
        except UsageError:
            return ""  # the server checks them
        return f"The arguments do not match the schema: {problem}" if problem else ""

    async def run(self, arguments: BaseModel, context: ToolContext) -> ToolOutput:
        reported_at = float("-inf")

        async def report(line: str) -> None:
            nonlocal reported_at
            if (now := anyio.current_time()) >= reported_at + REPORT_SECONDS:  # each report is stored
                reported_at = now
                await context.report(line)

        async def ask(question: McpQuestion) -> McpReply:
            return await reply_to(self.server.name, question, context)

        given = cast("JsonObject", arguments.model_dump())
        try:
            result = await self._servers.call(self.server, self.definition, given, str(context.directory), report, ask)
            files: list[Part] = []
            for file in result.files:
                blob = await context.blobs.put(file.data, file.media_type)
                files.append({"type": "file", "mediaType": file.media_type, "filename": file.name, "url": f"blob:{blob.sha256}"})
        except (FenceLost, StoreFull):
            raise
        except MootError as error:
            return ToolOutput(error_text(error), error=True)
        text = result.text or (dumps(result.value).decode() if result.value is not None else "")
        empty = not text and not files
        return ToolOutput(text or "The tool returned nothing." if not files else text, None, result.error, tuple(files), empty=empty)

    def doing(self, arguments: BaseModel) -> View:
        given = cast("JsonObject", arguments.model_dump())
        return View(f"{self.server.name}: {self.definition.title or self.definition.name}", _short(given))

    def done(self, arguments: BaseModel, output: ToolOutput) -> View:
        doing = self.doing(arguments)
        return View(doing.title, doing.detail, output.text)


def name_of(server: str, tool: str) -> str:
    """Return the name that models see. Names that providers don't accept are shortened and get a hash, so that they stay distinct."""
    full = f"{server}__{tool}"
    plain = _ALLOWED.sub("_", full)
    if plain == full and len(full) <= NAME_CHARACTERS:
        return full
    digest = blake2b(full.encode("utf-8", "replace"), digest_size=_HASH // 2).hexdigest()
    return f"{plain[: NAME_CHARACTERS - _HASH - 1]}_{digest}"


def _made(servers: McpServers, server: McpServer, tool: McpTool) -> ServerTool:
    """Return the tool, which is created only once, because each step asks for all tools."""
    key = (server.name, tool.name)
    made = servers.made.get(key)
    if not isinstance(made, ServerTool) or made.server is not server or made.definition is not tool:
        made = servers.made[key] = ServerTool(servers, server, tool)
    return made


def tool_named(servers: McpServers, configured: Mapping[str, McpServer], name: str) -> Tool:
    """Return the accepted tool with this name in permission rules. Raise UsageError if there is none."""
    for server, tool in servers.known(server for server in configured.values() if server.enabled):
        if (found := ServerTool(servers, server, tool)).rule_name == name:
            return cast("Tool", found)
    raise UsageError(f"Tool {name!r} not found: no accepted tool of an enabled MCP server has this name.", fix="moot mcp list")


def server_tools(servers: McpServers, found: Iterable[tuple[McpServer, McpTool]], agent: Agent) -> tuple[Tool, ...]:
    """Return the found tools as tools of an agent's loop, sorted by name. An agent with the role `read` gets only read-only tools."""
    tools = {tool.name: tool for server, one in found if (tool := _made(servers, server, one))}
    allowed = (tools[name] for name in sorted(tools))
    return tuple(cast("Tool", tool) for tool in allowed if agent.role != "read" or tool.effects <= {"read"})


def _short(value: Json) -> str:
    text = dumps(value).decode()
    return clean(text if len(text) <= 100 else f"{text[:99]}…") if text != "{}" else ""
