"""Policy: which calls may run, which need approval, which are denied. Deny takes precedence over ask, ask over allow.

A shell line is checked command by command. It runs only if every command may run, and one denied command denies the whole line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from moot.config.settings import Permissions, Rule
from moot.guard.commands import Piece
from moot.plugins import Registry
from moot.runtime import patterns
from moot.types.agent import Mode
from moot.types.approval import Action, ApprovalPart, Effect, Grant, OutsideCall
from moot.types.canonical import Json, JsonObject

_SPLITTERS = Registry("moot.splitters", {"bash": "moot.guard.shell:split"})
"""Imported lazily by name, because splitting a line needs a parser."""

_STRICTEST: tuple[Action, ...] = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True)
class Ruling:
    """A decision about a call, and the reason."""

    action: Action
    why: str
    parts: tuple[ApprovalPart, ...] = ()
    """The parts of the call that were checked. Empty if no check was necessary."""


class Ruled(Protocol):
    """Facts about a tool of moot or of an outside agent that the policy needs."""

    @property
    def name(self) -> str: ...
    @property
    def effects(self) -> frozenset[Effect]: ...


@dataclass(frozen=True, slots=True)
class _Judge:
    """Rules and grants that may apply to a call of the tool."""

    rules: tuple[Rule, ...]
    grants: tuple[Grant, ...]
    fallback: Ruling

    def of(self, action: Action) -> list[Rule]:
        return [rule for rule in self.rules if rule.action == action]

    def judge(self, forbids: Callable[[str], bool], allows: Callable[[str], bool]) -> tuple[Ruling, bool]:
        """Return the ruling, and whether a permission for more than one call can be given."""
        for rule in self.of("deny"):
            if forbids(rule.match):
                return Ruling("deny", rule_text(rule)), False
        asking = [rule for rule in self.of("ask") if forbids(rule.match)]
        grant = next((grant for grant in self.grants if allows(grant.match)), None)
        never = next((rule for rule in asking if rule.always == "never"), None)
        if never is not None or (asking and grant is None):
            return Ruling("ask", rule_text(never or asking[0])), never is None
        if grant is not None:
            return Ruling("allow", f"allowed in this conversation: {grant.match}"), True
        allowing = next((rule for rule in self.of("allow") if allows(rule.match)), None)
        return (Ruling("allow", rule_text(allowing)) if allowing else self.fallback), True


def decide(
    permissions: Permissions, mode: Mode, tool: Ruled, subject: str, *, directory: str = "", grants: Iterable[Grant] = (), like: str = ""
) -> Ruling:
    """Return the ruling on a call. `subject` is matched by rules: a command, path or URL. `directory` is the base of relative paths.

    Rules for the tool `like` apply too.
    """
    names = ("*", tool.name, like or tool.name)
    beyond = {effect for effect in tool.effects if effect != "read"}
    allowed = not beyond or mode == "auto" or (mode == "edits" and beyond == {"write"})
    judge = _Judge(
        tuple(rule for rule in permissions.rules if rule.tool in names),
        tuple(grant for grant in grants if grant.tool == tool.name),
        Ruling("allow" if allowed else "deny" if mode == "plan" else "ask", f"mode {mode}"),
    )
    if "execute" in tool.effects:
        return _line(judge, subject)
    return _plain(judge, subject, directory)


def rule_on(permissions: Permissions, mode: Mode, call: OutsideCall, directory: str, grants: Iterable[Grant]) -> Ruling:
    """Return the strictest ruling on all subjects of an outside agent's call."""
    all_grants = tuple(grants)
    rulings = [
        decide(permissions, mode, call, subject, directory=directory, grants=all_grants, like=call.like)
        for subject in (call.subject, *call.more)
    ]
    action: Action = next(action for action in _STRICTEST if any(ruling.action == action for ruling in rulings))
    parts = tuple(part for ruling in rulings for part in ruling.parts)
    return replace(next(ruling for ruling in rulings if ruling.action == action), parts=parts)


# ── paths, URLs, or no subject ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _plain(judge: _Judge, subject: str, directory: str) -> Ruling:
    allowed, all_spellings = patterns.spellings(subject, directory)

    def fits(pattern: str, texts: Sequence[str]) -> bool:
        return pattern == patterns.EVERYTHING or any(patterns.fits(text, pattern) for text in texts)

    ruling, lasting = judge.judge(lambda pattern: fits(pattern, all_spellings), lambda pattern: fits(pattern, allowed))
    if ruling.action != "ask":
        return ruling
    wanted = patterns.offers(subject, directory) if lasting else ()
    always = bool(wanted) and ruling is judge.fallback and subject.isascii()
    return replace(ruling, parts=(ApprovalPart(subject, "ask", ruling.why, wanted, always),))


# ── shell lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _line(judge: _Judge, line: str) -> Ruling:
    whole, _ = judge.judge(lambda pattern: pattern == patterns.EVERYTHING, lambda pattern: pattern == patterns.EVERYTHING)
    special = judge.grants or any(rule.match != patterns.EVERYTHING for rule in judge.rules)
    if whole.action == "deny" or not line.strip() or (not special and whole.action != "ask"):
        return whole
    if (denied := _strict(judge, "deny", line)) is not None:
        return denied
    pieces: tuple[Piece, ...] | None = _SPLITTERS.load("bash")(line)
    if pieces is None:
        if whole.action != "ask" and not any(rule.action != "allow" and rule.match != patterns.EVERYTHING for rule in judge.rules):
            return whole
        why = "not understood, so no rule can allow it"
        return Ruling("ask", why, (ApprovalPart(line, "ask", why),))
    parts = tuple(_part(judge, piece) for piece in pieces)
    met = {rule for rule in judge.of("ask") if any(patterns.forbids(rule.match, piece) for piece in pieces)}
    return _strictest(parts, _strict(replace(judge, rules=tuple(rule for rule in judge.rules if rule not in met)), "ask", line))


def _strict(judge: _Judge, action: Action, line: str) -> Ruling | None:
    """Return a ruling if a rule matches the line as a whole: `rm *` matches `rm x; y`."""
    rule = next((rule for rule in judge.of(action) if rule.match != patterns.EVERYTHING and patterns.fits(line, rule.match)), None)
    return Ruling(action, rule_text(rule)) if rule is not None else None


def _part(judge: _Judge, piece: Piece) -> ApprovalPart:
    if piece.within:  # run by the previous part, so only denials count here
        judge = replace(judge, fallback=Ruling("allow", "run by the part before it"))
    ruling, lasting = judge.judge(lambda pattern: patterns.forbids(pattern, piece), lambda pattern: patterns.allows(pattern, piece))
    strict = (rule for rule in judge.rules if rule.action != "allow" and rule.match != patterns.EVERYTHING)
    possible = (rule for rule in strict if patterns.could_match(rule.match, piece))
    if ruling.action == "allow" and (rule := next(possible, None)) is not None:
        ruling, lasting = Ruling("ask", f"may turn out to be something that {rule_text(rule)}"), False
    if ruling.action != "ask":
        return ApprovalPart(piece.text, ruling.action, ruling.why, within=piece.within)
    wanted, always = patterns.narrowest(piece) if lasting else ((), False)
    why = "; ".join((ruling.why, *piece.leftover))
    return ApprovalPart(piece.text, "ask", why, wanted, always and ruling is judge.fallback, piece.within)


def _strictest(parts: tuple[ApprovalPart, ...], asking: Ruling | None) -> Ruling:
    """Return the strictest ruling of all parts, or of a rule that matches the line as a whole, which the parts can't override."""
    action: Action = next(action for action in _STRICTEST if any(part.action == action for part in parts))
    if asking is None or action == "deny":
        return Ruling(action, next(part.why for part in parts if part.action == action), parts)
    return replace(asking, parts=tuple(replace(part, action="ask", why=asking.why, patterns=(), always=False) for part in parts))


def rule_text(rule: Rule) -> str:
    """Return the description of the rule used in rulings."""
    return f"the rule {rule.tool} {rule.match!r} says {rule.action}"


def rule_json(rule: Rule) -> JsonObject:
    """Return a permission rule with its source location."""
    return {"kind": "rule", "tool": rule.tool, "action": rule.action, "match": rule.match, "always": rule.always, "origin": rule.origin}


def grant_json(grant: Grant) -> JsonObject:
    """Return a permission granted in a conversation."""
    return {"kind": "grant", "action": "allow", **grant.to_json()}


def ruling_json(permissions: Permissions, ruling: Ruling) -> JsonObject:
    """Return what would happen to a call, with the location of the deciding rule."""
    return {
        "action": ruling.action,
        "why": ruling.why,
        "origin": place_of(permissions, ruling.why),
        "parts": list[Json]([{**part.to_json(), "origin": place_of(permissions, part.why)} for part in ruling.parts]),
    }


def place_of(permissions: Permissions, why: str) -> str:
    """Return the location of the rule mentioned in a ruling, or an empty string."""
    return next((rule.origin for rule in permissions.rules if rule_text(rule) in why), "")
