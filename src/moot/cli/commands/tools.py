"""The commands of `moot tools` and `moot permissions`."""

from __future__ import annotations

import os
import shlex
from typing import Annotated, cast

from moot.cli.arguments.signatures import AsJson, Cursor, Limit, Parameter
from moot.cli.console.format import paged, print_fields, print_table
from moot.cli.console.lines import write_done
from moot.cli.console.output import Output
from moot.cli.context.configuration import configured, here
from moot.cli.context.engine import find_conversation, opened
from moot.cli.context.output import Out
from moot.config.changes import add_rules, without_rule
from moot.config.home import home_of, lock_file, write_atomically
from moot.config.loader import FILE
from moot.config.settings import Permissions
from moot.errors import NotFound
from moot.features.suggestions import Suggestion, past_decisions, suggest
from moot.runtime.approvals.policy import grant_json, place_of, rule_json, ruling_json
from moot.runtime.approvals.sandbox import rule_on_call
from moot.runtime.setup import mode_of
from moot.tools.catalogue import find_tool as find
from moot.tools.catalogue import tool_facts, tool_json, tool_names
from moot.tools.schema import definition
from moot.types.agent import Mode
from moot.types.approval import Grant
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.sandbox import Access


def list_tools(*, limit: Limit = 50, cursor: Cursor = None, json: AsJson = False, output: Out) -> None:
    """Print the tools and whether they are available."""
    settings = configured(output).settings
    page = paged([tool_facts(name, settings) for name in tool_names(settings)], limit, cursor, "name")
    tools = page.items
    if json:
        output.json(page.to_json())
        return
    rows: list[list[str]] = []
    for tool in tools:
        effects = ", ".join(map(str, cast("list[Json]", tool["effects"])))
        sentence = str(tool["description"]).strip().partition("\n")[0].partition(". ")[0]
        origin = str(tool["package"]) or str(tool["origin"])
        rows.append([str(tool["name"]), effects, _state(tool), origin, sentence])
    head = ["NAME", "EFFECTS", "STATE", "ORIGIN", "DESCRIPTION"]
    if all(tool["origin"] == "built-in" for tool in tools):
        head, rows = [*head[:3], head[4]], [[*row[:3], row[4]] for row in rows]
    print_table(output, head, rows)
    page.say_more(output)


def show_tool(name: Annotated[str, Parameter(kind="tool", help="Name of the tool.")], /, *, json: AsJson = False, output: Out) -> None:
    """Print a tool's description and schema as they are sent to models."""
    settings = configured(output).settings
    tool = find(name, settings)
    print_fields(output, {**tool_json(tool, settings), "schema": definition(tool).schema}, json=json)


def _state(tool: JsonObject) -> str:
    if tool.get("error"):
        return "broken"
    if not tool["available"]:
        return "needs configuration"
    return "only by name" if tool["hidden"] else "offered"


Of = Annotated[str | None, Parameter(help="Conversation whose granted permissions to include.", kind="conversation")]
GrantedIn = Annotated[
    str | None,
    Parameter(help="Remove a permission granted in this conversation instead of a rule from your configuration.", kind="conversation"),
]
ToolName = Annotated[str, Parameter(help="Name of the tool.", kind="tool")]


async def list_rules(*, conversation: Of = None, json: AsJson = False, output: Out) -> None:
    """Print the permission rules and where each one is defined. Include the permissions granted in a conversation if one is given."""
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
    subject: Annotated[str, Parameter(help="Command, path or URL that the tool would be called with.")] = "",
    /,
    *,
    mode: Annotated[Mode | None, Parameter(metavar="MODE", help="Permission mode. Defaults to the conversation's mode.")] = None,
    access: Annotated[
        Access,
        Parameter(
            metavar="ACCESS",
            help="Access that a shell command requests: only the sandbox, network access, or execution outside the sandbox.",
        ),
    ] = "sandbox",
    conversation: Of = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print whether a call would be allowed, and the rule that applies. Each command of a command line is checked separately."""
    async with opened(output) as engine:
        found = Conversation("", directory=str(here()))
        if conversation is not None:
            found = await find_conversation(engine, conversation, found.directory)
        permissions, wanted = engine.settings.permissions, mode or mode_of(engine.settings, {}, found)
        grants = found.grants
        ruling = await rule_on_call(engine.runtime, found, find(tool, engine.settings), subject, access, mode=wanted, grants=grants)
    if json:
        output.json(ruling_json(permissions, ruling))
        return
    output.line(f"{ruling.action}: {ruling.why}{_place(permissions, ruling.why)}")
    for part in ruling.parts if len(ruling.parts) > 1 else ():
        output.line(f"  {part.action}: {part.text}  ({part.why}{_place(permissions, part.why)})")


async def suggest_rules(*, json: AsJson = False, output: Out) -> None:
    """Print rules for the commands that you allowed at least 3 times and never denied. Nothing is changed."""
    async with opened(output) as engine:
        found = suggest(engine.settings.permissions, await past_decisions(engine.store))
    if json:
        output.json({"data": [{**each.to_json(), "command": _adding(each)} for each in found], "next_cursor": None})
        return
    if not found:
        output.line("No suggestions. A command must be allowed at least 3 times, never denied, and not covered by a rule.")
        return
    print_table(
        output, ["TOOL", "ALLOWED", "MATCH", "EXAMPLE"], [[each.tool, str(each.allowed), each.match, each.example] for each in found]
    )
    output.line("")
    output.line("Add the rules that you want:")
    for each in found:
        output.line(f"  {_adding(each)}")


def _adding(suggestion: Suggestion) -> str:
    """Return the command line that adds the rule."""
    return shlex.join(["moot", "permissions", "allow", suggestion.tool, suggestion.match])


def allow_rule(
    tool: Annotated[str, Parameter(help="Name of the tool, either moot's or an outside agent's.", kind="tool")],
    match: Annotated[str, Parameter(help="Pattern of the calls to allow.")],
    /,
    *,
    json: AsJson = False,
    output: Out,
) -> None:
    """Add an allow rule to the user's configuration file."""
    path = home_of(os.environ) / FILE
    add_rules(path, [{"tool": tool, "match": match, "action": "allow"}], os.environ)
    write_done(output, json, {"ok": True, "tool": tool, "match": match, "to": str(path)}, f"added to {path}")


async def remove_rule(
    tool: ToolName,
    match: Annotated[str, Parameter(help="Pattern of the rule, as shown by 'moot permissions list'.")],
    /,
    *,
    conversation: GrantedIn = None,
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
                    f"The conversation has no granted permission {match!r} for {tool}.",
                    fix=f"moot permissions list --conversation {conversation}",
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
        return (await find_conversation(engine, conversation, str(here()))).grants


def _place(permissions: Permissions, why: str) -> str:
    origin = place_of(permissions, why)
    return f", {origin}" if origin else ""
