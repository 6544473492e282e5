"""The format `openhands`: conversations of OpenHands, `~/.openhands/conversations/ID/{base_state.json, events/event-NUMBER-ID.json}`.

Each event is a file. Tokens and costs of the model calls are in `base_state.json`; the rest of this file is the configuration, which is not
kept. Reference: `openhands/sdk/{conversation,event,llm}` of https://github.com/OpenHands/software-agent-sdk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from moot.errors import UsageError
from moot.formats.anthropic import content_parts
from moot.formats.kit.bases import ReadOnly
from moot.formats.kit.fields import flag, items, local_milliseconds, milliseconds, money, obj, objects, text, whole_number
from moot.formats.kit.json import elements, json_value, members_at, parse_json, read_document
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, file, output_value, reasoning, routed_step, tool_call
from moot.types.canonical import Json, JsonObject, empty
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part
from moot.types.usage import Usage

_EVENT = re.compile(r"event-(\d{1,9})-.*\.json")
_STATE = "base_state.json"
_METRICS = ("stats", "usage_to_metrics", "*")
_COUNTS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_ACTION = frozenset(
    (
        *("kind", "id", "timestamp", "source", "thought", "reasoning_content", "thinking_blocks", "responses_reasoning_item", "action"),
        *("tool_name", "tool_call_id", "tool_call", "llm_response_id", "security_risk", "summary"),
    )
)
"""Known fields of an action."""
_OUTPUTS = frozenset({"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"})


class _Call(NamedTuple):
    """A model call in `base_state.json`."""

    id: str
    raw: bytes
    facts: JsonObject
    at: int


@dataclass(slots=True)
class _State:
    """The content of `base_state.json`."""

    about: JsonObject = field(default_factory=dict[str, Json])
    calls: list[_Call] = field(default_factory=list[_Call])
    problem: str = ""


class OpenHands(ReadOnly):
    name = "openhands"
    version = 2
    stored_files: tuple[str, ...] = (_STATE, "events/event-*.json")
    suffix = ".json"

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield home / ".openhands" / "conversations"

    def sniff(self, path: Path, head: bytes) -> bool:
        return not head and next(self.sources(path), None) is not None

    def sources(self, folder: Path) -> Iterator[Path]:
        """Yield the conversations: the folder itself, or the conversations in it."""
        if _events(folder):
            yield folder
            return
        with suppress(OSError):
            entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
            yield from (folder / entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and _events(folder / entry.name))

    def knows_record(self, body: JsonObject) -> bool:
        return body.get("kind") == "SystemPromptEvent" and isinstance(obj(body, "system_prompt").get("text"), str)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        folders = list(self.sources(path))
        if not folders:
            raise UsageError(f"{str(path)!r} is not an OpenHands conversation: it has no events.")
        for folder in folders:
            yield ImportedConversation(folder.name, entries_of(_records(folder)))


def _events(folder: Path) -> list[tuple[int, Path]]:
    """Return the event files with their numbers, in order."""
    place = folder / "events"
    try:
        with os.scandir(place) as entries:
            found = [
                (entry.name, match) for entry in entries if entry.is_file(follow_symlinks=False) and (match := _EVENT.fullmatch(entry.name))
            ]
    except OSError:
        return []
    return [] if place.is_symlink() else sorted((int(match[1]), place / name) for name, match in found)


def _records(folder: Path) -> Records:
    state = _state(folder / _STATE)
    yield ImportedFacts(
        title=text(state.about, "title"),
        directory=text(state.about, "workspace", "working_dir"),
        agent="openhands",
        model=str(routed_step(text(state.about, "agent", "llm", "model")).get("model", "")),
    )
    if state.problem:
        yield ImportedRecord(b"", problem=state.problem)
    answers = _Answers(state, folder)
    following = 0
    for number, path in _events(folder):
        if number > following:
            missing = f"event {following} is" if number - 1 == following else f"events {following} to {number - 1} are"
            yield ImportedRecord(b"", problem=f"{missing} missing")
        following = number + 1
        raw, value, problem = _event(path)
        if problem:
            yield from answers.close()
            yield ImportedRecord(raw, value, f"{path.name} {problem}")
        else:
            yield from answers.take(raw, obj(value), text(value, "id") or path.stem)
    yield from answers.close()
    yield from answers.rest()


def _event(path: Path) -> tuple[bytes, Json, str]:
    """Return an event's bytes and content, and a description of the problem if the event can't be read."""
    try:
        raw = read_document(path)
    except UsageError as error:
        return b"", None, f"can't be read: {error}"
    try:
        value = parse_json(raw)
    except ValueError:
        return raw, None, "is not valid JSON"
    return raw, value, "" if text(value, "kind") else "is not an event"


def _state(path: Path) -> _State:
    if not path.is_file() or path.is_symlink():
        return _State()
    try:
        data = read_document(path)
        about = obj(parse_json(data))
    except (UsageError, ValueError):
        return _State(problem=f"{_STATE} is not valid JSON, so that tokens and costs are unknown")
    calls: list[_Call] = []
    for way, span in members_at(data, (*_METRICS, "token_usages")):
        if way[-1] != "token_usages" or len(way) != len(_METRICS) + 1:
            continue
        metrics = obj(about, *way[:-1])
        costs = objects(metrics, "costs")
        usages = [(one.raw, obj(one.value)) for one in elements(data, span.begin)]
        known = costs if len(costs) == len(usages) else [empty()] * len(usages)
        for (raw, usage), cost in zip(usages, known, strict=True):
            model = text(usage, "model") or text(metrics, "model_name")
            counts = Usage(*(whole_number(usage, name) for name in _COUNTS)).to_json()
            facts = routed_step(model, usage=counts, cost=money(cost, "cost"))
            calls.append(_Call(text(usage, "response_id"), raw, facts, milliseconds(cost, "timestamp")))
    return _State(about, calls)


class _Answers:
    """Collects the events that make up each answer. A model call has one event for each tool call; the text is in the first of these."""

    def __init__(self, state: _State, folder: Path) -> None:
        self._calls, self._others = _calls_of_answers(state.calls, folder)
        self._place = -1
        self._open: tuple[str, SessionRecord] | None = None
        self._acp: set[str] = set()

    def take(self, raw: bytes, event: JsonObject, id: str) -> Records:
        kind, at = text(event, "kind"), local_milliseconds(event, "timestamp")
        if _is_answer(event):
            yield from self._answer(raw, event, id, at)
            return
        yield from self.close()
        if kind in _OUTPUTS:
            yield SessionRecord(id, "assistant", raw, outputs=(_output(kind, event),), at=at)
        elif kind == "MessageEvent":
            added: list[Part] = [{"type": "data-context", "data": one} for one in objects(event, "extended_content")]
            parts = (*_said(obj(event, "llm_message")), *added)
            yield SessionRecord(id, "user" if event.get("source") == "user" else "system", raw, parts, at=at)
        elif kind in ("CondensationSummaryEvent", "Condensation") and text(event, "summary"):
            yield SessionRecord(id, "system", raw, (text_part(text(event, "summary")),), at=at)
        else:
            yield ImportedRecord(raw, event)

    def close(self) -> Iterator[SessionRecord]:
        """Yield the model call that is still open, if there is one."""
        if self._open is not None:
            _, record = self._open
            self._open = None
            yield record

    def rest(self) -> Iterator[ImportedRecord]:
        """Yield the model calls of a conversation that has no answer."""
        calls = (*self._calls.values(), *(call for calls in self._others.values() for call in calls))
        yield from (ImportedRecord(call.raw, problem="a model call belongs to no answer, so it is not counted") for call in calls)

    def _answer(self, raw: bytes, event: JsonObject, id: str, at: int) -> Iterator[SessionRecord]:
        """Add a part of an answer to the open model call, or start a new model call."""
        self._place += 1
        others = self._others.pop(self._place, [])
        further = tuple([call.facts for call in others])
        raw += b"".join(call.raw for call in others)
        if text(event, "kind") == "ACPToolCallEvent":
            yield from self.close()
            yield replace(self._acp_call(raw, event, id, at), further_steps=further)
            return
        response = text(event, "llm_response_id")
        parts = tuple(_action(event) if text(event, "kind") == "ActionEvent" else _said(obj(event, "llm_message")))
        if self._open is not None and response and self._open[0] == response:
            before = self._open[1]
            self._open = (
                response,
                replace(before, raw=before.raw + raw, parts=(*before.parts, *parts), further_steps=(*before.further_steps, *further)),
            )
            return
        yield from self.close()
        call = self._calls.pop(response, None)  # a call whose answer has several parts is counted once
        raw, facts = (raw + call.raw, call.facts) if call is not None else (raw, {})
        self._open = response, SessionRecord(id, "assistant", raw, parts, at=at, step=facts or {"model": ""}, further_steps=further)

    def _acp_call(self, raw: bytes, event: JsonObject, id: str, at: int) -> SessionRecord:
        """Convert one state of a call from an agent that uses the Agent Client Protocol. A call has an event for each of its states."""
        call, outputs = text(event, "tool_call_id"), list[Output]()
        if text(event, "status") in ("completed", "failed"):
            value: Json = event.get("raw_output") if event.get("raw_output") is not None else event.get("content")
            outputs.append(Output(call, value, flag(event, "is_error") or event.get("status") == "failed"))
        if call in self._acp:
            return SessionRecord(id, "assistant", raw, outputs=tuple(outputs), at=at)
        self._acp.add(call)
        named = tool_call(call, text(event, "tool_kind"), event.get("raw_input"), title=text(event, "title"))
        return SessionRecord(id, "assistant", raw, (named,), tuple(outputs), at=at)


def _is_answer(event: JsonObject) -> bool:
    kind = text(event, "kind")
    return kind in ("ActionEvent", "ACPToolCallEvent") or (kind == "MessageEvent" and event.get("source") == "agent")


def _calls_of_answers(calls: list[_Call], folder: Path) -> tuple[dict[str, _Call], dict[int, list[_Call]]]:
    """Return calls keyed by the response id of their answer,
    and lists of all other calls keyed by the position of the answer to which they are added.

    If calls and answers have different ids but are equal in number, they are matched in order. A call that belongs to no answer, such as a
    call for a title, is added to the answer that was the latest at the time of the call or, if that time is unknown, to the answer of the
    previous call.
    """
    answers: list[tuple[str, int]] = []
    for _, path in _events(folder) if calls else ():
        event = obj(_event(path)[1])
        if _is_answer(event):
            answers.append((text(event, "llm_response_id"), local_milliseconds(event, "timestamp")))
    places = {id: place for place, (id, _) in reversed(list(enumerate(answers)))}
    ids = [call.id for call in calls]
    if places.keys().isdisjoint(ids) and len(places) == len(calls):
        ids = sorted(places, key=places.__getitem__)
    matched: dict[str, _Call] = {}
    others: dict[int, list[_Call]] = {}
    latest = 0
    for id, call in zip(ids, calls, strict=True):
        if id in places and id not in matched:
            matched[id], latest = call, places[id]
        else:
            earlier = [place for place, (_, at) in enumerate(answers) if at <= call.at] if call.at else [latest]
            others.setdefault(earlier[-1] if earlier else 0, []).append(call)
    return matched, others


def _action(event: JsonObject) -> Iterator[Part]:
    yield from _thoughts(event)
    for block in objects(event, "thought"):
        yield from _block(block)
    called = obj(event, "tool_call")
    arguments = json_value(called.get("arguments"))
    if not called:
        arguments = {name: value for name, value in obj(event, "action").items() if name != "kind"}
    yield tool_call(text(event, "tool_call_id"), text(event, "tool_name") or text(called, "name"), arguments, title=text(event, "summary"))
    unknown: JsonObject = {name: value for name, value in event.items() if name not in _ACTION and isinstance(value, str | list | dict)}
    if any(unknown.values()):
        yield {"type": "data-block", "data": unknown}


def _thoughts(value: JsonObject) -> Iterator[Part]:
    """Yield the reasoning, which is stored as blocks of Anthropic's API, as text, or as both."""
    blocks, thought = objects(value, "thinking_blocks"), value.get("reasoning_content")
    yield from content_parts(list[Json](blocks))
    if isinstance(thought, str):
        yield from [reasoning(thought)] if thought and not any(text(block, "thinking") for block in blocks) else []
    elif thought is not None:
        yield {"type": "data-block", "data": {"reasoning_content": thought}}


def _said(message: JsonObject) -> Iterator[Part]:
    yield from _thoughts(message)
    if isinstance(message.get("content"), str):
        yield text_part(text(message, "content"))
    for block in items(message, "content"):
        yield from _block(block if isinstance(block, dict) else {"type": "text", "text": block})
    for call in objects(message, "tool_calls"):
        yield tool_call(text(call, "id"), text(call, "name"), json_value(call.get("arguments")))


def _block(block: JsonObject) -> Iterator[Part]:
    urls = block.get("image_urls")
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        yield text_part(text(block, "text"))
    elif block.get("type") == "image" and isinstance(urls, list) and all(isinstance(url, str) for url in urls):
        yield from (file(str(url), "image/*") for url in urls)
    else:
        yield {"type": "data-block", "data": block}


def _output(kind: str, event: JsonObject) -> Output:
    call, name = text(event, "tool_call_id"), text(event, "tool_name")
    if kind == "AgentErrorEvent":
        return Output(call, event.get("error", event), error=True, name=name)
    if kind == "UserRejectObservation":
        return Output(call, event.get("rejection_reason", event), name=name, denied=True)
    observation = obj(event, "observation")
    content: Json = observation.get("content", event.get("observation", event))
    blocks = objects({"content": content}, "content")
    value = output_value([part for block in blocks for part in _block(block)]) if blocks else content
    return Output(call, value, flag(observation, "is_error"), name)
