"""The commands `moot permissions list`, `test` and `remove`."""

from __future__ import annotations

import os
from typing import Annotated

from moot.cli.arguments.parameters import Parameter
from moot.cli.configured import configured, here
from moot.cli.opening import opened
from moot.cli.options import AsJson, Out
from moot.cli.output import Output
from moot.cli.references import find_conversation
from moot.cli.tables import print_table
from moot.config.files import locked, write_atomically
from moot.config.home import home_of
from moot.config.loading import FILE
from moot.config.rules import without_rule
from moot.config.settings import Permissions
from moot.errors import NotFound
from moot.runtime.approvals import decide
from moot.runtime.described import grant_json, place_of, rule_json, ruling_json
from moot.tools.offers import tool as find
from moot.types.agent import Mode
from moot.types.approval import Grant, grants_of

Of = Annotated[str | None, Parameter(name=("--conversation",), help="Conversation whose grants are included.", kind="conversation")]
ToolName = Annotated[str, Parameter(help="Name of the tool.", kind="tool")]


async def list_(*, conversation: Of = None, json: AsJson = False, output: Out) -> None:
    """Print the permission rules and where each one is defined, and the grants of a conversation."""
    rules = configured(output).settings.permissions.rules
    grants = await _grants(conversation, output)
    if json:
        output.json({"data": [*map(rule_json, rules), *map(grant_json, grants)], "next_cursor": None})
        return
    rows = [[rule.tool, rule.action, rule.match, rule.origin] for rule in rules]
    rows += [[grant.tool, "allow", grant.match, "this conversation"] for grant in grants]
    print_table(output, ["TOOL", "ACTION", "MATCH", "DEFINED IN"], rows)


async def test(
    tool: ToolName,
    subject: Annotated[str, Parameter(help="Command, path or URL of the call.")] = "",
    /,
    *,
    mode: Annotated[Mode | None, Parameter(metavar="MODE", help="Permission mode. Defaults to the configured one.")] = None,
    conversation: Of = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print whether a call would be allowed, the deciding rule and where it is defined. Command lines are checked part by part."""
    permissions = configured(output).settings.permissions
    grants = await _grants(conversation, output)
    ruling = decide(permissions, mode or permissions.mode, find(tool), subject, directory=str(here()), grants=grants)
    if json:
        output.json(ruling_json(permissions, ruling))
        return
    output.line(f"{ruling.action}: {ruling.why}{_place(permissions, ruling.why)}")
    for part in ruling.parts if len(ruling.parts) > 1 else ():
        output.line(f"  {part.action}: {part.text}  ({part.why}{_place(permissions, part.why)})")


async def remove(
    tool: ToolName,
    match: Annotated[str, Parameter(help="Pattern of the rule, as shown by 'moot permissions list'.")],
    /,
    *,
    conversation: Of = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Remove a rule from the user's configuration file, or a grant from a conversation."""
    if conversation is None:
        where = _remove_rule(tool, match, output)
    else:
        async with opened(output) as engine:
            found = await find_conversation(engine, conversation, str(here()))
            if not await engine.store.grants.revoke(found.id, tool=tool, match=match):
                raise NotFound(
                    f"The conversation has no grant for {tool} with {match!r}.", fix=f"moot permissions list --conversation {conversation}"
                )
        where = found.id
    if json:
        output.json({"ok": True, "tool": tool, "match": match, "from": where})
    else:
        output.say(f"moot: removed from {where}")


def _remove_rule(tool: str, match: str, output: Output) -> str:
    path = home_of(os.environ) / FILE
    with locked(path):
        rules = configured(output).settings.permissions.rules
        at = next((at for at, rule in enumerate(rules) if (rule.tool, rule.match) == (tool, match)), None)
        if at is None or not rules[at].origin.startswith("user "):
            raise NotFound(f"No rule for {tool} with {match!r} in {str(path)!r}.", fix="moot permissions list")
        write_atomically(path, without_rule(path, at, os.environ))
    return str(path)


async def _grants(conversation: str | None, output: Output) -> tuple[Grant, ...]:
    if conversation is None:
        return ()
    async with opened(output) as engine:
        return grants_of((await find_conversation(engine, conversation, str(here()))).settings)


def _place(permissions: Permissions, why: str) -> str:
    origin = place_of(permissions, why)
    return f", {origin}" if origin else ""
