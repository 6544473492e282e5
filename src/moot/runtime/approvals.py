"""Policy: which calls may run, which ask a person, which are denied. Deny goes before ask, ask before allow.

A shell line is decided command by command: it runs only when every command of it may, and one denied command denies the line.
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
from moot.types.approval import Action, AskedPart, Grant
from moot.types.effect import Effect
from moot.types.outside import OutsideCall

__all__ = ["Ruled", "Ruling", "decide", "rule_on", "told"]

_SPLITTERS = Registry("moot.splitters", {"bash": "moot.guard.shell:split"})
"""What takes a line apart brings a parser along, so it is imported when there is a line."""

_STRICTEST: tuple[Action, ...] = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True)
class Ruling:
    """What happens to a call, and why in words."""

    action: Action
    why: str
    parts: tuple[AskedPart, ...] = ()
    """What it was decided about; empty when nobody had to look into it."""


class Ruled(Protocol):
    """What policy has to know of a tool, moot's own or an outside agent's."""

    @property
    def name(self) -> str: ...
    @property
    def effects(self) -> frozenset[Effect]: ...


@dataclass(frozen=True, slots=True)
class _Judge:
    """Rules and grants that may concern a call of the tool."""

    rules: tuple[Rule, ...]
    grants: tuple[Grant, ...]
    fallback: Ruling

    def of(self, action: Action) -> list[Rule]:
        return [rule for rule in self.rules if rule.action == action]

    def judge(self, forbids: Callable[[str], bool], allows: Callable[[str], bool]) -> tuple[Ruling, bool]:
        """The ruling, and whether it may be asked away for longer than one call."""
        for rule in self.of("deny"):
            if forbids(rule.match):
                return Ruling("deny", told(rule)), False
        asking = [rule for rule in self.of("ask") if forbids(rule.match)]
        grant = next((grant for grant in self.grants if allows(grant.match)), None)
        never = next((rule for rule in asking if rule.always == "never"), None)
        if never is not None or (asking and grant is None):
            return Ruling("ask", told(never or asking[0])), never is None
        if grant is not None:
            return Ruling("allow", f"allowed in this conversation: {grant.match}"), True
        allowing = next((rule for rule in self.of("allow") if allows(rule.match)), None)
        return (Ruling("allow", told(allowing)) if allowing else self.fallback), True


def decide(
    permissions: Permissions,
    mode: Mode,
    tool: Ruled,
    subject: str,
    *,
    directory: str = "",
    grants: Iterable[Grant] = (),
    like: str = "",
) -> Ruling:
    """What happens to a call; `subject` is what rules match: a command, a path, a URL. `directory` is where relative paths begin.

    Rules for the tool `like` hold for it too.
    """
    names = ("*", tool.name, like or tool.name)
    judge = _Judge(
        tuple(rule for rule in permissions.rules if rule.tool in names),
        tuple(grant for grant in grants if grant.tool == tool.name),
        _by_mode(mode, tool.effects),
    )
    if "execute" in tool.effects:
        return _line(judge, subject)
    return _plain(judge, subject, directory)


def rule_on(permissions: Permissions, mode: Mode, call: OutsideCall, directory: str, grants: Iterable[Grant]) -> Ruling:
    """What happens to a call of an outside agent: the strictest of what its subjects come to."""
    kept = tuple(grants)
    rulings = [
        decide(permissions, mode, call, subject, directory=directory, grants=kept, like=call.like) for subject in (call.subject, *call.more)
    ]
    action: Action = next(action for action in _STRICTEST if any(ruling.action == action for ruling in rulings))
    parts = tuple(part for ruling in rulings for part in ruling.parts)
    return replace(next(ruling for ruling in rulings if ruling.action == action), parts=parts)


# ── a path, an address, nothing ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _plain(judge: _Judge, subject: str, directory: str) -> Ruling:
    allowed, all_spellings = patterns.spellings(subject, directory)

    def fits(pattern: str, texts: Sequence[str]) -> bool:
        return pattern == patterns.EVERYTHING or any(patterns.fits(text, pattern) for text in texts)

    ruling, lasting = judge.judge(lambda pattern: fits(pattern, all_spellings), lambda pattern: fits(pattern, allowed))
    if ruling.action != "ask":
        return ruling
    wanted = patterns.offers(subject, directory) if lasting else ()
    always = bool(wanted) and ruling is judge.fallback and subject.isascii()
    return replace(ruling, parts=(AskedPart(subject, "ask", ruling.why, wanted, always),))


# ── a shell line ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _line(judge: _Judge, line: str) -> Ruling:
    whole, _ = judge.judge(lambda pattern: pattern == patterns.EVERYTHING, lambda pattern: pattern == patterns.EVERYTHING)
    special = judge.grants or any(rule.match != patterns.EVERYTHING for rule in judge.rules)
    if whole.action == "deny" or not line.strip() or (not special and whole.action != "ask"):
        return whole
    if (denied := _strict(judge, "deny", line)) is not None:
        return denied
    pieces: tuple[Piece, ...] | None = _SPLITTERS.load("bash")(line)
    if pieces is None:
        return _not_understood(judge, whole, line)
    parts = tuple(_part(judge, piece) for piece in pieces)
    met = {rule for rule in judge.of("ask") if any(patterns.forbids(rule.match, piece) for piece in pieces)}
    return _strictest(parts, _strict(replace(judge, rules=tuple(rule for rule in judge.rules if rule not in met)), "ask", line))


def _strict(judge: _Judge, action: Action, line: str) -> Ruling | None:
    """A rule that meets the line as a whole: `rm *` meets `rm x; y`."""
    rule = next((rule for rule in judge.of(action) if rule.match != patterns.EVERYTHING and patterns.fits(line, rule.match)), None)
    return Ruling(action, told(rule)) if rule is not None else None


def _not_understood(judge: _Judge, whole: Ruling, line: str) -> Ruling:
    words = "not understood, so no rule can allow it"
    strict = any(rule.action != "allow" and rule.match != patterns.EVERYTHING for rule in judge.rules)
    if whole.action == "ask" or strict:
        return Ruling("ask", words, (AskedPart(line, "ask", words),))
    return whole


def _part(judge: _Judge, piece: Piece) -> AskedPart:
    if piece.within:  # the part before it is what runs; here only what is forbidden counts
        judge = replace(judge, fallback=Ruling("allow", "run by the part before it"))
    ruling, lasting = judge.judge(lambda pattern: patterns.forbids(pattern, piece), lambda pattern: patterns.allows(pattern, piece))
    if ruling.action == "allow" and (rule := _possible(judge, piece)) is not None:
        ruling, lasting = Ruling("ask", f"may turn out to be something that {told(rule)}"), False
    if ruling.action != "ask":
        return AskedPart(piece.text, ruling.action, ruling.why, within=piece.within)
    wanted, always = patterns.narrowest(piece) if lasting else ((), False)
    why = "; ".join((ruling.why, *piece.leftover))
    return AskedPart(piece.text, "ask", why, wanted, always and ruling is judge.fallback, piece.within)


def _possible(judge: _Judge, piece: Piece) -> Rule | None:
    strict = (rule for rule in judge.rules if rule.action != "allow" and rule.match != patterns.EVERYTHING)
    return next((rule for rule in strict if patterns.could_match(rule.match, piece)), None)


def _strictest(parts: tuple[AskedPart, ...], asking: Ruling | None) -> Ruling:
    """The strictest verdict of all parts, and of a rule that meets only the line as a whole: that one can't be asked away by parts."""
    action: Action = next(action for action in _STRICTEST if any(part.action == action for part in parts))
    if asking is None or action == "deny":
        return Ruling(action, next(part.why for part in parts if part.action == action), parts)
    return replace(asking, parts=tuple(replace(part, action="ask", why=asking.why, patterns=(), always=False) for part in parts))


def told(rule: Rule) -> str:
    """The rule as rulings name it."""
    return f"the rule {rule.tool} {rule.match!r} says {rule.action}"


def _by_mode(mode: Mode, effects: frozenset[Effect]) -> Ruling:
    beyond = {effect for effect in effects if effect != "read"}
    if not beyond or mode == "auto" or (mode == "edits" and beyond == {"write"}):
        return Ruling("allow", f"mode {mode}")
    return Ruling("deny" if mode == "plan" else "ask", f"mode {mode}")
