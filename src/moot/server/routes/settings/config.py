"""Routes to show and change the configuration and the permission rules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Literal, cast, get_args, get_origin

from anyio import to_thread
from fastapi import Query, Request, Response
from pydantic import BaseModel, Field, JsonValue

from moot.config.changes import add_rules, set_values, without_rule
from moot.config.home import lock_file, write_atomically
from moot.config.loader import FILE
from moot.config.schema import Configuration
from moot.config.secrets import mask_secrets
from moot.config.settings import Permissions
from moot.engine.submissions import default_directory
from moot.errors import NotFound
from moot.runtime.approvals.policy import grant_json, rule_json, ruling_json
from moot.runtime.approvals.sandbox import rule_on_call
from moot.runtime.setup import confined_conversation, mode_of
from moot.server.auth import Admin, Chatter, Operator, Router
from moot.server.credentials import Caller
from moot.server.models import In, Out
from moot.server.resources import IfMatch, check_match, etag_of, tagged
from moot.server.state import CurrentServer, Server
from moot.tools.catalogue import find_tool
from moot.types.agent import Mode
from moot.types.approval import Action, ApprovalPart, Grant
from moot.types.canonical import Json
from moot.types.conversation import Conversation
from moot.types.mcp import RULE_PREFIX
from moot.types.sandbox import Access


class FaultOut(Out):
    """An error in the configuration file."""

    file: str
    line: int
    column: int
    message: str


class ConfigOut(Out):
    """The current configuration with secrets masked, and the layer that set each value."""

    generation: int
    """Number of times the configuration was loaded successfully."""
    error: FaultOut | None
    """Error that prevents the current file from being loaded; null if there is none."""
    home: str
    config: dict[str, JsonValue]
    origin: dict[str, str]
    """Layer and location that set each value, by dotted key."""
    notes: list[str]
    choices: dict[str, list[str]]
    """Allowed values of the settings that accept only certain values, by dotted key."""


class ConfigIn(In):
    """Values to write to the configuration file, all or none."""

    values: Annotated[
        dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_@:/-]+(\.[A-Za-z0-9_@:/-]+)*$", max_length=300)], JsonValue],
        Field(min_length=1, max_length=100),
    ]
    """Values by dotted key, such as `{"models.main": "…"}`."""


async def write(server: Server, values: Mapping[str, Json]) -> None:
    """Write the values, all or none, and reload. Raise ConfigError if the resulting file would be invalid."""
    await to_thread.run_sync(partial(set_values, server.engine.settings.home / FILE, values, os.environ))
    await changed(server)


async def changed(server: Server) -> None:
    """Reload the configuration after a write. Raise ConfigError if another part of the file is invalid."""
    if not await server.configuration.reload() and (error := server.configuration.error) is not None:
        raise error


def is_saved(server: Server, key: str) -> bool:
    """Return True if the user's configuration file sets values below the key."""
    file = f"user {server.engine.settings.home / FILE}"
    return any(name.startswith(f"{key}.") and place.startswith(file) for name, place in server.configuration.loaded.origin.items())


router = Router(prefix="/api/config", tags=["configuration"])


@router.get("", response_model=ConfigOut, responses={304: {"description": "Not modified."}})
async def show_config(server: CurrentServer, _: Operator, request: Request) -> Response:
    """Get all current settings with secrets masked, the layer that set each value, and any error in the configuration file."""
    return tagged(request, _shown(server))


@router.patch("")
async def change_config(server: CurrentServer, _: Operator, response: Response, body: ConfigIn, if_match: IfMatch = None) -> ConfigOut:
    """Write values to the configuration file, all or none. They are validated first and take effect immediately. Comments and order are
    preserved.
    """
    check_match(if_match, etag_of(_shown(server)))
    await write(server, cast("dict[str, Json]", body.values))
    shown = _shown(server)
    response.headers["etag"] = etag_of(shown)
    return shown


def _shown(server: Server) -> ConfigOut:
    loaded = server.configuration.loaded
    return ConfigOut.of(
        loaded,
        generation=loaded.settings.generation,
        error=server.configuration.error,
        home=str(loaded.settings.home),
        config=mask_secrets(loaded.configuration),
        choices=_choices(Configuration),
    )


@lru_cache
def _choices(part: type[BaseModel]) -> dict[str, list[str]]:
    """Return the allowed values of the settings that are defined by a `Literal`."""
    found: dict[str, list[str]] = {}
    for name, field in part.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= {f"{name}.{key}": values for key, values in _choices(kind).items()}
        elif get_origin(kind) is Literal:
            found[name] = [str(value) for value in get_args(kind)]
    return found


Tool = Annotated[str, Field(min_length=1, max_length=200)]
Match = Annotated[str, Field(min_length=1, max_length=4000)]


class RuleOut(Out):
    """A permission rule in the configuration, or a permission granted in one conversation (kind `grant`)."""

    kind: Literal["rule", "grant"]
    tool: str
    action: Action
    match: str
    always: Literal["offer", "never"] | None = None
    origin: str | None = None
    """Location of the rule's definition."""
    at: int | None = None
    """Time of a grant in ms."""
    by: str | None = None


class PermissionsOut(Out):
    """The current mode and all rules."""

    mode: Mode
    data: list[RuleOut]
    next_cursor: None = None


class ModeIn(In):
    """The permission mode to set."""

    mode: Mode


class RuleIn(In):
    """A rule to add to the configuration."""

    tool: Tool
    action: Action
    match: Match = "*"
    always: Literal["offer", "never"] = "offer"


class CallIn(In):
    """A tool call to evaluate against the permission rules."""

    tool: Tool
    subject: Annotated[str, Field(max_length=100_000)] = ""
    """The call's command, path or URL."""
    mode: Mode | None = None
    """Permission mode; defaults to the conversation's mode, or to the configured mode if there is no conversation."""
    access: Access = "sandbox"
    """The access that a shell command requests."""
    conversation: Annotated[str, Field(max_length=128)] | None = None


class PartOut(Out, of=ApprovalPart, fields="text action why patterns always within edits"):
    """A part of a tool call, such as one command in a shell line."""

    origin: str


class RulingOut(Out):
    """The outcome for a tool call, the rule that decides it, and where the rule is defined."""

    action: Action
    why: str
    origin: str
    parts: list[PartOut]


permissions_router = Router(prefix="/api/permissions", tags=["permissions"])

Of = Annotated[str | None, Query(max_length=128, description="Also list the grants of this conversation.")]


@permissions_router.get("")
async def list_permissions(server: CurrentServer, caller: Admin, conversation: Of = None) -> PermissionsOut:
    """List the current permission mode, all rules with their origin, and the grants of a conversation if one is given."""
    return _permissions(server, await _grants(caller, conversation))


@permissions_router.put("/mode")
async def set_mode(server: CurrentServer, _: Operator, body: ModeIn) -> PermissionsOut:
    """Set the configured permission mode. It applies to all runs for which no other mode is set."""
    await write(server, {"permissions.mode": body.mode})
    return _permissions(server, ())


@permissions_router.post("/rules", status_code=201)
async def add_rule(server: CurrentServer, _: Operator, rule: RuleIn) -> PermissionsOut:
    """Append a permission rule to the configuration file."""
    if not rule.tool.startswith(RULE_PREFIX):  # the tools of MCP servers are not known before the servers run
        find_tool(rule.tool, server.engine.settings)
    values = {name: value for name, value in rule.model_dump().items() if (name, value) != ("always", "offer")}
    await to_thread.run_sync(partial(add_rules, _file(server), [values], os.environ))
    await changed(server)
    return _permissions(server, ())


@permissions_router.delete("/rules")
async def remove_rule(server: CurrentServer, _: Operator, tool: str, match: str) -> PermissionsOut:
    """Remove a permission rule from the configuration file."""
    await changed(server)  # load the current rules from the file
    await to_thread.run_sync(_remove, _file(server), server.engine.runtime.settings.permissions, tool, match)
    await changed(server)
    return _permissions(server, ())


@permissions_router.delete("/grants", status_code=204)
async def revoke_grant(caller: Chatter, conversation: str, tool: str, match: str) -> None:
    """Revoke a permission that was granted in a conversation."""
    found = await caller.store.conversations.get(conversation)
    if not await caller.store.grants.revoke(found.id, tool=tool, match=match):
        raise NotFound(f"The conversation has no grant of {match!r} for the tool {tool}.", fix="See GET /api/permissions?conversation=ID.")


@permissions_router.post("/test")
async def test_permission(server: CurrentServer, caller: Admin, call: CallIn) -> RulingOut:
    """Test whether a tool call would be allowed, and which rule decides. A shell line is evaluated command by command."""
    runtime, found = server.engine.runtime, Conversation("", owner=caller.owner_id)
    if call.conversation is not None:
        own = await caller.store.conversations.get(call.conversation)
        found = await confined_conversation(server.engine.store, own.id)
    found = replace(found, directory=found.directory or default_directory(caller.owner_id))
    mode, grants = call.mode or mode_of(runtime.settings, {}, found), found.grants
    ruling = await rule_on_call(runtime, found, find_tool(call.tool, runtime.settings), call.subject, call.access, mode=mode, grants=grants)
    return RulingOut.model_validate(ruling_json(runtime.settings.permissions, ruling))


def _permissions(server: Server, grants: tuple[Grant, ...]) -> PermissionsOut:
    permissions = server.engine.runtime.settings.permissions
    entries = [*map(rule_json, permissions.rules), *map(grant_json, grants)]
    return PermissionsOut(mode=permissions.mode, data=[RuleOut.model_validate(each) for each in entries])


async def _grants(caller: Caller, conversation: str | None) -> tuple[Grant, ...]:
    return () if conversation is None else (await caller.store.conversations.get(conversation)).grants


def _file(server: Server) -> Path:
    return server.engine.settings.home / FILE


def _remove(path: Path, permissions: Permissions, tool: str, match: str) -> None:
    with lock_file(path):
        rules = permissions.rules
        at = next((at for at, rule in enumerate(rules) if (rule.tool, rule.match) == (tool, match)), None)
        if at is None or not rules[at].origin.startswith("user "):
            raise NotFound(f"No rule for {tool} with {match!r} in {str(path)!r}.", fix="See GET /api/permissions.")
        write_atomically(path, without_rule(path, at, os.environ))
