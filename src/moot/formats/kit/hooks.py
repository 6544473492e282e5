"""Conversion of other programs' hooks to moot's. Tool names and the variable for the project folder are replaced with moot's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

from moot.config.hooks import translated_matcher
from moot.formats.kit.configuration import ConfigurationBuilder
from moot.formats.kit.fields import obj, objects, text
from moot.types.canonical import Json, JsonObject
from moot.types.hooks import HookEvent
from moot.types.templates import variables_in

_EVENTS = frozenset(get_args(HookEvent))
_KNOWN = frozenset({"type", "command", "timeout", "enabled"})


def add_command_hooks(draft: ConfigurationBuilder, hooks: JsonObject, tools: Mapping[str, str], folder: str) -> None:
    """Convert the hooks of a program, which have the form `{event: [{matcher, hooks: [{type, command, timeout}]}]}`, and add them.

    `tools` maps the program's tool names to moot's. `folder` is the program's environment variable for the project folder. Hooks without
    an equivalent are reported as lost and kept as comments.
    """
    for event, groups in hooks.items():
        added: list[Json] = []
        for group in objects(groups):
            matcher = text(group, "matcher")
            ours = translated_matcher(event, matcher, tools)
            commands = [_command(draft, event, one, folder) for one in objects(group.get("hooks"))]
            kept: list[Json] = [one for one in commands if one]
            if event not in _EVENTS or ours is None or not kept:
                draft.lose(f"hooks {event}{f' {matcher}' if matcher else ''}", "no equivalent", group)
                continue
            added.append({**({"matcher": ours} if ours else {}), "hooks": kept})
        draft.hooks(event, added)


def _command(draft: ConfigurationBuilder, event: str, hook: JsonObject, folder: str) -> JsonObject:
    """Convert one hook. Return an empty object if the hook is disabled or does not run a command."""
    command, timeout = text(hook, "command"), hook.get("timeout")
    if not command or hook.get("type", "command") != "command" or hook.get("enabled") is False:
        return {}
    if ignored := sorted(hook.keys() - _KNOWN):
        draft.note(f"hook {event}: {', '.join(ignored)} was left out")
    command = re.sub(rf"\$(?:{folder}\b|\{{{folder}\}})", "$MOOT_PROJECT_DIR", command)
    has_limit = isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout > 0
    return {"command": command, **({"timeout": timeout} if has_limit else {})}


def run_hooks_of(
    draft: ConfigurationBuilder, agent: str, hooks: JsonObject, tools: Mapping[str, str], known: tuple[str, ...]
) -> JsonObject:
    """Convert hooks of the form `{beforeRun: [{tool, args, skipIf}], afterRun: […]}`.
    `known` lists the variables that also exist in moot.
    """
    found: JsonObject = {}
    for theirs, ours in (("beforeRun", "before_run"), ("afterRun", "after_run")):
        listed = hooks.get(theirs)
        calls: list[Json] = []
        for hook in objects([listed] if isinstance(listed, dict) else listed):
            name, test = text(hook, "tool"), text(hook, "skipIf")
            if name not in tools or not set(variables_in(hook)) <= {*known, *(("response",) if ours == "after_run" else ())}:
                draft.lose(
                    f"hooks of {agent!r} with the tool {name!r}",
                    "no equivalent for the tool or for a variable in its arguments",
                    {theirs: hook},
                )
                continue
            skip: JsonObject = {"skip_if": {"matches": test}} if test and ours == "before_run" else {}
            calls.append({"tool": tools[name], "arguments": obj(hook, "args"), **skip})
        if calls:
            found[ours] = calls
    return found
