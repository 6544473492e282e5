"""Import of captured streams: the stdout of an agent, or both directions of a JSON-RPC pipe to an agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, TypeAlias

from moot.convert.agents.captures import is_outgoing, message_in
from moot.convert.exchanges import rebuild, translator_of
from moot.errors import UsageError
from moot.types import chunk
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.event import SENT, Event
from moot.types.exchange import Exchange, ExchangeOptions
from moot.types.format import Fidelity
from moot.types.ids import exchange_id, llm_key
from moot.types.imports import Recording
from moot.types.message import Message, MessageStatus, text_part
from moot.types.run import Run

Shape: TypeAlias = Literal["stdout", "wire", "rpc"]
"""`stdout`: the agent's output · `wire`: both directions of a pipe as lines `{dir, t, msg}` · `rpc`:
both directions, but without direction and time.
"""

LOOKED_AT = 50
"""Number of lines to examine in order to recognize a capture. Lines before the first match may be noise."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A type of captured stream, and its converter."""

    converter: str
    agent_type: str
    shape: Shape
    marks: Callable[[JsonObject], bool]
    """Predicate that is true for lines or JSON-RPC messages that occur only in this type of capture."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a capture."""

    raw: bytes
    value: JsonObject | None
    """None if the line is not a JSON object."""


def _type(*names: str) -> Callable[[JsonObject], bool]:
    return lambda line: line.get("type") in names


def _method(*names: str) -> Callable[[JsonObject], bool]:
    return lambda message: message.get("method") in names


_ACP = _method("session/new", "session/load", "session/resume", "session/prompt", "session/update", "session/request_permission")
_CODEX = _method("thread/start", "thread/resume", "thread/fork", "turn/start", "thread/started", "turn/started")

CAPTURES: tuple[Capture, ...] = (
    Capture("claude-stream-json", "claude-code", "stdout", lambda line: _type("system")(line) and line.get("subtype") == "init"),
    Capture("claude-stream-json", "claude-code", "stdout", lambda line: _type("stream_event")(line) and "session_id" in line),
    Capture("claude-stream-json", "claude-code", "stdout", lambda line: _type("assistant", "result")(line) and "session_id" in line),
    Capture("codex-exec", "codex", "stdout", _type("thread.started", "turn.started", "turn.completed")),
    Capture("opencode-run", "acp:opencode", "stdout", lambda line: "sessionID" in line and isinstance(line.get("part"), dict)),
    Capture("gemini-stream-json", "acp:gemini", "stdout", lambda line: _type("init")(line) and {"session_id", "model"} <= line.keys()),
    Capture(
        "gemini-stream-json",
        "acp:gemini",
        "stdout",
        lambda line: _type("message")(line) and "role" in line and isinstance(line.get("timestamp"), str),
    ),
    Capture("claude-code-wire", "claude-code", "wire", _type("control_request", "control_response", "stream_event")),
    Capture("codex-app-server-wire", "codex", "wire", _CODEX),
    Capture("acp-wire", "acp", "wire", _ACP),
    Capture("acpx", "acp", "rpc", _ACP),
)


def recognize(lines: Sequence[Line], agent_type: str = "") -> Capture | None:
    """Return the type of capture, or None if it is unknown. If `agent_type` is given, only its types are considered. Raise UsageError if
    there is no converter for this agent type.
    """
    shape = _shape(lines)
    if shape is None:
        return None
    of_shape = [one for one in CAPTURES if one.shape == shape]
    if agent_type:
        base = agent_type.partition(":")[0]
        named = [one for one in of_shape if one.agent_type == agent_type] or [one for one in of_shape if one.agent_type == base]
        if not named:
            known = ", ".join(sorted({one.agent_type for one in of_shape}))
            words = {"stdout": "stdout captures", "wire": "wire captures", "rpc": "JSON-RPC captures"}[shape]
            raise UsageError(
                f"No converter supports {words} from {agent_type!r}. Known agent types: {known}.", fix="moot import FILE -f recording"
            )
        return replace(named[0], agent_type=agent_type)
    values = [line.value for line in lines[:LOOKED_AT] if line.value is not None]
    for line in values if shape != "wire" else filter(None, map(message_in, values)):
        found = next((one for one in of_shape if one.marks(line)), None)
        if found is not None:
            return found
    return None


def _shape(lines: Sequence[Line]) -> Shape | None:
    values = [line.value for line in lines[:LOOKED_AT] if line.value is not None]
    if any(message_in(value) is not None for value in values):
        return "wire"
    if any("jsonrpc" in value and ("method" in value or "id" in value) for value in values):
        return "rpc"
    return "stdout" if any(isinstance(value.get("type"), str) for value in values) else None


# ── conversion ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Frame:
    line: Line
    sent: bool
    message: JsonObject
    at: int
    """Time in microseconds since the epoch."""


def convert_capture(capture: Capture, lines: Sequence[Line], *, source_id: str, at: int, name: str) -> Recording:
    """Convert a capture to a recording: one run with one exchange for each prompt. `at` is the file's modification time in µs.

    Raise UsageError if no converter is installed.
    """
    translator = translator_of(capture.converter)
    if translator is None:
        raise UsageError(f"The converter {capture.converter!r} is not installed.", fix="Install the package that provides it.")
    frames = _frames(capture, lines, at)
    agent = capture.agent_type if ":" in capture.agent_type else _named(capture, frames)
    builder = _CaptureBuilder(source_id, agent, f"{translator.name}/{translator.version}")
    for number, frames_of_run in enumerate(_split_runs(frames)):
        builder.add(frames_of_run, number)
    unread = sum(line.value is None for line in lines)
    title = " ".join(builder.first.split())[:80] or name
    last = builder.messages[-1].id if builder.messages else None
    times = [frame.at // 1000 for frame in frames] or [at // 1000]
    conversation = Conversation(
        source_id,
        title=title,
        title_source="first-line" if builder.first else "model",
        agent=agent.rpartition(":")[2],
        agent_type=agent,
        head=last,
        created_at=times[0],
        updated_at=times[-1],
    )
    return Recording(
        source_id,
        conversation,
        tuple(builder.messages),
        tuple(builder.runs),
        tuple(builder.exchanges),
        tuple(event._replace(seq=seq) for seq, event in enumerate(builder.events, 1)),
        fidelity=Fidelity(+builder.kept, +builder.approximated, Counter(lines=unread) if unread else {}),
        notes=tuple(f"line {number}: The line is not a JSON object." for number, line in enumerate(lines, 1) if line.value is None),
    )


def _named(capture: Capture, frames: Sequence[_Frame]) -> str:
    """Return the agent type. For `acp`, the name that the agent reports is appended."""
    if capture.agent_type != "acp":
        return capture.agent_type
    for frame in frames:
        result = frame.message.get("result")
        info = result.get("agentInfo") if isinstance(result, dict) else None
        if isinstance(info, dict) and isinstance(name := info.get("name"), str) and name:
            return f"acp:{name.rpartition('/')[2].lower().replace(' ', '-')[:60]}"
    return "acp"


def _frames(capture: Capture, lines: Sequence[Line], at: int) -> list[_Frame]:
    """Return the lines with direction and time. If a line has no time, the time of the previous line is used."""
    last = max((_elapsed(line.value) for line in lines if line.value is not None), default=0.0)
    stamps = (_stamp(line.value) for line in lines if line.value is not None)
    begin = next((stamp for stamp in stamps if stamp is not None), at - int(last * 1_000_000))
    found: list[_Frame] = []
    now = begin
    for line in lines:
        value = line.value or {}
        sent, message = False, value
        if capture.shape == "wire" and (inner := message_in(value)) is not None:
            sent, message = is_outgoing(value), inner
            now = max(now, begin + int(_elapsed(value) * 1_000_000))
        now = max(now, _stamp(value) or 0)
        found.append(_Frame(line, sent, message, now))
    return found


def _elapsed(value: JsonObject | None) -> float:
    found = value.get("t") if value is not None else None
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < 1e9 else 0.0


def _stamp(value: JsonObject) -> int | None:
    """Return a line's own timestamp (milliseconds or ISO 8601) in µs, or None."""
    found = value.get("timestamp")
    if type(found) is int and 10**11 < found < 10**14:
        return found * 1000
    if isinstance(found, str):
        try:
            return int(datetime.fromisoformat(found).timestamp() * 1_000_000)
        except (ValueError, OverflowError, OSError):
            return None
    return None


def _prompt(frame: _Frame) -> str | None:
    """Return the prompt that a line sends to the agent, or None."""
    message = frame.message
    if message.get("type") == "message" and message.get("role") == "user":
        return str(message.get("content") or "")
    if frame.sent and message.get("type") == "user" and isinstance(inner := message.get("message"), dict):
        return _text_in(inner.get("content"))
    params = message.get("params")
    if not isinstance(params, dict) or message.get("method") not in ("session/prompt", "turn/start"):
        return None
    return _text_in(params.get("prompt", params.get("input")))


def _text_in(content: Json) -> str:
    if isinstance(content, str):
        return content
    texts = [piece.get("text") for piece in content if isinstance(piece, dict)] if isinstance(content, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))


_CONTENT = ("agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan")
_SAID = "user_message_chunk"


def _update_in(frame: _Frame) -> JsonObject:
    params = frame.message.get("params")
    update = params.get("update") if isinstance(params, dict) and frame.message.get("method") == "session/update" else None
    return update if isinstance(update, dict) else {}


@dataclass(slots=True)
class _RunFrames:
    """The captured lines of one run."""

    frames: list[_Frame] = field(default_factory=list[_Frame])
    prompt: str | None = None
    past: bool = False
    """True if the run is older than the capture, and the agent only repeated it while loading its session."""
    loaded: bool = False
    """True if the agent loaded an existing session before the run."""
    answered: bool = False
    message: Json = None
    """The agent's id for the prompt of a past run."""

    def said(self, update: JsonObject) -> None:
        """Append a fragment of a past prompt."""
        content = update.get("content")
        text = _text_in([content])
        id = update.get("messageId")
        joint = "" if self.prompt is None or id == self.message else "\n\n"
        self.prompt, self.message, self.past = f"{self.prompt or ''}{joint}{text}", id, True


def _split_runs(frames: Sequence[_Frame]) -> list[_RunFrames]:
    """Divide the lines into runs. Each prompt starts a run. This includes past prompts that an agent repeats while loading a session.

    Lines before the first prompt belong to the first run.
    """
    found = [_RunFrames()]
    loading = False
    for frame in frames:
        last, update = found[-1], _update_in(frame)
        kind = update.get("sessionUpdate")
        prompt = _prompt(frame)
        if prompt is not None:
            if last.prompt is not None or last.past:
                found.append(_RunFrames(loaded=loading or last.past or last.loaded))
            found[-1].prompt, loading = prompt, False
        elif loading and kind in (_SAID, *_CONTENT):
            if (last.prompt is not None and not last.past) or (kind == _SAID and last.answered):
                found.append(_RunFrames())
            found[-1].past = True
            if kind == _SAID:
                found[-1].said(update)
            else:
                found[-1].answered = True
        if frame.message.get("method") in ("session/load", "session/resume"):
            loading = True
        found[-1].frames.append(frame)
    return found


class _CaptureBuilder:
    """Builder of the messages, runs and events of a capture."""

    def __init__(self, source_id: str, agent_type: str, converter: str) -> None:
        self.first = ""
        self.messages: list[Message] = []
        self.runs: list[Run] = []
        self.exchanges: list[Exchange] = []
        self.events: list[Event] = []
        self.kept: Counter[str] = Counter()
        self.approximated: Counter[str] = Counter()
        self._source = source_id
        self._agent_type = agent_type
        self._converter = converter

    def add(self, part: _RunFrames, number: int) -> None:
        """Add a prompt if the capture contains it, and the run that answers it."""
        frames, prompt = part.frames, part.prompt
        at = frames[0].at if frames else 0
        if prompt is not None:
            self._user(f"{self._source}:user-{number}", prompt, at)
        run = self._start_run(f"{self._source}:run-{number}", f"{self._source}:answer-{number}", at)
        extra: JsonObject = {name: True for name, is_so in (("past", part.past), ("loaded", part.loaded)) if is_so}
        self._add_events(run, frames, extra)
        self.kept.update(messages=1, runs=1, frames=len(frames), **({"prompts": 1} if prompt is not None else {}))
        if prompt is None:
            self.approximated["prompts"] += 1  # the capture does not contain the prompt

    def _user(self, id: str, text: str, at: int) -> None:
        self.first = self.first or text
        parent = self.messages[-1].id if self.messages else None
        parts = (text_part(text),)
        self.events.append(Event("message", body={"id": id, "role": "user", "parent": parent, "parts": list(parts), "metadata": {}}, at=at))
        self.messages.append(Message(id, "user", parts, parent=parent, first_seq=len(self.events), created_at=at // 1000))
        self.kept["messages"] += 1

    def _start_run(self, id: str, message: str, at: int) -> Run:
        parent = self.messages[-1].id if self.messages else None
        self.messages.append(Message(message, "assistant", parent=parent, run=id, created_at=at // 1000))
        body: JsonObject = {"op": "answer", "message": message, "parent": parent, "run": id}
        self.events.append(Event("tree", body=body, at=at))
        agent = self._agent_type.rpartition(":")[2]
        said: JsonObject = {"agent": agent, "agent_type": self._agent_type}
        self.events.append(Event("chunks", (chunk.start(message, said),), run=id, phase="start", key="run", at=at))
        return Run(
            id, self._source, message, agent=agent, agent_type=self._agent_type, trigger="import", status="finished", created_at=at // 1000
        )

    def _add_events(self, run: Run, frames: Sequence[_Frame], extra: JsonObject) -> None:
        at, until = (frames[0].at, frames[-1].at) if frames else (0, 0)
        options = ExchangeOptions("1.0", 1, extra=extra)
        id = exchange_id(run.id, 1, 0)
        raws = [Event("raw", (), frame.line.raw, run.id, id, body=SENT if frame.sent else None, at=frame.at) for frame in frames]
        translator = translator_of(self._converter)
        assert translator is not None
        rebuilt = rebuild(translator, options, raws, "eof")
        ending = rebuilt.ending
        model = str(ending.metadata.get("model") or "")
        exchange = Exchange(
            id, run.id, self._source, "answer", self._agent_type, self._converter, self._agent_type, model, options, {}, ended="eof"
        )
        self.exchanges.append(exchange)
        key = llm_key(1, 0)
        self.events.append(Event("exchange", (), None, run.id, id, "start", key, {"model": model}, at))
        self.events += [event._replace(chunks=chunks) for event, chunks in zip(raws, rebuilt.chunks, strict=True)]
        body: JsonObject = {**ending.to_json(), "charged": ending.cost, "ended": "eof"}
        self.events.append(Event("exchange", rebuilt.closing, None, run.id, id, "end", key, body, until))
        status: MessageStatus = "failed" if ending.error is not None else "finished"
        assert status in ("failed", "finished")
        facts: JsonObject = {"finish_reason": ending.finish_reason, **({"model": model} if model else {})}
        last = (
            (chunk.error(ending.error.advice()), chunk.finish("error", facts))
            if ending.error
            else (chunk.finish(ending.finish_reason, facts),)
        )
        self.events.append(
            Event("chunks", last, None, run.id, None, "end", "run", {"status": status, "finish_reason": ending.finish_reason}, until)
        )
        self.runs.append(
            replace(run, status=status, error=ending.error, usage=ending.usage, cost=ending.cost, model=model, ended_at=until // 1000)
        )
