"""Permissions as JSON: the same in every face."""

from __future__ import annotations

from moot.config.settings import Permissions, Rule
from moot.runtime.approvals import Ruling, told
from moot.types.approval import Grant
from moot.types.canonical import Json, JsonObject

__all__ = ["grant_json", "place_of", "rule_json", "ruling_json"]


def rule_json(rule: Rule) -> JsonObject:
    """A standing rule, and where it was written."""
    return {
        "kind": "rule",
        "tool": rule.tool,
        "action": rule.action,
        "match": rule.match,
        "always": rule.always,
        "origin": rule.origin,
    }


def grant_json(grant: Grant) -> JsonObject:
    """What was allowed in a conversation."""
    return {"kind": "grant", "action": "allow", **grant.to_json()}


def ruling_json(permissions: Permissions, ruling: Ruling) -> JsonObject:
    """What would happen to a call, and where that was written."""
    return {
        "action": ruling.action,
        "why": ruling.why,
        "origin": place_of(permissions, ruling.why),
        "parts": list[Json]([{**part.to_json(), "origin": place_of(permissions, part.why)} for part in ruling.parts]),
    }


def place_of(permissions: Permissions, why: str) -> str:
    """Where the rule stands that a ruling names; empty for none."""
    return next((rule.origin for rule in permissions.rules if told(rule) in why), "")
