"""MCP servers: the tools that they define, and their state as every face shows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal, TypeAlias

from moot.types.agent import McpServer
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.command import CommandParameter

RULE_PREFIX = "mcp__"
"""Prefix of the names of MCP tools in permission rules and hooks: `mcp__SERVER__TOOL`."""

McpState: TypeAlias = Literal["disabled", "not started", "starting", "connected", "failed"]

McpLoginState: TypeAlias = Literal["none", "needed", "pending", "signed in"]
"""State of the login to a server. `none`: the server has not asked for a login, or doesn't support it."""


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as its server defines it. All texts come from the server, so none of them can be trusted."""

    name: str
    """The server's own name for the tool."""
    description: str
    schema: JsonObject
    """JSON Schema of the arguments."""
    title: str = ""
    read_only: bool = False
    """True if the server claims that the tool changes nothing."""
    idempotent: bool = False
    """True if the server claims that a repeated call has no further effect."""

    @property
    def digest(self) -> str:
        """A hash of the whole definition, which changes if any part of the definition changes."""
        return blake2b(dumps(self.to_json()), digest_size=16).hexdigest()

    def to_json(self) -> JsonObject:
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "schema": self.schema,
            "readOnly": self.read_only,
            "idempotent": self.idempotent,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> McpTool:
        schema = value.get("schema")
        return cls(
            str(value.get("name", "")),
            str(value.get("description", "")),
            schema if isinstance(schema, dict) else {"type": "object"},
            str(value.get("title", "")),
            value.get("readOnly") is True,
            value.get("idempotent") is True,
        )


@dataclass(frozen=True, slots=True)
class McpPrompt:
    """A prompt that a server offers to people as a slash command. All texts come from the server, so none of them can be trusted."""

    name: str
    """The server's own name for the prompt."""
    description: str = ""
    parameters: tuple[CommandParameter, ...] = ()

    def to_json(self) -> JsonObject:
        parameters: list[Json] = [{"name": one.name, "description": one.description, "required": one.required} for one in self.parameters]
        return {"name": self.name, "description": self.description, "parameters": parameters}

    @classmethod
    def from_json(cls, value: JsonObject) -> McpPrompt:
        listed = value.get("parameters")
        parameters = [
            CommandParameter(str(one.get("name", "")), str(one.get("description", "")), one.get("required") is True)
            for one in (listed if isinstance(listed, list) else ())
            if isinstance(one, dict)
        ]
        return cls(str(value.get("name", "")), str(value.get("description", "")), tuple(parameters))


@dataclass(frozen=True, slots=True)
class McpResource:
    """A document that a server offers, or a template for the URIs of several documents.

    All texts come from the server and can't be trusted.
    """

    uri: str
    """The URI, or the URI template (RFC 6570)."""
    name: str
    """Title or name."""
    description: str = ""
    media_type: str = ""
    """Empty if unknown."""
    size: int | None = None
    """Size in bytes, as claimed by the server; None if unknown."""
    is_template: bool = False

    def to_json(self) -> JsonObject:
        return {
            "uri": self.uri,
            "name": self.name,
            "description": self.description,
            "mediaType": self.media_type,
            "size": self.size,
            "template": self.is_template,
        }


@dataclass(frozen=True, slots=True)
class McpQuestion:
    """A question that a server asks a person during a call. All texts come from the server and can't be trusted."""

    message: str
    schema: JsonObject
    """JSON Schema of a form with simple fields."""
    url: str = ""
    """Address that the person should open instead of filling in a form; empty = there is a form."""


@dataclass(frozen=True, slots=True)
class McpReply:
    """The reply to a server's question."""

    action: Literal["accept", "decline", "cancel"]
    content: JsonObject | None = None
    """The values of the form, if the person accepted the question."""


AskPerson: TypeAlias = Callable[[McpQuestion], Awaitable[McpReply]]


@dataclass(frozen=True, slots=True)
class McpLogin:
    """A person's login to a remote server, without its tokens."""

    state: McpLoginState = "none"
    address: str = ""
    """Address to open in a browser on this machine while the login is pending; empty = unknown."""
    error: str = ""
    """Reason why the last login failed; empty otherwise."""


@dataclass(frozen=True, slots=True)
class McpStatus:
    """The state of a configured server."""

    server: McpServer
    state: McpState
    error: str = ""
    """Reason why the server could not be reached; empty otherwise."""
    tools: tuple[McpTool, ...] = ()
    """The tools that agents get, as they were when the person accepted them."""
    prompts: tuple[McpPrompt, ...] = ()
    """The prompts that the server offers as slash commands."""
    changes: tuple[McpTool, ...] = ()
    """Tools that are new or differ from the accepted ones. Agents can't use them until a person accepts them."""
    login: McpLogin = field(default_factory=McpLogin)

    def to_json(self) -> JsonObject:
        """Return the status in the form that scripts receive. Values of `env` and `headers` are left out."""
        server = self.server
        return {
            "name": server.name,
            "status": self.state,
            "error": self.error,
            "enabled": server.enabled,
            "command": [server.command, *server.args] if server.command else [],
            "url": server.url,
            "protocol": server.protocol if server.url else "stdio",
            "tools": [tool.to_json() for tool in self.tools],
            "prompts": [prompt.to_json() for prompt in self.prompts],
            "changes": [tool.to_json() for tool in self.changes],
        }
