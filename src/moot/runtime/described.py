"""Permissions as JSON, the same for all faces."""

from __future__ import annotations

from moot.config.settings import Permissions, Rule
from moot.runtime.approvals import Ruling, told
from moot.types.approval import Grant
from moot.types.canonical import Json, JsonObject

__all__ = ["grant_json", "place_of", "rule_json", "ruling_json"]


def rule_json(rule: Rule) -> JsonObject:
    """Return a permission rule with the place where it was written."""
    return {
        "kind": "rule",
        "tool": rule.tool,
        "action": rule.action,
        "match": rule.match,
        "always": rule.always,
        "origin": rule.origin,
    }


def grant_json(grant: Grant) -> JsonObject:
    """Return a permission granted in a conversation."""
    return {"kind": "grant", "action": "allow", **grant.to_json()}


def ruling_json(permissions: Permissions, ruling: Ruling) -> JsonObject:
    """Return what would happen to a call, with the place of the deciding rule."""
    return {
        "action": ruling.action,
        "why": ruling.why,
        "origin": place_of(permissions, ruling.why),
        "parts": list[Json]([{**part.to_json(), "origin": place_of(permissions, part.why)} for part in ruling.parts]),
    }


def place_of(permissions: Permissions, why: str) -> str:
    """Return the place of the rule mentioned in a ruling, or an empty string."""
    return next((rule.origin for rule in permissions.rules if told(rule) in why), "")
