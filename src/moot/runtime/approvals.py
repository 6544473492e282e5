"""Policy: which calls may run, which ask a person, which are denied. Deny goes before ask, ask before allow."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from moot.config.settings import Permissions, Rule
from moot.types.agent import Mode
from moot.types.tool import Effect, Tool

Action: TypeAlias = Literal["allow", "ask", "deny"]

_COMPOUND = re.compile(r"[;&|`$<>()\n\r\\]")
"""What can make one shell line into several, or into another one. A rule never covers such a line: it asks."""

_STRICTEST: tuple[Action, ...] = ("deny", "ask", "allow")


def decide(permissions: Permissions, mode: Mode, tool: Tool, subject: str) -> tuple[Action, str]:
    """What happens to a call, and why in words; `subject` is what rules match: a command, a path, a URL."""
    matching = [rule for rule in permissions.rules if _matches(rule, tool, subject)]
    for action in _STRICTEST:
        for rule in matching:
            if rule.action == action:
                return action, f"the rule {rule.tool} {rule.match!r} says {action}"
    return _by_mode(mode, tool.effects), f"mode {mode}"


def _matches(rule: Rule, tool: Tool, subject: str) -> bool:
    if rule.tool not in ("*", tool.name) or not fnmatchcase(subject, rule.match):
        return False
    widens = rule.action == "allow" and rule.match != "*"
    return not (widens and "execute" in tool.effects and _COMPOUND.search(subject))


def _by_mode(mode: Mode, effects: frozenset[Effect]) -> Action:
    beyond = {effect for effect in effects if effect != "read"}
    if not beyond or mode == "auto":
        return "allow"
    if mode == "plan":
        return "deny"
    if mode == "edits" and beyond == {"write"}:
        return "allow"
    return "ask"
