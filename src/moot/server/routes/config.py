"""The configuration and permissions: current values, their origin, and changes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, cast

from anyio import to_thread
from fastapi import Query, Request, Response
from pydantic import Field, JsonValue

from moot.config.changes import add_rules, set_values, without_rule
from moot.config.home import lock_file, write_atomically
from moot.config.loading import FILE
from moot.config.secrets import mask_secrets
from moot.config.settings import Permissions
from moot.errors import NotFound, Refused
from moot.runtime.approvals import decide, grant_json, rule_json, ruling_json
from moot.server.auth import Admin, Chatter, Router
from moot.server.credentials import Caller
from moot.server.models import In, Out
from moot.server.resources import IfMatch, check_match, etag_of, tagged
from moot.server.state import Here, Server
from moot.tools.catalogue import find_tool
from moot.types.agent import Mode
from moot.types.approval import Grant, grants_of
from moot.types.canonical import Json

__all__ = ["changed", "check_place", "is_local", "write"]


class FaultOut(Out):
    """Why the file as it stands is not in force."""

    file: str
    line: int
    column: int
    message: str


class ConfigOut(Out):
    """What is in force, secrets masked, and which layer decided each value."""

    generation: int
    """Counts successful loads."""
    error: FaultOut | None
    """null = the file as it stands is in force."""
    home: str
    config: dict[str, JsonValue]
    origin: dict[str, str]
    """Dotted key → layer and place."""
    notes: list[str]


class ConfigIn(In):
    """Values to write into the configuration file, all or none."""

    values: Annotated[
        dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_@:/-]+(\.[A-Za-z0-9_@:/-]+)*$", max_length=300)], JsonValue],
        Field(min_length=1, max_length=100),
    ]
    """Dotted key → value, as in `{"models.main": "…"}`."""


ANYWHERE = ("models", "permissions", "limits", "ui", "agents")
"""Sections that name nothing that is run or called."""

HERE = frozenset({"agent_type", "options", "hooks"})
"""Settings of an agent that may name a program."""

_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


def is_local(request: Request) -> bool:
    """Whether the caller sits at this machine, with no proxy between."""
    if request.client is None or any(name in request.headers for name in _FORWARDED):
        return False
    try:
        return ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def check_place(values: Mapping[str, Json], *, local: bool) -> None:
    """Raises Refused for a value that may be set from this machine alone and was not."""
    if local:
        return
    for key, value in values.items():
        steps = key.split(".")
        if steps[0] not in ANYWHERE or (steps[0] == "agents" and (HERE & {*steps} or _names_program(value))):
            raise Refused(f"{key} can be set from the server's own machine alone", fix=f"moot config set {key} VALUE")
        if _holds_variable(value):
            raise Refused(f"{key}: '${{' would be read as a variable of the server's environment", fix="set it on the server's own machine")


async def write(server: Server, values: Mapping[str, Json]) -> None:
    """Writes the values, all or none, and takes them up. Raises ConfigError when the file would be wrong then."""
    await to_thread.run_sync(partial(set_values, server.engine.settings.home / FILE, values, os.environ))
    await changed(server)


async def changed(server: Server) -> None:
    """Takes up what was just written. Raises ConfigError when something else in the file is wrong."""
    if not await server.configuration.reload() and (error := server.configuration.error) is not None:
        raise error


def _names_program(value: Json) -> bool:
    """Whether a whole agent, or all of them, brings such a setting along."""
    if isinstance(value, dict):
        return any(name in HERE or _names_program(item) for name, item in value.items())
    return False


def _holds_variable(value: Json) -> bool:
    if isinstance(value, dict):
        return any("${" in name or _holds_variable(item) for name, item in value.items())
    if isinstance(value, list):
        return any(_holds_variable(item) for item in value)
    return isinstance(value, str) and "${" in value


router = Router(prefix="/api/config", tags=["configuration"])


@router.get("", responses={200: {"model": ConfigOut}, 304: {"description": "As the caller has it."}}, response_model=None)
async def show_config(here: Here, _: Admin, request: Request) -> Response:
    """Shows every setting in force, secrets masked; which layer decided it; and what is wrong with the file as it stands."""
    return tagged(request, _shown(here))


@router.patch("")
async def change_config(
    here: Here, _: Admin, request: Request, response: Response, wanted: ConfigIn, if_match: IfMatch = None
) -> ConfigOut:
    """Writes values into the configuration file, all or none, checked first; comments and order stay, and they are in force at once."""
    check_match(if_match, etag_of(_shown(here)))
    values = cast("dict[str, Json]", wanted.values)
    check_place(values, local=is_local(request))
    await write(here, values)
    shown = _shown(here)
    response.headers["etag"] = etag_of(shown)
    return shown


def _shown(server: Server) -> ConfigOut:
    loaded, error = server.configuration.loaded, server.configuration.error
    fault = None
    if error is not None:
        fault = FaultOut(file=error.file, line=error.line, column=error.column, message=error.message)
    return ConfigOut(
        generation=loaded.settings.generation,
        error=fault,
        home=str(loaded.settings.home),
        config=mask_secrets(loaded.configuration),
        origin=dict(loaded.origin),
        notes=list(loaded.notes),
    )


Action = Literal["allow", "ask", "deny"]
Tool = Annotated[str, Field(min_length=1, max_length=200)]
Match = Annotated[str, Field(min_length=1, max_length=4000)]


class RuleOut(Out):
    """A standing rule, or (kind `grant`) what was allowed in a conversation."""

    kind: Literal["rule", "grant"]
    tool: str
    action: Action
    match: str
    always: Literal["offer", "never"] | None = None
    origin: str | None = None
    """Where a rule was written."""
    at: int | None = None
    """ms; of a grant."""
    by: str | None = None


class PermissionsOut(Out):
    """The mode in force and every rule."""

    mode: Mode
    data: list[RuleOut]
    next_cursor: None = None


class ModeIn(In):
    """The mode of the configuration."""

    mode: Mode


class RuleIn(In):
    """A rule to write into the configuration."""

    tool: Tool
    action: Action
    match: Match = "*"
    always: Literal["offer", "never"] = "offer"


class CallIn(In):
    """A call to judge."""

    tool: Tool
    subject: Annotated[str, Field(max_length=100_000)] = ""
    """The command, path or URL that it would be about."""
    mode: Mode | None = None
    conversation: Annotated[str, Field(max_length=128)] | None = None


class PartOut(Out):
    """A part of a call, such as one command of a line."""

    text: str
    action: Action
    why: str
    patterns: list[str]
    always: bool
    within: bool
    origin: str


class RulingOut(Out):
    """What would happen to a call, the rule that decides it, and where that was written."""

    action: Action
    why: str
    origin: str
    parts: list[PartOut]


permissions_router = Router(prefix="/api/permissions", tags=["permissions"])

Of = Annotated[str | None, Query(max_length=128, description="What was allowed in this conversation too.")]


@permissions_router.get("")
async def list_permissions(here: Here, caller: Admin, conversation: Of = None) -> PermissionsOut:
    """Lists the mode in force, every standing rule and where it was written; with a conversation also what was allowed in it."""
    return _permissions(here, await _grants(caller, conversation))


@permissions_router.put("/mode")
async def set_mode(here: Here, _: Admin, wanted: ModeIn) -> PermissionsOut:
    """Sets the mode of the configuration, for every run that has none of its own."""
    await write(here, {"permissions.mode": wanted.mode})
    return _permissions(here, ())


@permissions_router.post("/rules", status_code=201)
async def add_rule(here: Here, _: Admin, rule: RuleIn) -> PermissionsOut:
    """Writes a rule into the configuration, behind the others."""
    find_tool(rule.tool)
    values = {name: value for name, value in rule.model_dump().items() if (name, value) != ("always", "offer")}
    await to_thread.run_sync(partial(add_rules, _file(here), [values], os.environ))
    await changed(here)
    return _permissions(here, ())


@permissions_router.delete("/rules")
async def remove_rule(here: Here, _: Admin, tool: str, match: str) -> PermissionsOut:
    """Takes a rule out of the configuration file."""
    await changed(here)  # the rules as they stand in the file by now
    await to_thread.run_sync(_remove, _file(here), here.engine.runtime.settings.permissions, tool, match)
    await changed(here)
    return _permissions(here, ())


@permissions_router.delete("/grants", status_code=204)
async def revoke_grant(caller: Chatter, conversation: str, tool: str, match: str) -> None:
    """Takes back what was allowed in a conversation."""
    found = await caller.store.conversations.get(conversation)
    if not await caller.store.grants.revoke(found.id, tool=tool, match=match):
        raise NotFound(f"nothing was allowed in it for {tool} with {match!r}", fix="GET /api/permissions?conversation=")


@permissions_router.post("/test")
async def test_permission(here: Here, caller: Admin, call: CallIn) -> RulingOut:
    """Says what would happen to a call, and the rule that decides it; a command line part by part."""
    permissions = here.engine.runtime.settings.permissions
    grants, directory = await _grants(caller, call.conversation), ""
    if call.conversation is not None:
        directory = (await caller.store.conversations.get(call.conversation)).directory
    ruling = decide(
        permissions,
        call.mode or permissions.mode,
        find_tool(call.tool),
        call.subject,
        directory=directory or str(Path.cwd()),
        grants=grants,
    )
    return RulingOut.model_validate(ruling_json(permissions, ruling))


def _permissions(server: Server, grants: tuple[Grant, ...]) -> PermissionsOut:
    permissions = server.engine.runtime.settings.permissions
    told = [*map(rule_json, permissions.rules), *map(grant_json, grants)]
    return PermissionsOut(mode=permissions.mode, data=[RuleOut.model_validate(each) for each in told])


async def _grants(caller: Caller, conversation: str | None) -> tuple[Grant, ...]:
    return () if conversation is None else grants_of((await caller.store.conversations.get(conversation)).settings)


def _file(server: Server) -> Path:
    return server.engine.settings.home / FILE


def _remove(path: Path, permissions: Permissions, tool: str, match: str) -> None:
    with lock_file(path):
        rules = permissions.rules
        at = next((at for at, rule in enumerate(rules) if (rule.tool, rule.match) == (tool, match)), None)
        if at is None or not rules[at].origin.startswith("user "):
            raise NotFound(f"no rule for {tool} with {match!r} in {str(path)!r}", fix="GET /api/permissions")
        write_atomically(path, without_rule(path, at, os.environ))
