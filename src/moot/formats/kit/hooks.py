"""Hooks of other programs, translated to moot's: matchers name moot's tools, and commands find the project's folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

from moot.formats.kit.configuration import ConfigurationBuilder
from moot.formats.kit.fields import obj, objects, text
from moot.types.canonical import Json, JsonObject
from moot.types.hooks import SUBJECTS, HookEvent
from moot.types.templates import variables_in

_EVENTS = frozenset(get_args(HookEvent))
_OF_TOOLS = frozenset({"PreToolUse", "PostToolUse"})
_KNOWN = frozenset({"type", "command", "timeout", "enabled"})


def add_command_hooks(draft: ConfigurationBuilder, hooks: JsonObject, tools: Mapping[str, str], folder: str) -> None:
    """Add the hooks of a program in their usual form, `{event: [{matcher, hooks: [{type, command, timeout}]}]}`.

    `tools` maps the program's tool names to moot's, and `folder` is its variable with the project's folder. What has no equivalent is
    kept as a comment, with a note.
    """
    for event, groups in hooks.items():
        added: list[Json] = []
        for group in objects(groups):
            matcher = text(group, "matcher")
            ours = translated(matcher, tools) if event in _OF_TOOLS else _of_event(event, matcher)
            commands = [_command(draft, event, one, folder) for one in objects(group.get("hooks"))]
            kept: list[Json] = [one for one in commands if one]
            if event not in _EVENTS or ours is None or not kept:
                draft.lose(f"hooks {event}{f' {matcher}' if matcher else ''}", "no equivalent", group)
                continue
            added.append({**({"matcher": ours} if ours else {}), "hooks": kept})
        draft.hooks(event, added)


def _of_event(event: str, matcher: str) -> str | None:
    """Return the matcher of an event that is not about a tool, or None if nothing in moot matches it."""
    subjects = next((found for name, found in SUBJECTS.items() if name == event), None)
    if matcher in ("", "*") or subjects == ():
        return ""
    try:
        return matcher if subjects is None or any(re.fullmatch(matcher, subject) for subject in subjects) else None
    except re.error:
        return None


def translated(matcher: str, tools: Mapping[str, str]) -> str | None:
    """Return the matcher with moot's tool names, or None if it names a tool without an equivalent. Names of MCP tools stay."""
    if matcher in ("", "*"):
        return ""
    found: list[str] = []
    for one in matcher.split("|"):
        if one.startswith("mcp__"):
            found.append(one)
        elif one in tools:
            found.append(tools[one])
        else:
            # an expression: all tools of the program that it matches
            try:
                matched = [ours for theirs, ours in tools.items() if re.fullmatch(one, theirs)]
            except re.error:
                return None
            if not matched:
                return None
            found += matched
    return "|".join(dict.fromkeys(found))


def _command(draft: ConfigurationBuilder, event: str, hook: JsonObject, folder: str) -> JsonObject:
    """Return one command, or nothing if it is turned off or of another type."""
    command, timeout = text(hook, "command"), hook.get("timeout")
    if not command or hook.get("type", "command") != "command" or hook.get("enabled") is False:
        return {}
    if ignored := sorted(hook.keys() - _KNOWN):
        draft.note(f"hook {event}: {', '.join(ignored)} left out")
    command = re.sub(rf"\$(?:{folder}\b|\{{{folder}\}})", "$MOOT_PROJECT_DIR", command)
    has_limit = isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout > 0
    return {"command": command, **({"timeout": timeout} if has_limit else {})}


def run_hooks_of(
    draft: ConfigurationBuilder, agent: str, hooks: JsonObject, tools: Mapping[str, str], known: tuple[str, ...]
) -> JsonObject:
    """Return `{beforeRun: [{tool, args, skipIf}], afterRun: […]}` in moot's form. `known` are the variables that both programs have."""
    found: JsonObject = {}
    for theirs, ours in (("beforeRun", "before_run"), ("afterRun", "after_run")):
        listed = hooks.get(theirs)
        calls: list[Json] = []
        for hook in objects([listed] if isinstance(listed, dict) else listed):
            name, test = text(hook, "tool"), text(hook, "skipIf")
            if name not in tools or not set(variables_in(hook)) <= {*known, *(("response",) if ours == "after_run" else ())}:
                draft.lose(f"hooks of {agent!r} with the tool {name!r}", "no equivalent for the tool or a variable", {theirs: hook})
                continue
            skip: JsonObject = {"skip_if": {"matches": test}} if test and ours == "before_run" else {}
            calls.append({"tool": tools[name], "arguments": obj(hook, "args"), **skip})
        if calls:
            found[ours] = calls
    return found
