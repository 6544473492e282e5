"""Conversion of session files to conversations. The tree of lines is divided into one message for each prompt and one for its answer.

Each line is converted using only the lines before it. So when a file grows, its earlier messages stay the same or get longer. Little
memory is needed: one number for each line of the tree.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from moot.convert.agents.claude_session import EXACTLY, ClaudeMessage
from moot.formats.agents.claude.lines import ENTRY_TYPES, PART, delegated_prompts, moot_message_of, prompt_of, results_of, text_of_line
from moot.formats.kit.answers import NO_PARENT, Draft, Drafts
from moot.formats.kit.documents import Line, lines_containing
from moot.formats.kit.fields import at, milliseconds, objects, text
from moot.formats.kit.files import read_head
from moot.types.canonical import JsonObject, empty, loads_object
from moot.types.format import Entry, Fidelity, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_of

_FACTS = (("version", "agent_version"), ("gitBranch", "git_branch"), ("entrypoint", "entrypoint"))
_SUMMARIES = 1000
_TITLE = 80


@dataclass(slots=True)
class SessionFacts:
    """The title, directory, cost and other facts that are known about a session so far."""

    directory: str = ""
    created_at: int = 0
    updated_at: int = 0
    head: str | None = None
    dollars: float = 0.0
    """Cost in dollars, taken from the newest line that contains it."""
    named: str = ""
    """Title chosen by the user, or else by the agent."""
    by_person: bool = False
    first_prompt: str = ""
    """Beginning of the first prompt."""
    summaries: dict[int, str] = field(default_factory=dict[int, str])
    """Hash of a line's id → summary of the session that ends with this line. Some files start with summaries of other sessions."""
    metadata: JsonObject = field(default_factory=empty)

    def learn(self, line: JsonObject, at: int) -> None:
        """Read the session's facts from the fields that every line of the tree has."""
        self.created_at = self.created_at or at
        if at > self.updated_at:
            self.updated_at = at
        if not self.directory and isinstance(found := line.get("cwd"), str):
            self.directory = found
        for name, ours in _FACTS:
            if fact := text(line, name):
                self.metadata[ours] = fact
        if isinstance(session := line.get("sessionId"), str):
            self.metadata["session_id"] = session

    def ask(self, parts: tuple[Part, ...]) -> None:
        """Use the first prompt that contains text as a fallback title."""
        if not self.first_prompt:
            self.first_prompt = " ".join(text_of(parts)[: 4 * _TITLE].split())[:_TITLE]

    def name(self, line: JsonObject) -> None:
        """Read a line that contains a title."""
        match line.get("type"), line.get("leafUuid"):
            case "custom-title", _ if isinstance(title := line.get("customTitle"), str) and title:
                self.named, self.by_person = title, True
            case "ai-title", _ if isinstance(title := line.get("aiTitle"), str) and title.strip() and not self.by_person:
                self.named = title.strip()
            case "summary", str() as leaf if isinstance(title := line.get("summary"), str) and title.strip():
                self.summaries[hash(leaf)] = title.strip()
                if len(self.summaries) > _SUMMARIES:
                    del self.summaries[next(iter(self.summaries))]
            case _:
                pass

    def facts(self, fidelity: Fidelity, model: str, summary: str, agent: str) -> ImportedFacts:
        """Return all facts known so far."""
        return ImportedFacts(
            fidelity,
            title=self.named or summary or self.first_prompt,
            head=self.head,
            directory=self.directory,
            agent=agent,
            model=model,
            created_at=self.created_at,
            updated_at=self.updated_at,
            metadata=dict(self.metadata),
        )


@dataclass(slots=True)
class Sidechain:
    """A sub-agent whose lines are in its parent's session file."""

    id: str
    agent: str
    prompt: int
    """Hash of the sub-agent's prompt."""
    offsets: array[int] = field(default_factory=lambda: array("Q"))


class Sidechains:
    """All sub-agents whose lines are in one session file."""

    def __init__(self) -> None:
        self.found: list[Sidechain] = []
        self._lines: dict[int, int] = {}
        self._agents: dict[str, int] = {}
        self._asked: dict[int, list[str]] = {}
        self._answered: dict[str, str] = {}

    def take(self, offset: int, value: JsonObject) -> None:
        """Assign a line to the sub-agent whose id it contains, or else to the sub-agent of its parent line, or else to a new sub-agent."""
        uuid, parent, agent = value.get("uuid"), value.get("parentUuid"), value.get("agentId")
        number = self._agents.get(agent) if isinstance(agent, str) else None
        if number is None and isinstance(parent, str):
            number = self._lines.get(hash(parent))
        if number is None:
            number = len(self.found)
            name = agent if isinstance(agent, str) else ""
            id = f"agent-{name}" if name else uuid if isinstance(uuid, str) and uuid else f"side-{number}"
            if any(known.id == id for known in self.found):
                id = f"{id}#{number}"
            self.found.append(Sidechain(id, name, hash(text_of_line(value))))
            if name:
                self._agents[name] = number
        if isinstance(uuid, str):
            self._lines.setdefault(hash(uuid), number)
        self.found[number].offsets.append(offset)

    def asked(self, call: str, prompt: str) -> None:
        """Record the prompt of a call that starts a sub-agent."""
        self._asked.setdefault(hash(prompt), []).append(call)

    def answered(self, call: str, line: JsonObject) -> None:
        """Record the output of a call. The output may contain the id of the call's sub-agent."""
        if isinstance(agent := at(line, "toolUseResult", "agentId"), str):
            self._answered[agent] = call

    def call_of(self, sidechain: Sidechain) -> str | None:
        """Return the call that started the sub-agent, or None if it is unknown."""
        if (call := self._answered.get(sidechain.agent)) is not None:
            return call
        calls = self._asked.get(sidechain.prompt)
        return calls.pop(0) if calls else None


_TRIES = 20
_NOTE = 1 << 20


def call_that_began(path: Path, session: str) -> str | None:
    """Return the id of the call that started a sub-agent, as found in its metadata file or in the parent session's file, or None."""
    note = _object(read_head(path.with_suffix(".meta.json"), _NOTE, links=False))
    if isinstance(call := note.get("toolUseId"), str) and call:
        return call
    agent = path.stem.removeprefix("agent-")
    folders = [folder for folder in path.parents[:6] if folder.name == session]
    beside = [path.with_name(f"{session}.jsonl")] if session == Path(session).name else []  # the id comes from the file
    files = (*(folder.with_suffix(".jsonl") for folder in folders), *beside)
    needle = b'"agentId":"%s"' % os.fsencode(agent)
    lines = (line for file in files for line in islice(lines_containing(file, needle), _TRIES))
    return next((call for line in lines if (call := _call_of(_object(line), agent))), None)


def _object(data: bytes) -> JsonObject:
    try:
        return loads_object(data)
    except ValueError:
        return {}


def _call_of(line: JsonObject, agent: str) -> str | None:
    """Return the call whose output contains the agent's id."""
    if at(line, "toolUseResult", "agentId") != agent:
        return None
    calls = (block.get("tool_use_id") for block in objects(line, "message", "content"))
    return next((call for call in calls if isinstance(call, str)), None)


_TITLES = frozenset({"custom-title", "ai-title", "summary"})
_LINE = 200
"""Number of bytes in memory for each line, approximately."""


class SessionReader:
    """Reader that converts the lines of one session file to messages."""

    def __init__(self, agent: str, sidechains: Sidechains | None = None) -> None:
        self._agent = agent
        self._sidechains = sidechains
        """Collects the lines of sub-agents. None if the session itself belongs to a sub-agent."""
        self._about = SessionFacts()
        self._drafts = Drafts(ClaudeMessage)
        self._places: dict[int, int] = {}
        """Hash of the id of a line in the tree → index of the message that the line belongs to."""
        self._calls: dict[str, int] = {}
        """Id of a tool call that has no output → index of its message."""
        self._written: dict[str, int] = {}
        """Id in moot of a message that moot exported → index of the message."""
        self._tail = NO_PARENT
        self._told = False

    @property
    def size(self) -> int:
        return self._drafts.size + _LINE * len(self._places)

    def entries(self, lines: Iterable[Line]) -> Iterator[Entry]:
        """Yield the entries read from the lines. Facts about the conversation are yielded after its first message and at the end."""
        yield from self.take(lines)
        yield from self.rest()

    def take(self, lines: Iterable[Line]) -> Iterator[Entry]:
        for line in lines:
            yield from self._take(line)
            yield from self._drafts.finished()
            if not self._told and len(self._drafts) > 1:
                self._told = True
                yield self._facts()

    def rest(self, tail: Line | None = None) -> Iterator[Entry]:
        counts = self._drafts.counts()
        if tail is not None:
            self._drafts.lost["records"] += 1
            yield ImportedRecord(tail.raw, problem=tail.problem)
        yield from self._drafts.growing()
        yield self._facts()
        self._drafts.reset(counts)

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
        kind, uuid = text(value, "type"), value.get("uuid")
        if self._sidechains is not None and value.get("isSidechain") is True:
            self._sidechains.take(line.offset, value)
            return
        if kind == PART and moot_message_of(value):
            self._moot_line(line, value)
            return
        if kind not in ENTRY_TYPES or not isinstance(uuid, str) or not uuid:
            kept = self._outside_tree(line, value)
        elif hash(uuid) in self._places:
            self._drafts.approximated["records"] += 1  # some versions repeated lines when they resumed a session
            yield ImportedRecord(line.raw)
            return
        else:
            kept = self._in_tree(line, value, uuid)
        if not kept:
            self._drafts.kept["records"] += 1
            yield ImportedRecord(line.raw, value)

    def _in_tree(self, line: Line, value: JsonObject, uuid: str) -> bool:
        """Read a line of the session's tree. Return whether it belongs to a message."""
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
        if place != NO_PARENT:
            self._tail = place
            if (held := self._drafts.get(place)) is not None:
                held.last = hash(uuid)
        return draft is not None

    def _place_of(self, parent: object) -> int:
        """Return the index of the parent message. A line with an unknown parent is assumed to follow the previous line."""
        if not isinstance(parent, str):
            return NO_PARENT
        found = self._places.get(hash(parent))
        if found is None:
            self._drafts.approximated["branches"] += 1
            return self._tail
        return found

    def _assistant(self, line: Line, value: JsonObject, uuid: str, place: int, at: int) -> Draft[ClaudeMessage]:
        ours = moot_message_of(value)
        draft = self._drafts.answer(self._written.get(ours, NO_PARENT) if ours else place)
        if not ours and draft is None and (known := self._drafts.answer_to(place)) is not None and not known.answer.begins_step(value):
            draft = known
        if draft is None or (draft.is_full() and draft.answer.begins_step(value)):
            draft = self._drafts.begin(uuid, place, at, None, hash(text(value, "parentUuid") or None))
            if ours:
                self._written[ours] = draft.place
        draft.grow(line.raw, value)
        for id in draft.answer.said(value, at):
            self._calls[id] = draft.place
        if self._sidechains is not None:
            for call, prompt in delegated_prompts(value):
                self._sidechains.asked(call, prompt)
        self._about.head = draft.id
        return draft

    def _user(self, line: Line, value: JsonObject, uuid: str, place: int, at: int) -> Draft[ClaudeMessage] | None:
        if results := results_of(value):
            return self._outputs(line, value, results, at)
        if parts := prompt_of(value):
            draft = self._drafts.begin(uuid, place, at, parts, hash(text(value, "parentUuid") or None))
            draft.role = "system" if text(value, EXACTLY, "role") == "system" else "user"
            draft.identity = f"claude:{uuid}"
            self._about.ask(parts if draft.role == "user" else ())
            self._about.head = uuid
        else:  # a summary or an interruption
            draft = self._drafts.answer(place) if value.get("isMeta") is not True else None
        if draft is not None:
            draft.grow(line.raw, value)
        return draft

    def _outputs(self, line: Line, value: JsonObject, results: list[JsonObject], at: int) -> Draft[ClaudeMessage] | None:
        """Add tool outputs to the message that contains their call.

        Return this message, which may be anywhere in the tree because calls run in parallel.
        """
        found: Draft[ClaudeMessage] | None = None
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
            found.grow(line.raw, value)
        return found

    def _event(self, line: Line, value: JsonObject, uuid: str, place: int) -> Draft[ClaudeMessage] | None:
        """Return the message that the line belongs to,
        if the line is a context summary or a prompt that was sent while the agent was working.
        """
        if moot_message_of(value):
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
        draft.grow(line.raw, value)
        return draft

    def _moot_line(self, line: Line, value: JsonObject) -> None:
        """Read a line that moot wrote for a part that Claude Code can't store."""
        draft = self._assistant(
            line, value, f"{moot_message_of(value)}-{line.number}", self._place_of(value.get("parent")), milliseconds(value, "timestamp")
        )
        self._tail = draft.place

    def _outside_tree(self, line: Line, value: JsonObject) -> bool:
        """Read a line that does not belong to the session's tree. Return whether it belongs to a message."""
        if text(value, "type") in _TITLES:
            self._about.name(value)
        total_dollars = value.get("totalCostUSD")
        if value.get("type") != "cost-state" or not isinstance(total_dollars, int | float) or isinstance(total_dollars, bool):
            return False
        before, self._about.dollars = self._about.dollars, float(total_dollars)
        draft = self._drafts.answer(self._tail)
        if draft is None or value.get("hasUnknownModelCost") is True or not 0 <= total_dollars - before < 1e6:
            return False
        draft.answer.cost(round((total_dollars - before) * 1e9))
        draft.grow(line.raw, value)
        return True
