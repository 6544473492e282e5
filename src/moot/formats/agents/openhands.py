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

from moot.errors import UsageError
from moot.formats.anthropic import content_parts
from moot.formats.kit.bases import ReadOnly
from moot.formats.kit.fields import flag, local_milliseconds, money, obj, objects, text, whole_number
from moot.formats.kit.json import elements, json_value, members_at, parse_json, read_document
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, file, output_value, reasoning, routed_step, tool_call
from moot.types.canonical import Json, JsonObject
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


@dataclass(slots=True)
class _State:
    """The content of `base_state.json`."""

    about: JsonObject = field(default_factory=dict[str, Json])
    calls: list[tuple[str, bytes, JsonObject]] = field(default_factory=list[tuple[str, bytes, JsonObject]])
    """Id, bytes and step of each model call, in order."""
    problem: str = ""


class OpenHands(ReadOnly):
    name = "openhands"
    version = 1
    stored_files: tuple[str, ...] = (_STATE, "events/event-*.json")
    suffix = ".json"

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield home / ".openhands" / "conversations"

    def sniff(self, path: Path, head: bytes) -> bool:
        return not head and next(self.sources(path), None) is not None

    def sources(self, folder: Path) -> Iterator[Path]:
        """Yield the conversations: the folder itself, or those in it."""
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
            raise UsageError(f"{str(path)!r} is not a conversation of OpenHands: it has no events.")
        for folder in folders:
            yield ImportedConversation(folder.name, entries_of(_records(folder)))


def _events(folder: Path) -> list[tuple[int, Path]]:
    """Return the files of the events with their numbers, in order."""
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
    """Return an event's bytes and content, and a description of the problem if it can't be read."""
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
    calls: list[tuple[str, bytes, JsonObject]] = []
    for way, span in members_at(data, (*_METRICS, "token_usages")):
        if way[-1] != "token_usages" or len(way) != len(_METRICS) + 1:
            continue
        metrics = obj(about, *way[:-1])
        costs = [money(one, "cost") for one in objects(metrics, "costs")]
        usages = [(one.raw, obj(one.value)) for one in elements(data, span.begin)]
        known = costs if len(costs) == len(usages) else [None] * len(usages)
        for (raw, usage), cost in zip(usages, known, strict=True):
            model = text(usage, "model") or text(metrics, "model_name")
            counts = Usage(*(whole_number(usage, name) for name in _COUNTS)).to_json()
            calls.append((text(usage, "response_id"), raw, routed_step(model, usage=counts, cost=cost)))
    return _State(about, calls)


class _Answers:
    """The events of answers. Tool calls of one model call are separate events, of which the first has the text."""

    def __init__(self, state: _State, folder: Path) -> None:
        self._calls = list(state.calls)
        self._by_position = _matches_by_position(state, folder)
        self._open: tuple[str, SessionRecord] | None = None
        self._known: set[str] = set()
        self._acp: set[str] = set()

    def take(self, raw: bytes, event: JsonObject, id: str) -> Records:
        kind, at = text(event, "kind"), local_milliseconds(event, "timestamp")
        response = text(event, "llm_response_id")
        if kind == "ActionEvent" or (kind == "MessageEvent" and event.get("source") == "agent"):
            parts = tuple(_action(event) if kind == "ActionEvent" else _said(obj(event, "llm_message")))
            if self._open is not None and response and self._open[0] == response:
                before = self._open[1]
                self._open = response, replace(before, raw=before.raw + raw, parts=(*before.parts, *parts))
                return
            yield from self.close()
            more, facts = self._step(response)
            self._open = response, SessionRecord(id, "assistant", raw + more, parts, at=at, step=facts)
            return
        yield from self.close()
        if kind in _OUTPUTS:
            yield SessionRecord(id, "assistant", raw, outputs=(_output(kind, event),), at=at)
        elif kind == "ACPToolCallEvent":
            yield self._acp_call(raw, event, id, at)
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

    def rest(self) -> Iterator[SessionRecord]:
        """Yield the model calls that belong to no event, such as those of summaries."""
        for number, (_, raw, facts) in enumerate(self._calls):
            yield SessionRecord(f"call-{number}", "assistant", raw, step=facts)

    def _step(self, response: str) -> tuple[bytes, JsonObject]:
        """Return the bytes and the facts of a model call. A call whose answer has several parts is counted once."""
        if response in self._known and response:
            return b"", {"model": ""}
        self._known.add(response)
        found = next((at for at, call in enumerate(self._calls) if call[0] == response), 0 if self._by_position and self._calls else None)
        if found is None:
            return b"", {"model": ""}
        _, raw, facts = self._calls.pop(found)
        return raw, facts or {"model": ""}

    def _acp_call(self, raw: bytes, event: JsonObject, id: str, at: int) -> SessionRecord:
        """Convert the state of a call of an agent that speaks the Agent Client Protocol. A call has an event for each of its states."""
        call, outputs = text(event, "tool_call_id"), list[Output]()
        if text(event, "status") in ("completed", "failed"):
            value: Json = event.get("raw_output") if event.get("raw_output") is not None else event.get("content")
            outputs.append(Output(call, value, flag(event, "is_error") or event.get("status") == "failed"))
        if call in self._acp:
            return SessionRecord(id, "assistant", raw, outputs=tuple(outputs), at=at)
        self._acp.add(call)
        named = tool_call(call, text(event, "tool_kind"), event.get("raw_input"), title=text(event, "title"))
        return SessionRecord(id, "assistant", raw, (named,), tuple(outputs), at=at)


def _matches_by_position(state: _State, folder: Path) -> bool:
    """Return whether calls and answers name different ids but have the same number, so that they can be matched in order."""
    ids = {id for id, _, _ in state.calls}
    answers: dict[str, None] = {}
    for _, path in _events(folder) if state.calls else ():
        value = obj(_event(path)[1])
        if text(value, "kind") in ("ActionEvent", "MessageEvent") and value.get("source") == "agent":
            answers[text(value, "llm_response_id")] = None
    return ids.isdisjoint(answers) and len(answers) == len(state.calls)


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
        yield from [reasoning(thought)] if thought and not blocks else []
    elif thought is not None:
        yield {"type": "data-block", "data": {"reasoning_content": thought}}


def _said(message: JsonObject) -> Iterator[Part]:
    yield from _thoughts(message)
    if isinstance(message.get("content"), str):
        yield text_part(text(message, "content"))
    for block in objects(message, "content"):
        yield from _block(block)
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
