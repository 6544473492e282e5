"""Suggest permission rules for shell commands that a person has allowed repeatedly."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from moot.config.settings import Permissions, Rule
from moot.features.approvals import object_of
from moot.guard.commands.wrappers import reads_commands
from moot.runtime.approvals import patterns
from moot.runtime.approvals.policy import Ruled, Ruling, decide, pieces_of
from moot.tools.catalogue import provided_tool
from moot.tools.schema import access_of, subject_in
from moot.types.agent import Mode
from moot.types.approval import Approval
from moot.types.canonical import JsonObject
from moot.types.store import Store
from moot.types.token import LOCAL_USER

TIMES = 3
"""Minimum number of times that commands must have been allowed before a rule is suggested."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's decision about a command line."""

    tool: Ruled
    line: str
    directory: str
    """The conversation's folder."""
    allowed: bool


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An allow rule for command lines that were allowed and never denied."""

    tool: str
    match: str
    allowed: int
    """Number of times that these lines were allowed."""
    example: str
    """The line that was allowed most often."""

    def to_json(self) -> JsonObject:
        return {"tool": self.tool, "match": self.match, "allowed": self.allowed, "example": self.example}


async def past_decisions(store: Store) -> list[Decision]:
    """Return the local user's decisions about command lines, oldest first."""
    own = store.of(LOCAL_USER)
    directories: dict[str, str] = {}
    found: list[Decision] = []
    for approval in await own.records.approvals(open_only=False):
        decided = _decided(approval)
        if decided is None:
            continue
        if approval.run not in directories:
            run = await own.records.run(approval.run)
            directories[approval.run] = (await own.conversations.get(run.conversation)).directory
        found.append(Decision(*decided[:2], directories[approval.run], decided[2]))
    return found


def _decided(approval: Approval) -> tuple[Ruled, str, bool] | None:
    """Return the tool, the command line, and whether it was allowed, or None if this is not a person's decision about a command line."""
    answer, outside = approval.answer, approval.outside
    if answer is None or approval.questions is not None or answer.answered_by == "moot":
        return None
    allowed = answer.approved and answer.arguments is None  # a line that the person changed before allowing it was not itself allowed
    if outside is not None:
        whole = "execute" in outside.effects and not outside.more
        return (outside, outside.subject.strip(), allowed) if whole and outside.subject.strip() else None
    if approval.tool != "shell":
        return None
    arguments = object_of(approval.arguments)
    line = subject_in(arguments).strip()
    if not line or (allowed and access_of(arguments) != "sandbox"):  # leaving the sandbox is always allowed for one call only
        return None
    return provided_tool(approval.tool), line, allowed


def suggest(permissions: Permissions, decisions: Iterable[Decision]) -> list[Suggestion]:
    """Return rules for the lines that were allowed often and never denied, most useful rules first.

    A rule contains a wildcard only if, in every line, the words that match the wildcard are in the table of safe options.
    """
    by_tool: defaultdict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        by_tool[decision.tool.name].append(decision)
    found = [each for tool, past in by_tool.items() for each in _Past(permissions, tool, past).suggestions()]
    return sorted(found, key=lambda each: (-each.allowed, each.tool, each.match))


class _Past:
    """The decisions about calls of one tool."""

    def __init__(self, permissions: Permissions, tool: str, decisions: Sequence[Decision]) -> None:
        self._permissions = permissions
        self._tool = tool
        self._denied = [decision for decision in decisions if not decision.allowed]
        self._exact: defaultdict[str, list[Decision]] = defaultdict(list)
        """The decisions that allowed a line, keyed by the exact rule that covers the line."""
        self._wider: defaultdict[str, list[str]] = defaultdict(list)
        """Exact rules, keyed by the wildcard pattern that could replace them."""
        offered: dict[Decision, tuple[str, ...]] = {}
        for decision in decisions:
            if not decision.allowed:
                continue
            if decision not in offered:
                offered[decision] = self._offered(decision)
            exact, *more = offered[decision] or ("",)
            if not exact:
                continue
            if more and exact not in self._exact:
                self._wider[more[-1]].append(exact)
            self._exact[exact].append(decision)

    def suggestions(self) -> list[Suggestion]:
        found: list[Suggestion] = []
        for wide, exact in self._wider.items():
            if len(exact) > 1:
                self._add(found, _narrowed(wide, exact), [decision for each in exact for decision in self._exact[each]])
        for each, decisions in self._exact.items():
            self._add(found, each, decisions)
        return found

    def _add(self, found: list[Suggestion], match: str, decisions: Sequence[Decision]) -> None:
        """Add a rule if it is needed, covers all of these lines, and covers no denied line."""
        rule = Rule(self._tool, "allow", match)
        different = dict.fromkeys(decisions)
        if len(decisions) < TIMES or "${" in match or all(self._ruling(each).action == "allow" for each in different):
            return
        if any(self._ruling(each, rule).action != "allow" for each in different):
            return
        if any(self._ruling(each, rule).action == "allow" for each in self._denied):
            return
        self._permissions = replace(self._permissions, rules=(*self._permissions.rules, rule))
        example, _ = Counter(decision.line for decision in decisions).most_common(1)[0]
        found.append(Suggestion(self._tool, match, len(decisions), example))

    def _offered(self, decision: Decision) -> tuple[str, ...]:
        """Return the patterns of possible rules for a line, the exact pattern first.

        Return none if no rule is needed or should be suggested.

        No rule is suggested for lines that need approval even in mode `auto`, because they contain a protected file or an `ask` rule
        covers them. The same applies to lines that make a shell read commands from elsewhere, because those commands can change.
        """
        ruling = self._ruling(decision)
        asking = [part for part in ruling.parts if part.action == "ask"]
        if ruling.action != "ask" or not asking or self._ruling(decision, mode="auto").action != "allow":
            return ()
        if not all(part.always and part.patterns for part in asking) or any(map(reads_commands, pieces_of(decision.line) or ())):
            return ()
        exact = {part.patterns[0] for part in asking}
        first = asking[0].patterns
        if len(exact) > 1 or not patterns.is_exact(first[0]):
            return ()
        return first if len(asking) == 1 else first[:1]

    def _ruling(self, decision: Decision, *more: Rule, mode: Mode = "ask") -> Ruling:
        permissions = replace(self._permissions, rules=(*self._permissions.rules, *more))
        return decide(permissions, mode, decision.tool, decision.line, directory=decision.directory)


def _narrowed(wide: str, exact: Iterable[str]) -> str:
    """Return a pattern with a wildcard after all the words that the exact patterns have in common at the start."""
    columns = zip(*(patterns.literal(each).split(" ") for each in exact), strict=False)
    narrow = " ".join(words[0] for words in takewhile(lambda words: len(set(words)) == 1, columns))
    if "'" in narrow or len(narrow) < len(patterns.literal(wide).rstrip()):
        return wide
    return f"{patterns.exact(narrow)} *"
