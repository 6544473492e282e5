"""Session files as conversations: the tree of lines is divided into one message for each prompt and one for its answer.

Each line is converted using only the lines before it, so a file that has grown gives the same messages, some of them longer. Memory holds
one number for each line of the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moot.convert.claude_session import EXACTLY, Answer
from moot.formats._source.drafts import NOWHERE, Draft, Drafts
from moot.formats._source.fields import milliseconds
from moot.formats._source.lines import Line
from moot.formats.claude._about import About
from moot.formats.claude._kinds import ENTRY_TYPES, PART, asked_aside, prompt_of, results_of, written_as
from moot.formats.claude._sidechains import Sidechains
from moot.types.canonical import JsonObject
from moot.types.format import Entry, ImportedFacts, ImportedRecord

__all__ = ["Session"]

_TITLES = frozenset({"custom-title", "ai-title", "summary"})


class Session:
    """A reader of one session."""

    def __init__(self, agent: str, sidechains: Sidechains | None = None) -> None:
        self._agent = agent
        self._sidechains = sidechains
        """Receives the lines of sub-agents. None if the lines themselves belong to a sub-agent."""
        self._about = About()
        self._drafts = Drafts(Answer)
        self._places: dict[int, int] = {}
        """Line of the tree → index of its message."""
        self._calls: dict[str, int] = {}
        """Call without an output → index of its message."""
        self._written: dict[str, int] = {}
        """Id of a moot message → its index."""
        self._tail = NOWHERE

    def entries(self, lines: Iterable[Line]) -> Iterator[Entry]:
        """Yield the entries of the lines. Facts about the conversation follow its first message and the end."""
        told = False
        for line in lines:
            yield from self._take(line)
            yield from self._drafts.finished()
            if not told and len(self._drafts) > 1:
                told = True
                yield self._facts()
        yield from self._drafts.finished(all=True)
        yield self._facts()

    def _facts(self) -> ImportedFacts:
        drafts = self._drafts
        summary = next((said for leaf, said in reversed(self._about.summaries.items()) if leaf in self._places), "")
        return self._about.facts(drafts.fidelity(), drafts.model, summary, self._agent)

    # ── lines ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _take(self, line: Line) -> Iterator[ImportedRecord]:
        value = line.value
        if value is None:
            self._drafts.lost["records"] += 1
            yield ImportedRecord(line.raw, problem=line.problem)
            return
        kind, uuid = value.get("type"), value.get("uuid")
        if self._sidechains is not None and value.get("isSidechain") is True:
            self._sidechains.take(line.offset, value)
            return
        if kind == PART and written_as(value):
            self._moot_line(line, value)
            return
        if kind not in ENTRY_TYPES or not isinstance(uuid, str) or not uuid:
            kept = self._outside_tree(line, value)
        elif hash(uuid) in self._places:
            self._drafts.approximated["records"] += 1  # some versions repeated lines when they resumed a session
            yield ImportedRecord(line.raw, value)
            return
        else:
            kept = self._in_tree(line, value, uuid)
        if not kept:
            self._drafts.kept["records"] += 1
            yield ImportedRecord(line.raw, value)

    def _in_tree(self, line: Line, value: JsonObject, uuid: str) -> bool:
        """Read a line of the tree. Return whether it belongs to a message."""
        parent = value.get("parentUuid") or value.get("logicalParentUuid")
        place = self._place_of(parent)
        at = milliseconds(value, "timestamp")
        self._about.learn(value, at)
        match value["type"]:
            case "assistant":
                draft = self._assistant(line, value, uuid, place, at)
            case "user":
                draft = self._user(line, value, uuid, place, at)
            case _:
                draft = self._event(line, value, uuid, place)
        if draft is not None:
            place = draft.place
        self._places[hash(uuid)] = place
        if place != NOWHERE:
            self._tail = place
            if (held := self._drafts.get(place)) is not None:
                held.last = hash(uuid)
        return draft is not None

    def _place_of(self, parent: object) -> int:
        """Return the index of the parent message. A line with an unknown parent follows the previous line."""
        if not isinstance(parent, str):
            return NOWHERE
        found = self._places.get(hash(parent))
        if found is None:
            self._drafts.approximated["branches"] += 1
            return self._tail
        return found

    def _assistant(self, line: Line, value: JsonObject, uuid: str, place: int, at: int) -> Draft[Answer]:
        ours = written_as(value)
        draft = self._drafts.answer(self._written.get(ours, NOWHERE) if ours else place)
        if not ours and draft is None and (known := self._drafts.answer_to(place)) is not None and not known.answer.begins_step(value):
            draft = known
        if draft is None or (draft.is_full() and draft.answer.begins_step(value)):
            draft = self._drafts.begin(uuid, place, at, None, hash(value.get("parentUuid")))
            if ours:
                self._written[ours] = draft.place
        draft.grow(line.raw)
        for id in draft.answer.said(value, at):
            self._calls[id] = draft.place
        if self._sidechains is not None:
            for call, prompt in asked_aside(value):
                self._sidechains.asked(call, prompt)
        self._about.head = draft.id
        return draft

    def _user(self, line: Line, value: JsonObject, uuid: str, place: int, at: int) -> Draft[Answer] | None:
        if results := results_of(value):
            return self._outputs(line, value, results, at)
        if parts := prompt_of(value):
            draft = self._drafts.begin(uuid, place, at, parts, hash(value.get("parentUuid")))
            draft.role = "system" if _is_system(value) else "user"
            self._about.ask(parts if draft.role == "user" else ())
            self._about.head = uuid
        else:  # a summary or an interruption
            draft = self._drafts.answer(place) if value.get("isMeta") is not True else None
        if draft is not None:
            draft.grow(line.raw)
        return draft

    def _outputs(self, line: Line, value: JsonObject, results: list[JsonObject], at: int) -> Draft[Answer] | None:
        """Return the message of the answered call, wherever it is in the tree: calls run in parallel."""
        found: Draft[Answer] | None = None
        for block in results:
            id = str(block.get("tool_use_id"))
            draft = self._drafts.get(self._calls.pop(id, None))
            if draft is None or not draft.answer.output(block, value, at):
                self._drafts.approximated["tool calls"] += 1
                continue
            if self._sidechains is not None:
                self._sidechains.answered(id, value)
            found = draft
        if found is not None:
            found.grow(line.raw)
        return found

    def _event(self, line: Line, value: JsonObject, uuid: str, place: int) -> Draft[Answer] | None:
        """Return the message that the line belongs to, if it is a context summary or a prompt sent while the agent was working."""
        if written_as(value):
            return self._assistant(line, value, uuid, place, 0)
        draft = self._drafts.answer(place)
        told = value.get("attachment")
        if draft is None:
            return None
        if value.get("subtype") == "compact_boundary":
            draft.answer.note(value)
        elif isinstance(told, dict) and told.get("type") == "queued_command" and told.get("commandMode", "prompt") == "prompt":
            parts = prompt_of({"message": {"content": told.get("prompt")}, "isMeta": told.get("isMeta")})
            if not parts:
                return None
            draft.answer.steered(uuid, parts)
        else:
            return None
        draft.grow(line.raw)
        return draft

    def _moot_line(self, line: Line, value: JsonObject) -> None:
        """Read a line that moot wrote for a part."""
        draft = self._assistant(
            line, value, f"{written_as(value)}-{line.number}", self._place_of(value.get("parent")), milliseconds(value, "timestamp")
        )
        self._tail = draft.place

    def _outside_tree(self, line: Line, value: JsonObject) -> bool:
        """Read a line outside the tree. Return whether it belongs to a message."""
        if value.get("type") in _TITLES:
            self._about.name(value)
        total_dollars = value.get("totalCostUSD")
        if value.get("type") != "cost-state" or not isinstance(total_dollars, int | float) or isinstance(total_dollars, bool):
            return False
        before, self._about.dollars = self._about.dollars, float(total_dollars)
        draft = self._drafts.answer(self._tail)
        if draft is None or value.get("hasUnknownModelCost") is True or not 0 <= total_dollars - before < 1e6:
            return False
        draft.answer.cost(round((total_dollars - before) * 1e9))
        draft.grow(line.raw)
        return True


def _is_system(value: JsonObject) -> bool:
    mark = value.get(EXACTLY)
    return isinstance(mark, dict) and mark.get("role") == "system"
