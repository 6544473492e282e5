"""Conversion of session files to conversations. Messages form one branch, except that undoing a turn starts another branch.

Each line is converted using only the lines before it. So when a file grows, its earlier messages stay the same or get longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from moot.convert.agents.codex_session import CodexMessage, user_parts
from moot.errors import UsageError
from moot.formats.agents.codex.lines import moot_fields, normalize, prompt_parts
from moot.formats.kit.answers import NO_PARENT, Draft, Drafts
from moot.formats.kit.documents import Line, lines_containing
from moot.formats.kit.fields import at, milliseconds, obj, objects, text
from moot.types.canonical import Json, JsonObject, loads_object
from moot.types.format import Entry, ImportedFacts, ImportedRecord
from moot.types.message import text_of

_TRIES = 20


def parent_of(meta: JsonObject) -> str | None:
    """Return the id of the parent session, as found in the metadata in the first line, or None."""
    return text(meta, "source", "subagent", "thread_spawn", "parent_thread_id") or None


def call_that_began(path: Path, session: str, parent: str, packed: Callable[[Path], Iterable[Line]]) -> str | None:
    """Return the id of the call in the parent session's file that started this session, or None. The call's output contains the session's
    id.

    `packed` reads a compressed file.
    """
    if not parent.replace("-", "").isalnum():
        return None
    root = path.parents[3] if len(path.parents) > 3 else path.parent
    name, needle = f"rollout-*-{parent}.jsonl", session.encode()
    candidates = [*path.parent.glob(f"{name}*"), *root.glob(f"*/*/*/{name}*")]
    lines = (line for file in candidates if file.suffix == ".jsonl" for line in islice(lines_containing(file, needle), _TRIES))
    if (found := next((call for line in lines if (call := _call_of(line))), None)) is not None:
        return found
    with suppress(UsageError):
        unpacked = (line.raw for file in candidates if file.suffix == ".zst" for line in packed(file) if needle in line.raw)
        return next((call for line in islice(unpacked, _TRIES) if (call := _call_of(line))), None)
    return None


def _call_of(line: bytes) -> str | None:
    try:
        payload = obj(loads_object(line), "payload")
    except ValueError:
        return None
    return text(payload, "call_id") if payload.get("type") == "function_call_output" else None


class _Identities:
    """Identities of a session's prompts and model calls, which are repeated in forks of the session.

    A call is identified by the id of its turn and its number in the turn. Old versions of Codex wrote no turn ids. In their sessions, a
    call is identified by everything before it and the id of the original session, because two sessions may start with the same words.
    """

    def __init__(self) -> None:
        self._turn = ""
        self._number = 0
        self._session = ""
        self._before = blake2b(digest_size=16)

    def take(self, raw: bytes, kind: str, body: JsonObject, time: str) -> None:
        """Read a line. The time of a copied line may differ from the original's."""
        if kind == "session_meta":  # the session's own metadata, then that of the copied session
            self._session = text(body, "forked_from_id") or parent_of(body) or text(body, "id") or self._session
            return
        if not self._turn:  # otherwise it is no longer used
            self._before.update(raw.rstrip().replace(time.encode(), b"", 1))
        if kind == "turn_context" and (turn := text(body, "turn_id")) and turn != self._turn:
            self._turn, self._number = turn, 0

    def peek(self) -> str:
        """Return the identity of the next prompt or call."""
        return f"codex:{self._turn}:{self._number}" if self._turn else f"codex:{self._session}:{self._before.hexdigest()}"

    def next(self) -> str:
        """Return the identity of the next prompt or call, and advance to the one after it."""
        identity = self.peek()
        self._number += 1
        return identity


def _difference(total: JsonObject, before: JsonObject) -> JsonObject | None:
    """Return a call's token counts, calculated from the session's totals, or None if the totals were reset."""
    counts = {
        name: value - (earlier if type(earlier := before.get(name)) is int else 0) for name, value in total.items() if type(value) is int
    }
    return None if any(count < 0 for count in counts.values()) else dict[str, Json](counts)


_TITLE = 80
_ID = 100
"""Number of bytes in memory for each id, approximately."""
_OF_A_TURN = frozenset({"task_started", "turn_started", "task_complete", "turn_complete", "turn_aborted"})
_FACTS = (("originator", "originator"), ("cli_version", "agent_version"), ("forked_from_id", "forked_from"), ("source", "source"))


class SessionReader:
    """Reader that converts the lines of one session file to messages."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._drafts = Drafts(lambda at: CodexMessage(at, self._model))
        self._tail = NO_PARENT
        self._parents: list[int] = []
        """For each prompt, the index of the message before it."""
        self._ids = set[int]()
        self._model = ""
        self._turn_started = self._turn_active = False
        """Two flags: True once a turn has started, and True once the model has produced output in it."""
        self._facts = ImportedFacts()
        self._directory = ""
        self._title = ""
        self._asked = ""
        self._head: str | None = None
        self._first = self._last = 0
        self._metadata: JsonObject = {}
        self._total: Json = None
        self._identities = _Identities()
        self._answering = ""
        """The id in moot of the newest answer, if this answer was exported by moot."""
        self._told = False

    @property
    def size(self) -> int:
        return self._drafts.size + _ID * len(self._ids)

    def entries(self, lines: Iterable[Line]) -> Iterator[Entry]:
        """Yield the entries of the lines. Facts about the conversation are yielded after its first messages and at the end."""
        yield from self.take(lines)
        yield from self.rest()

    def take(self, lines: Iterable[Line]) -> Iterator[Entry]:
        for line in lines:
            value = line.value
            if value is None:
                self._drafts.lost["records"] += 1
                yield ImportedRecord(line.raw, problem=line.problem)
                continue
            kind, body = normalize(value)
            self._identities.take(line.raw, kind, body, text(value, "timestamp"))
            draft = self._take(line, value, kind, body)
            if draft is not None:
                draft.grow(line.raw, value)
            else:
                self._drafts.kept["records"] += 1
                yield ImportedRecord(line.raw, value)
            yield from self._drafts.finished()
            if not self._told and len(self._drafts) > 1:
                self._told = True
                yield self._known_facts()

    def rest(self, tail: Line | None = None) -> Iterator[Entry]:
        counts = self._drafts.counts()
        if tail is not None:
            self._drafts.lost["records"] += 1
            yield ImportedRecord(tail.raw, problem=tail.problem)
        yield from self._drafts.growing()
        yield self._known_facts()
        self._drafts.reset(counts)

    def _known_facts(self) -> ImportedFacts:
        return ImportedFacts(
            self._drafts.fidelity(),
            title=self._title or self._asked,
            head=self._head,
            directory=self._directory,
            agent=self._agent,
            model=self._model,
            created_at=self._first,
            updated_at=self._last,
            metadata=dict(self._metadata),
        )

    def _take(self, line: Line, value: JsonObject, kind: str, body: JsonObject) -> Draft[CodexMessage] | None:
        """Return the message that a line belongs to, or None."""
        at = milliseconds(value, "timestamp")
        self._first, self._last = self._first or at, max(self._last, at)
        match kind:
            case "session_meta":
                self._begin(body)
            case "turn_context":
                self._model = str(body.get("model") or self._model)
                self._directory = self._directory or str(body.get("cwd") or "")
                if (draft := self._drafts.answer(self._tail)) is not None:
                    draft.answer.model = self._model
            case "response_item" | "moot_part" if mark := moot_fields(value):
                return self._moot_line(line, body, mark, at)
            case "event_msg" if (mark := moot_fields(value)) and (draft := self._drafts.answer(self._tail)) is not None:
                draft.answer.took({}, told=True, counted=obj(mark, "usage"))
                return draft
            case "response_item":
                return self._item(line, body, at)
            case "event_msg":
                return self._event(body, at)
            case "token_usage_record":
                return self._took(body.get("usage"), told=True, id=str(body.get("response_id") or ""))
            case "compacted":
                return self._noted("item/contextCompaction", body)
            case _:
                pass
        return None

    def _begin(self, body: JsonObject) -> None:
        """Read the session's metadata. In the file of a fork, the original session's metadata may follow; it is ignored."""
        if "session_id" in self._metadata:
            return
        self._metadata["session_id"] = str(body.get("id") or "")
        self._directory = self._directory or str(body.get("cwd") or "")
        for name, ours in _FACTS:
            if told := body.get(name):
                self._metadata[ours] = told
        if isinstance(branch := at(body, "git", "branch"), str):
            self._metadata["git_branch"] = branch

    def _item(self, line: Line, item: JsonObject, at: int) -> Draft[CodexMessage] | None:
        role = item.get("role") if item.get("type") == "message" else None
        if role == "user":
            return self._prompt(line, item, at)
        if role not in (None, "assistant"):
            return None
        is_output = str(item.get("type")).endswith("_output")
        draft = self._drafts.answer(self._tail)
        if draft is not None and draft.is_full() and draft.answer.between and not is_output:
            draft = None
        if draft is None:
            if is_output:
                self._drafts.approximated["tool calls"] += 1
                return None
            draft = self._message(self._id(item, line), at, None)
        draft.answer.item(item, at)
        self._turn_active = self._turn_active or self._turn_started
        return draft

    def _moot_line(self, line: Line, item: JsonObject, mark: JsonObject, at: int) -> Draft[CodexMessage]:
        """Read a line that moot wrote."""
        id, step, part = str(mark["message"]), mark.get("step"), mark.get("part")
        if "model" not in mark:
            parts = tuple(objects(mark, "parts")) if isinstance(mark.get("parts"), list) else user_parts(item.get("content"))
            draft = self._message(self._id({"id": id}, line), at, parts)
            draft.role = "system" if item.get("role") == "developer" else "user"
            self._ask(parts if draft.role == "user" else ())
            return draft
        draft = self._drafts.answer(self._tail)
        if draft is None or self._answering != id:
            draft = self._message(self._id({"id": id}, line), at, None)
            self._answering = id
        cost, reason = mark.get("cost"), mark.get("finish_reason")
        draft.answer.reason = reason if isinstance(reason, str) else draft.answer.reason
        if step is None and isinstance(part, dict):
            draft.answer.steered(part)
            return draft
        draft.answer.facts(step if type(step) is int else 0, str(mark["model"]), cost if type(cost) is int else None)
        self._model = str(mark["model"]) or self._model
        draft.answer.item(item, at, mark)
        return draft

    def _ask(self, parts: tuple[JsonObject, ...]) -> None:
        self._asked = self._asked or " ".join(text_of(parts)[: 4 * _TITLE].split())[:_TITLE]
        self._parents.append(self._tail)

    def _prompt(self, line: Line, item: JsonObject, at: int) -> Draft[CodexMessage] | None:
        parts = prompt_parts(item)
        if not parts:
            return None
        working = self._drafts.answer(self._tail)
        if self._turn_active and working is not None:
            working.answer.steered({"type": "steering-message", "id": self._id(item, line), "parts": list(parts)})
            return working
        self._ask(parts)
        draft = self._message(self._id(item, line), at, parts)
        draft.identity = self._identities.next()
        return draft

    def _message(self, id: str, at: int, parts: tuple[JsonObject, ...] | None) -> Draft[CodexMessage]:
        draft = self._drafts.begin(id, self._tail, at, parts, 0)
        self._tail, self._head = draft.place, id
        return draft

    def _id(self, item: JsonObject, line: Line) -> str:
        """Return the item's own id, or an id with its line number if the item has none or its id has already been used."""
        id = item.get("id")
        if not isinstance(id, str) or not id or hash(id) in self._ids:
            return f"line-{line.number}"
        self._ids.add(hash(id))
        return id

    # ── events ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _event(self, body: JsonObject, at: int) -> Draft[CodexMessage] | None:
        draft = self._drafts.get(self._tail)
        match body.get("type"):
            case "item_completed" if isinstance(item := body.get("item"), dict):
                return self._shown(item, draft, at)
            case "token_count":
                return self._counted(obj(body, "info"), obj(body, "rate_limits"), at)
            case "thread_rolled_back":
                self._roll_back(body.get("num_turns"))
            case "thread_name_updated" if isinstance(name := body.get("thread_name"), str):
                self._title = name or self._title
            case "context_compacted":
                return self._noted("item/contextCompaction", body)
            case "error" if draft is not None:
                return self._failed(body, draft, at)
            case "user_message":
                return draft if draft is not None and draft.prompt is not None else None
            case "agent_message" | "agent_reasoning" | "agent_reasoning_raw_content":
                return draft if draft is not None and draft.prompt is None else None
            case str(kind) if kind in _OF_A_TURN:
                return self._turned(kind, body, draft)
            case _:
                pass
        return None

    def _failed(self, body: JsonObject, draft: Draft[CodexMessage], at: int) -> Draft[CodexMessage]:
        if draft.prompt is not None:  # the turn failed before the model answered
            draft = self._message(f"{draft.id}:error", at, None)
        draft.answer.error = str(body.get("message") or "Codex failed without an error message")
        return draft

    def _turned(self, kind: str, body: JsonObject, draft: Draft[CodexMessage] | None) -> Draft[CodexMessage] | None:
        self._turn_active, self._turn_started = False, kind.endswith("started")
        if self._turn_started or draft is None or draft.prompt is not None:
            return None
        draft.answer.reason = "stop" if kind.endswith("complete") else "other"
        draft.answer.turn = str(body.get("turn_id") or "")
        return draft

    def _shown(self, item: JsonObject, draft: Draft[CodexMessage] | None, at: int) -> Draft[CodexMessage] | None:
        """Return the message that a display event repeats, or None. Unless the event's item is text or reasoning, add it to an answer."""
        if item.get("type") == "UserMessage":
            return draft if draft is not None and draft.prompt is not None else None
        if draft is None or draft.prompt is not None:
            return None
        if item.get("type") not in ("AgentMessage", "Reasoning"):
            draft.answer.shown(item, at)
        return draft

    def _counted(self, info: JsonObject, limits: JsonObject, at: int) -> Draft[CodexMessage] | None:
        """Record the token count and the limits from a display event. A repeated total does not mean another model call."""
        if limits and (draft := self._drafts.answer(self._tail)) is not None:
            draft.answer.limited(limits, at)
        before, total, last = self._total, info.get("total_token_usage"), info.get("last_token_usage")
        if total == before or not isinstance(info.get("total_token_usage", last), dict):
            return None
        self._total = total
        return self._took(last if isinstance(last, dict) else _difference(obj(total), obj(before)), told=False)

    def _took(self, usage: Json, *, told: bool, id: str = "") -> Draft[CodexMessage] | None:
        draft = self._drafts.answer(self._tail)
        if draft is None or not isinstance(usage, dict):
            return None
        if draft.answer.took(usage, told=told, id=id, identity=self._identities.peek()):
            self._identities.next()
        return draft

    def _noted(self, method: str, body: JsonObject) -> Draft[CodexMessage] | None:
        draft = self._drafts.answer(self._tail)
        if draft is not None:
            draft.answer.event(method, body)
        return draft

    def _roll_back(self, turns: Json) -> None:
        """Undo the newest `turns` prompts, so that the next message becomes a sibling of the first undone message."""
        if type(turns) is int and 0 < turns <= len(self._parents):
            self._tail = self._parents[-turns]
            del self._parents[-turns:]
