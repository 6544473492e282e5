"""The policy, which decides whether a call may run, needs approval or is denied. Deny takes precedence over ask, ask over allow.

A shell line is checked command by command. It runs only if every command may run, and one denied command denies the whole line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from moot.config.settings import Permissions, Rule
from moot.guard.commands.coverage import is_harmless
from moot.guard.commands.wrappers import Piece, hides, is_destructive
from moot.guard.protected import may_name_one, protection
from moot.plugins import Registry
from moot.runtime.approvals import patterns
from moot.types.agent import Mode
from moot.types.approval import Action, ApprovalPart, Effect, Grant, OutsideCall
from moot.types.canonical import Json, JsonObject

_SPLITTERS = Registry("moot.splitters", {"bash": "moot.guard.shell:split"})
"""Imported lazily by name, because splitting a line needs a parser."""

CONFIGURES = "changes moot's configuration, which needs approval in every mode"

_STRICTEST: tuple[Action, ...] = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True)
class Ruling:
    """A decision about a call, and the reason."""

    action: Action
    why: str
    parts: tuple[ApprovalPart, ...] = ()
    """The parts of the call that were checked. Empty if no check was necessary."""


class Ruled(Protocol):
    """The facts that the policy needs about one of moot's tools or an outside agent's tool."""

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
    edits: bool = False
    """True if the mode `edits` would allow a call for which the fallback is to ask."""
    directory: str = ""
    home: str = ""

    def of(self, action: Action) -> list[Rule]:
        return [rule for rule in self.rules if rule.action == action]

    def judge(self, forbids: Callable[[str], bool], allows: Callable[[str], bool]) -> tuple[Ruling, bool]:
        """Return the ruling, and whether a permission for more than one call can be granted."""
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

    def spells(self, *texts: str) -> bool:
        """Return whether an allow rule or a grant without wildcards equals one of the texts."""
        allowing = (*(rule.match for rule in self.of("allow")), *(grant.match for grant in self.grants))
        return any(patterns.literal(pattern) in texts and patterns.is_exact(pattern) for pattern in allowing)

    def protection(self, names: Iterable[str]) -> str:
        """Return why one of the paths needs approval in every mode, or an empty string if none does."""
        for name in names:
            if found := protection(name, self.directory, self.home):
                return f"{name!r} is protected ({found})" if found.casefold() not in name.casefold() else f"{name!r} is protected"
        return ""


def decide(
    permissions: Permissions, mode: Mode, tool: Ruled, subject: str, *, directory: str = "", grants: Iterable[Grant] = (), like: str = ""
) -> Ruling:
    """Return the ruling on a call.

    Rules match `subject`: a command, path or URL. `directory` is the base of relative paths. Rules for the tool `like` apply too.
    """
    names = ("*", tool.name, like or tool.name)
    beyond = {effect for effect in tool.effects if effect != "read"}
    # in mode plan, sub-agents are in mode plan too
    allowed = not beyond or mode == "auto" or (mode == "edits" and beyond == {"write"}) or (mode == "plan" and beyond == {"delegate"})
    if "configure" in tool.effects:
        return _configuring(_Judge(tuple(rule for rule in permissions.rules if rule.tool in names), (), Ruling("ask", CONFIGURES)), mode)
    judge = _Judge(
        tuple(rule for rule in permissions.rules if rule.tool in names),
        tuple(grant for grant in grants if grant.tool == tool.name),
        Ruling("allow" if allowed else "deny" if mode == "plan" else "ask", f"mode {mode}"),
        mode == "ask" and beyond == {"write"},
        directory,
        permissions.home,
    )
    if "execute" in tool.effects:
        return _line(judge, subject)
    if "delegate" in tool.effects:  # the subject is the name of an agent, not a path
        return _combined([_plain(judge, agent, "", writes=False) for agent in subject.split(", ")])
    return _plain(judge, subject, directory, writes="write" in tool.effects)


def _configuring(judge: _Judge, mode: Mode) -> Ruling:
    """Return the ruling on a change to moot's configuration: a person decides on each change. Allow rules don't apply."""
    ruling, _ = judge.judge(lambda pattern: pattern == patterns.EVERYTHING, lambda _: False)
    if ruling.action == "deny" or mode == "plan":
        return ruling if ruling.action == "deny" else Ruling("deny", "mode plan")
    return replace(ruling, parts=(ApprovalPart("", "ask", ruling.why),))


def rule_on(permissions: Permissions, mode: Mode, call: OutsideCall, directory: str, grants: Iterable[Grant]) -> Ruling:
    """Return the strictest ruling on all subjects of an outside agent's call."""
    all_grants = tuple(grants)
    rulings = [
        decide(permissions, mode, call, subject, directory=directory, grants=all_grants, like=call.like)
        for subject in (call.subject, *call.more)
    ]
    return _combined(rulings)


def _combined(rulings: Sequence[Ruling]) -> Ruling:
    """Return the strictest of several rulings on one call, with the parts of all of them."""
    action: Action = next(action for action in _STRICTEST if any(ruling.action == action for ruling in rulings))
    parts = tuple(part for ruling in rulings for part in ruling.parts)
    return replace(next(ruling for ruling in rulings if ruling.action == action), parts=parts)


# ── paths, URLs, or no subject ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _plain(judge: _Judge, subject: str, directory: str, *, writes: bool) -> Ruling:
    allowed, all_spellings = patterns.spellings(subject, directory)

    def fits(pattern: str, texts: Sequence[str]) -> bool:
        return pattern == patterns.EVERYTHING or any(patterns.fits(text, pattern) for text in texts)

    ruling, lasting = judge.judge(lambda pattern: fits(pattern, all_spellings), lambda pattern: fits(pattern, allowed))
    why = judge.protection([subject]) if writes and subject and "://" not in subject and ruling.action != "deny" else ""
    if why and not judge.spells(*allowed):
        return Ruling("ask", why, (ApprovalPart(subject, "ask", why, patterns.offers(subject, directory)[:1] if lasting else ()),))
    if ruling.action != "ask":
        return ruling
    wanted = patterns.offers(subject, directory) if lasting else ()
    always = bool(wanted) and ruling is judge.fallback and subject.isascii()
    edits = judge.edits and ruling is judge.fallback
    return replace(ruling, parts=(ApprovalPart(subject, "ask", ruling.why, wanted, always, edits=edits),))


# ── shell lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _line(judge: _Judge, line: str) -> Ruling:
    whole, _ = judge.judge(lambda pattern: pattern == patterns.EVERYTHING, lambda pattern: pattern == patterns.EVERYTHING)
    special = judge.grants or any(rule.match != patterns.EVERYTHING for rule in judge.rules)
    guarded = may_name_one(line, judge.home)
    if whole.action == "deny" or not line.strip() or (not special and not guarded and whole.action != "ask"):
        return whole
    if (denied := _strict(judge, "deny", line)) is not None:
        return denied
    pieces = pieces_of(line)
    hidden = pieces is None or any(map(hides, pieces))
    if hidden and whole.action == "allow" and (named := _named(judge, line, pieces or ())) is not None:
        return Ruling(named.action, f"{rule_text(named)}, and what the line runs can't be determined", _unresolved(line, named))
    if pieces is None:
        strict = any(rule.action != "allow" and rule.match != patterns.EVERYTHING for rule in judge.rules)
        if whole.action != "ask" and not strict and not judge.protection(patterns.tokens(line)):
            return whole
        why = "can't be parsed, so no rule can allow it; it can only be allowed once"
        return Ruling("ask", why, (ApprovalPart(line, "ask", why),))
    parts = tuple(_part(judge, piece, line.strip(), pieces) for piece in pieces)
    met = {rule for rule in judge.of("ask") if any(patterns.forbids(rule.match, piece) for piece in pieces)}
    return _strictest(parts, _strict(replace(judge, rules=tuple(rule for rule in judge.rules if rule not in met)), "ask", line))


def pieces_of(line: str) -> tuple[Piece, ...] | None:
    """Return every command of a shell line; None if the line can't be parsed."""
    return _SPLITTERS.load("bash")(line)


def destructive_commands(line: str) -> list[str]:
    """Return the commands of a shell line that can destroy data or change the system, as written in the line."""
    return [piece.text for piece in pieces_of(line) or () if is_destructive(piece.known)]


def _named(judge: _Judge, line: str, pieces: Sequence[Piece]) -> Rule | None:
    """Return the strictest deny or ask rule whose words occur in a line whose commands can't be determined."""
    strict = (rule for action in _STRICTEST[:2] for rule in judge.of(action) if rule.match != patterns.EVERYTHING)
    return next((rule for rule in strict if patterns.names_words(rule.match, line, pieces)), None)


def _unresolved(line: str, rule: Rule) -> tuple[ApprovalPart, ...]:
    return (ApprovalPart(line, rule.action, f"{rule_text(rule)}, and what the line runs can't be determined"),)


def _strict(judge: _Judge, action: Action, line: str) -> Ruling | None:
    """Return a ruling if a rule matches the line as a whole: `rm *` matches `rm x; y`."""
    rule = next((rule for rule in judge.of(action) if rule.match != patterns.EVERYTHING and patterns.fits(line, rule.match)), None)
    return Ruling(action, rule_text(rule)) if rule is not None else None


def _part(judge: _Judge, piece: Piece, line: str, pieces: Sequence[Piece]) -> ApprovalPart:
    if piece.within:  # run by the previous part, so only denials count here
        judge = replace(judge, fallback=Ruling("allow", "run by the part before it"))

    def allows(pattern: str) -> bool:
        return patterns.allows(pattern, piece) or patterns.allows_line(pattern, line, pieces)

    ruling, lasting = judge.judge(lambda pattern: patterns.forbids(pattern, piece), allows)
    strict = (rule for rule in judge.rules if rule.action != "allow" and rule.match != patterns.EVERYTHING)
    possible = (rule for rule in strict if patterns.could_match(rule.match, piece, line))
    if ruling.action == "allow" and (rule := next(possible, None)) is not None:
        ruling, lasting = Ruling("ask", f"may turn out to be a command for which {rule_text(rule)}"), False
    why = _protection(judge, piece) if ruling.action != "deny" else ""
    if ruling.action == "allow" and why and not judge.spells(line, piece.spelled):
        ruling = Ruling("ask", why)
    if ruling.action != "ask":
        return ApprovalPart(piece.text, ruling.action, ruling.why, within=piece.within)
    wanted, always = patterns.offered(piece, line, pieces) if lasting else ((), False)
    reasons = "; ".join((ruling.why, *piece.leftover, *(() if wanted else ("it can only be allowed once",))))
    return ApprovalPart(piece.text, "ask", reasons, wanted, always and ruling is judge.fallback and not why, piece.within)


def _protection(judge: _Judge, piece: Piece) -> str:
    """Return why the command may write to a protected file, or an empty string if it names none or only reads."""
    writes = [part for reason in piece.leftover if reason.startswith("writes") for part in patterns.tokens(reason.partition(": ")[2])]
    if not writes and piece.certain and is_harmless(piece.known, piece.open_words):
        return ""
    words = [part for word in piece.words if word for part in (word, *patterns.tokens(word))]
    return judge.protection([*words, *writes, *(() if piece.certain else patterns.tokens(piece.text))])


def _strictest(parts: tuple[ApprovalPart, ...], asking: Ruling | None) -> Ruling:
    """Return the strictest ruling on the parts.

    Unless it denies the call, it is replaced by `asking`, the ruling of a rule on the whole line.
    """
    action: Action = next(action for action in _STRICTEST if any(part.action == action for part in parts))
    if asking is None or action == "deny":
        return Ruling(action, next(part.why for part in parts if part.action == action), parts)
    return replace(asking, parts=tuple(replace(part, action="ask", why=asking.why, patterns=(), always=False) for part in parts))


def rule_text(rule: Rule) -> str:
    """Return the description of a rule for use in rulings."""
    return f"the rule {rule.tool} {rule.match!r} says {rule.action}"


def rule_json(rule: Rule) -> JsonObject:
    """Return a permission rule with its source location."""
    return {"kind": "rule", "tool": rule.tool, "action": rule.action, "match": rule.match, "always": rule.always, "origin": rule.origin}


def grant_json(grant: Grant) -> JsonObject:
    """Return a permission granted in a conversation."""
    return {"kind": "grant", "action": "allow", **grant.to_json()}


def ruling_json(permissions: Permissions, ruling: Ruling) -> JsonObject:
    """Return a ruling as JSON, with the location of the deciding rule."""
    return {
        "action": ruling.action,
        "why": ruling.why,
        "origin": place_of(permissions, ruling.why),
        "parts": list[Json]([{**part.to_json(), "origin": place_of(permissions, part.why)} for part in ruling.parts]),
    }


def place_of(permissions: Permissions, why: str) -> str:
    """Return the location of the rule mentioned in a ruling, or an empty string."""
    return next((rule.origin for rule in permissions.rules if rule_text(rule) in why), "")
