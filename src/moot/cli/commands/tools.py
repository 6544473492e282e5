"""The commands of `moot tools` and `moot permissions`."""

from __future__ import annotations

import os
from typing import Annotated, cast

from moot.cli.arguments.signatures import AsJson, Cursor, Limit, Parameter
from moot.cli.console.format import paged, print_fields, print_table
from moot.cli.console.lines import write_done
from moot.cli.console.output import Output
from moot.cli.context.configuration import configured, here
from moot.cli.context.engine import find_conversation, opened
from moot.cli.options import Out
from moot.config.changes import without_rule
from moot.config.home import home_of, lock_file, write_atomically
from moot.config.loader import FILE
from moot.config.settings import Permissions
from moot.errors import NotFound
from moot.plugins import TOOLS
from moot.runtime.approvals import decide, grant_json, place_of, rule_json, ruling_json
from moot.tools.catalogue import find_tool as find
from moot.tools.catalogue import tool_facts, tool_json
from moot.tools.schema import definition
from moot.types.agent import Mode
from moot.types.approval import Grant, grants_of
from moot.types.canonical import Json, JsonObject


def list_tools(*, limit: Limit = 50, cursor: Cursor = None, json: AsJson = False, output: Out) -> None:
    """Print the tools and whether they are available."""
    settings = configured(output).settings
    page = paged([tool_facts(name, settings) for name in TOOLS.names()], limit, cursor, "name")
    tools = page.items
    if json:
        output.json(page.to_json())
        return
    rows: list[list[str]] = []
    for tool in tools:
        effects = ", ".join(map(str, cast("list[Json]", tool["effects"])))
        sentence = str(tool["description"]).strip().partition("\n")[0].partition(". ")[0]
        rows.append([str(tool["name"]), effects, _state(tool), str(tool["package"]), sentence])
    head = ["NAME", "EFFECTS", "STATE", "PACKAGE", "DESCRIPTION"]
    if not any(tool["package"] for tool in tools):  # all are built in
        head, rows = [*head[:3], head[4]], [[*row[:3], row[4]] for row in rows]
    print_table(output, head, rows)
    page.say_more(output)


def show_tool(name: Annotated[str, Parameter(kind="tool", help="Name of the tool.")], /, *, json: AsJson = False, output: Out) -> None:
    """Print a tool's description and schema as sent to models."""
    settings = configured(output).settings
    tool = find(name)
    print_fields(output, {**tool_json(tool, settings), "schema": definition(tool).schema}, json=json)


def _state(tool: JsonObject) -> str:
    if tool.get("error"):
        return "broken"
    if not tool["available"]:
        return "needs configuration"
    return "only by name" if tool["hidden"] else "offered"


Of = Annotated[str | None, Parameter(help="Conversation whose grants are included.", kind="conversation")]
ToolName = Annotated[str, Parameter(help="Name of the tool.", kind="tool")]


async def list_rules(*, conversation: Of = None, json: AsJson = False, output: Out) -> None:
    """Print the permission rules and where each one is defined, and the grants of a conversation."""
    rules = configured(output).settings.permissions.rules
    grants = await _grants(conversation, output)
    if json:
        output.json({"data": [*map(rule_json, rules), *map(grant_json, grants)], "next_cursor": None})
        return
    rows = [[rule.tool, rule.action, rule.match, rule.origin] for rule in rules]
    rows += [[grant.tool, "allow", grant.match, "this conversation"] for grant in grants]
    print_table(output, ["TOOL", "ACTION", "MATCH", "DEFINED IN"], rows)


async def test_rule(
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


async def remove_rule(
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
                    f"The conversation has no grant of {match!r} for {tool}.", fix=f"moot permissions list --conversation {conversation}"
                )
        where = found.id
    write_done(output, json, {"ok": True, "tool": tool, "match": match, "from": where}, f"removed from {where}")


def _remove_rule(tool: str, match: str, output: Output) -> str:
    path = home_of(os.environ) / FILE
    with lock_file(path):
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
