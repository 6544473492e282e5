"""Hooks in the configuration: build them from validated sections,
and find mistakes that would otherwise be noticed only when a hook runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from moot.plugins import TOOLS
from moot.types.canonical import Json, JsonObject
from moot.types.command_tool import Check
from moot.types.hooks import SUBJECTS, CommandHook, HookEvent, HookSide, ReferencedCall, RunHook, RunHooks, SkipIf, SkipTest
from moot.types.templates import check_line, variables_in

if TYPE_CHECKING:
    from moot.config.schema import AgentHooksPart, Configuration, RunHookPart

BEFORE = ("last_run", "last_response", "next_task", "prompt", "agent", "conversation", "run", "date")
"""Variables that can be used in the templates of `before_run`."""

AFTER = (*BEFORE, "response")
"""Variables that can be used in the templates of `after_run`."""

MCP = "mcp__"
"""Prefix of the names of MCP tools, which are not known before their server is running."""

CHECK_SECTIONS = ("formatters", "checks")
"""The sections with commands that check or format files, in the order in which the commands run."""

_TESTS: tuple[SkipTest, ...] = ("empty", "equals", "contains", "matches")

_Problem: TypeAlias = tuple[tuple[str | int, ...], str]


def command_hooks(
    section: Mapping[str, Any], folders: Mapping[tuple[str, int], str] | None = None
) -> dict[HookEvent, tuple[CommandHook, ...]]:
    """Return the commands in the validated section `hooks`, keyed by event.
    `folders` maps entries from a project to the project's folder.
    """
    found: dict[HookEvent, tuple[CommandHook, ...]] = {}
    for event, groups in section.items():
        commands = [
            CommandHook(one["command"], group["matcher"], one["timeout"], one["required"], (folders or {}).get((event, at), ""))
            for at, group in enumerate(groups)
            for one in group["hooks"]
        ]
        if commands:
            found[cast("HookEvent", event)] = tuple(commands)
    return found


def file_checks(configuration: Mapping[str, Any], folders: Mapping[tuple[str, str, int], str] | None = None) -> tuple[Check, ...]:
    """Return the commands in the validated sections `formatters` and `checks`, formatters first. For `folders`, see `command_hooks`."""
    return tuple(
        Check(pattern, command, section == "formatters", (folders or {}).get((section, pattern, at), ""))
        for section in CHECK_SECTIONS
        for pattern, commands in configuration[section].items()
        for at, command in enumerate(commands)
    )


def run_hooks(section: Mapping[str, Any]) -> RunHooks:
    """Return the hooks of an agent or a cron job, given its section of the configuration file. Keys with defaults may be missing."""
    return RunHooks(
        tuple(map(_run_hook, section.get("before_run") or ())),
        tuple(map(_run_hook, section.get("after_run") or ())),
    )


def _run_hook(part: Mapping[str, Any]) -> RunHook:
    tests = cast("JsonObject", part.get("skip_if") or {})
    found = [SkipIf(name, "" if name == "empty" else str(tests[name])) for name in _TESTS if tests.get(name) not in (None, False)]
    kind = ReferencedCall if part.get("referenced") is True else RunHook
    return kind(part["tool"], part.get("arguments") or {}, found[0] if found else None, part.get("command") or "")


@cache
def _compiled(matcher: str) -> re.Pattern[str]:
    return re.compile(matcher)


def fits(matcher: str, subject: str) -> bool:
    """Return True if a matcher matches the whole subject."""
    return matcher in ("", "*") or _compiled(matcher).fullmatch(subject) is not None


def translated_matcher(event: str, matcher: str, tools: Mapping[str, str]) -> str | None:
    """Convert the matcher of a hook of another program. Return None if it can't match anything in moot.

    `tools` maps the program's tool names to moot's.
    """
    return _of_tools(matcher, tools) if event in ("PreToolUse", "PostToolUse") else _of_event(event, matcher)


def _of_event(event: str, matcher: str) -> str | None:
    """Return the matcher for an event that is not a tool call, or None if it can't match anything in moot."""
    subjects = next((found for name, found in SUBJECTS.items() if name == event), None)
    if matcher in ("", "*") or subjects == ():
        return ""
    try:
        return matcher if subjects is None or any(re.fullmatch(matcher, subject) for subject in subjects) else None
    except re.error:
        return None


def _of_tools(matcher: str, tools: Mapping[str, str]) -> str | None:
    """Return the matcher with moot's tool names, or None if it contains a tool that has no equivalent.
    Names of MCP tools are not changed.
    """
    if matcher in ("", "*"):
        return ""
    found: list[str] = []
    for one in matcher.split("|"):
        if one.startswith("mcp__"):
            found.append(one)
        elif one in tools:
            found.append(tools[one])
        else:
            # a regular expression: use all tools of the program that it matches
            try:
                matched = [ours for theirs, ours in tools.items() if re.fullmatch(one, theirs)]
            except re.error:
                return None
            if not matched:
                return None
            found += matched
    return "|".join(dict.fromkeys(found))


def problems(configuration: Configuration) -> Iterator[_Problem]:
    """Yield the mistakes in all hooks, each with the path of the wrong value."""
    tools = {*TOOLS.names(), *configuration.tools}
    for event in ("PreToolUse", "PostToolUse"):
        for at, group in enumerate(getattr(configuration.hooks, event)):
            for name in unknown_tools(group.matcher, tools):
                yield ("hooks", event, at, "matcher"), f"No tool of moot matches {name!r}. Run 'moot tools list' for the names."
    for event, subjects in SUBJECTS.items():
        for at, group in enumerate(getattr(configuration.hooks, event)):
            if group.matcher not in ("", "*") and not any(fits(group.matcher, subject) for subject in subjects):
                known = f"Known: {', '.join(subjects)}." if subjects else f"{event} takes no matcher; its hooks always run."
                yield ("hooks", event, at, "matcher"), f"Nothing matches {group.matcher!r}. {known}"
    for agent, part in configuration.agents.items():
        yield from run_hook_problems(part.hooks, ("agents", agent, "hooks"), tools)
    for job, one in configuration.cron.items():
        yield from run_hook_problems(one.hooks, ("cron", job, "hooks"), tools)


def unknown_tools(matcher: str, tools: set[str]) -> list[str]:
    """Return the alternatives of a matcher that match no tool. MCP tools are not known in advance, so they are not reported."""
    if matcher in ("", "*"):
        return []
    simple = re.fullmatch(r"[\w|]+", matcher) is not None
    return [one for one in (matcher.split("|") if simple else [matcher]) if MCP not in one and not any(fits(one, tool) for tool in tools)]


def run_hook_problems(part: AgentHooksPart, path: tuple[str | int, ...], tools: set[str]) -> Iterator[_Problem]:
    """Yield the mistakes in the hooks of an agent or a cron job: unknown tools and variables, and invalid templates."""
    sides: tuple[tuple[HookSide, list[RunHookPart]], ...] = (("before_run", part.before_run), ("after_run", part.after_run))
    for side, hooks in sides:
        for at, hook in enumerate(hooks):
            place = (*path, side, at)
            if hook.tool not in tools and not hook.tool.startswith(MCP):
                yield (*place, "tool"), TOOLS.unknown(hook.tool)
            yield from _template_problems(hook, side, place)
            if side == "after_run" and hook.skip_if is not None:
                yield (*place, "skip_if"), "This applies only to hooks in before_run."


def _template_problems(hook: RunHookPart, side: HookSide, place: tuple[str | int, ...]) -> Iterator[_Problem]:
    known = BEFORE if side == "before_run" else AFTER
    texts: dict[str, Json] = {"arguments": cast("JsonObject", hook.arguments)}
    if hook.skip_if is not None:
        texts["skip_if"] = cast("JsonObject", hook.skip_if.model_dump(mode="json"))
    for key, value in texts.items():
        for name in variables_in(value):
            if name not in known:
                only = " It is only known in after_run." if name in AFTER else ""
                yield (*place, key), f"Unknown variable {name!r}.{only} Known: {', '.join(known)}."
    if isinstance(command := hook.arguments.get("command"), str):
        try:
            check_line(command)
        except ValueError as error:
            yield (*place, "arguments", "command"), str(error)
    if hook.skip_if is not None and hook.skip_if.matches is not None and not [*variables_in(hook.skip_if.matches)]:
        try:
            re.compile(hook.skip_if.matches)
        except (re.error, RecursionError, OverflowError) as error:
            yield (*place, "skip_if", "matches"), f"Expected a regular expression ({error})."
