"""Permissions: the mode, the standing rules, and what was allowed in conversations."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

from anyio import to_thread
from fastapi import Query

from moot.config.files import locked, write_atomically
from moot.config.loading import FILE
from moot.config.rules import add_rules, without_rule
from moot.config.settings import Permissions
from moot.errors import NotFound
from moot.runtime.approvals import decide
from moot.runtime.described import grant_json, rule_json, ruling_json
from moot.server.auth import Admin, Chatter
from moot.server.caller import Caller
from moot.server.changing import changed, write
from moot.server.routing import Router
from moot.server.state import Here, Server
from moot.server.wire.permissions import CallIn, ModeIn, PermissionsOut, RuleIn, RuleOut, RulingOut
from moot.tools.offers import tool as find_tool
from moot.types.approval import Grant, grants_of

router = Router(prefix="/api/permissions", tags=["permissions"])

Of = Annotated[str | None, Query(max_length=128, description="What was allowed in this conversation too.")]


@router.get("")
async def list_permissions(here: Here, caller: Admin, conversation: Of = None) -> PermissionsOut:
    """Lists the mode in force, every standing rule and where it was written; with a conversation also what was allowed in it."""
    return _permissions(here, await _grants(caller, conversation))


@router.put("/mode")
async def set_mode(here: Here, _: Admin, wanted: ModeIn) -> PermissionsOut:
    """Sets the mode of the configuration, for every run that has none of its own."""
    await write(here, {"permissions.mode": wanted.mode})
    return _permissions(here, ())


@router.post("/rules", status_code=201)
async def add_rule(here: Here, _: Admin, rule: RuleIn) -> PermissionsOut:
    """Writes a rule into the configuration, behind the others."""
    find_tool(rule.tool)
    values = {name: value for name, value in rule.model_dump().items() if (name, value) != ("always", "offer")}
    await to_thread.run_sync(partial(add_rules, _file(here), [values], os.environ))
    await changed(here)
    return _permissions(here, ())


@router.delete("/rules")
async def remove_rule(here: Here, _: Admin, tool: str, match: str) -> PermissionsOut:
    """Takes a rule out of the configuration file."""
    await changed(here)  # the rules as they stand in the file by now
    await to_thread.run_sync(_remove, _file(here), here.engine.runtime.settings.permissions, tool, match)
    await changed(here)
    return _permissions(here, ())


@router.delete("/grants", status_code=204)
async def revoke_grant(caller: Chatter, conversation: str, tool: str, match: str) -> None:
    """Takes back what was allowed in a conversation."""
    found = await caller.store.conversations.get(conversation)
    if not await caller.store.grants.revoke(found.id, tool=tool, match=match):
        raise NotFound(f"nothing was allowed in it for {tool} with {match!r}", fix="GET /api/permissions?conversation=")


@router.post("/test")
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
    with locked(path):
        rules = permissions.rules
        at = next((at for at, rule in enumerate(rules) if (rule.tool, rule.match) == (tool, match)), None)
        if at is None or not rules[at].origin.startswith("user "):
            raise NotFound(f"no rule for {tool} with {match!r} in {str(path)!r}", fix="GET /api/permissions")
        write_atomically(path, without_rule(path, at, os.environ))
