"""Translators for the output of headless agents: `gemini -o stream-json`, `opencode run --format json` and `codex exec --json`."""

from __future__ import annotations

from typing import NamedTuple

from moot.convert.agents.acp_calls import message_of, usage_of
from moot.convert.agents.codex import Line, State, close
from moot.convert.agents.codex_calls import camel, failure_of
from moot.convert.agents.codex_calls import usage_of as codex_usage_of
from moot.convert.vendor import as_list, as_object, as_text, count, failure, nano_dollars, plan_of
from moot.convert.writer import Parts, Spoken, Writer, begin, free_id
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import FINISH_REASONS, FINISH_STEP, START_STEP, Chunk, data, tool_error, tool_output
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions, Failure
from moot.types.usage import Usage


class HeadlessState(NamedTuple):
    parts: Parts
    step: bool = False
    answered: bool = False
    """True if a call in this step has its output."""
    open: tuple[tuple[str, str], ...] = ()
    """Tool calls without an output, each with the agent's id and moot's id."""


class HeadlessWriter:
    def __init__(self, said: HeadlessState) -> None:
        self._said = said
        self._writer = Writer(said.parts)

    @property
    def said(self) -> HeadlessState:
        return self._said._replace(parts=self._writer.parts)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return tuple(self._writer.chunks)

    def step(self) -> None:
        """End the current step and start a new one."""
        self.end_step()
        self._writer.chunks.append(START_STEP)
        self._said = self._said._replace(step=True, answered=False)

    def end_step(self) -> None:
        """End the step, if one is open."""
        self._writer.end()
        if self._said.step:
            self._writer.chunks.append(FINISH_STEP)
            self._said = self._said._replace(step=False)

    def text(self, kind: Spoken, text: str) -> None:
        """Append to the open text of this kind, or start a new one."""
        if text:
            self._in_step()
            self._writer.say(kind, text)

    def end_text(self) -> None:
        """End the open text. The next text is a new part."""
        self._writer.end()

    def call(self, vendor_id: str, name: str, given: Json, title: str = "") -> None:
        """Add a call whose input is complete."""
        self._in_step()
        self._writer.end()
        parts = self._writer.parts
        number = len(parts.used)
        id = free_id(vendor_id or f"call_{parts.prefix}_{number}", parts.used, f"{vendor_id}#{parts.step}", number)
        head: JsonObject = {"toolCallId": id, "toolName": name or "tool", "providerExecuted": True, "dynamic": True}
        if title:
            head["title"] = title
        head["toolMetadata"] = {"vendorId": vendor_id}
        self._writer.chunks += [{"type": "tool-input-start", **head}, {"type": "tool-input-available", **head, "input": given}]
        writer = Writer(parts._replace(used=(*parts.used, id)))
        writer.chunks = self._writer.chunks
        self._writer = writer
        self._said = self._said._replace(open=(*self._said.open, (vendor_id, id)))

    def output(self, vendor_id: str, text: str, *, failed: bool = False) -> None:
        """Add the output of a call; ignore an unknown call."""
        known = next((call for call in reversed(self._said.open) if call[0] == vendor_id), None)
        if known is None:
            return
        self._writer.chunks.append(tool_error(known[1], text or "failed") if failed else tool_output(known[1], text))
        self._said = self._said._replace(open=tuple(call for call in self._said.open if call != known), answered=True)

    def close(self, ended: Ended) -> tuple[Chunk, ...]:
        """Close everything that is open. Return all chunks."""
        self._writer.end()
        why = "cancelled before it ended" if ended == "cancelled" else "the agent ended without saying what came of this call"
        self._writer.chunks += [tool_error(id, why) for _, id in self._said.open]
        self._said = self._said._replace(open=())
        self.end_step()
        return self.chunks

    def _in_step(self) -> None:
        """Start a step if none is open, or if all calls in the open step have outputs, because some agents don't report steps."""
        if not self._said.step or (self._said.answered and not self._said.open):
            self.step()


def _failed(error: JsonObject | None, ended: Ended, *, agent: str, over: bool) -> Failure | None:
    if error is not None:
        return Failure.from_json(error)
    return Failure(f"{agent} ended before its answer was whole", "cut") if not over and ended != "cancelled" else None


def _with_noise(facts: JsonObject | None, noise: int) -> JsonObject:
    return {**(facts or {}), **({"noise_lines": noise} if noise else {})}


class GeminiState(NamedTuple):
    said: HeadlessState
    facts: JsonObject | None = None
    status: str = ""
    usage: JsonObject | None = None
    error: JsonObject | None = None
    notes: int = 0
    noise: int = 0


class GeminiStream:
    """Translator for `gemini -o stream-json`. It also works for Qwen Code, which is a fork of Gemini CLI."""

    name = "gemini-stream-json"
    version = 1

    def open(self, options: ExchangeOptions) -> GeminiState:
        return GeminiState(HeadlessState(begin(options)))

    def feed(self, state: GeminiState, raw: Raw) -> tuple[GeminiState, tuple[Chunk, ...]]:
        event = message_of(raw)
        if event is None:
            return (state._replace(noise=state.noise + 1) if raw.strip() else state), ()
        writer = HeadlessWriter(state.said)
        match event.get("type"):
            case "init":
                facts: JsonObject = {"session": event.get("session_id"), "model": event.get("model")}
                state = state._replace(facts={name: value for name, value in facts.items() if isinstance(value, str) and value})
            case "message" if event.get("role") == "assistant":
                if event.get("delta") is not True:
                    writer.end_text()
                writer.text("text", as_text(event.get("content")))
            case "tool_use":
                arguments: Json = event.get("parameters") if event.get("parameters") is not None else {}
                writer.call(as_text(event.get("tool_id")), as_text(event.get("tool_name")), arguments)
            case "tool_result":
                text = as_text(event.get("output")) or as_text(as_object(event.get("error")).get("message"))
                writer.output(as_text(event.get("tool_id")), text, failed=event.get("status") == "error")
            case "error":
                return _warned(state, event)
            case "result":
                state = _over(state, event)
            case _:
                pass
        return state._replace(said=writer.said), writer.chunks

    def close(self, state: GeminiState, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        error = _failed(state.error, ended, agent="gemini", over=bool(state.status))
        reason = "error" if error is not None else "stop" if state.status else "other"
        ending = Ending(
            reason, state.status or None, Usage.from_json(state.usage or {}), None, error, _with_noise(state.facts, state.noise)
        )
        return HeadlessWriter(state.said).close(ended), ending


def _warned(state: GeminiState, event: JsonObject) -> tuple[GeminiState, tuple[Chunk, ...]]:
    """Add a warning as a note. An error may still be followed by a successful result, which then counts."""
    text = as_text(event.get("message"))
    if event.get("severity") == "error":
        return state._replace(error=failure(event).to_json()), ()
    note = data("note", {"text": text}, id=f"{state.said.parts.prefix}:note:{state.notes}")
    return state._replace(notes=state.notes + 1), (note,) if text else ()


def _over(state: GeminiState, event: JsonObject) -> GeminiState:
    stats, status = as_object(event.get("stats")), as_text(event.get("status")) or "success"
    usage = Usage(count(stats.get("input_tokens")), count(stats.get("output_tokens")), count(stats.get("cached")))
    error = failure(event.get("error") or event).to_json() if status == "error" else None
    return state._replace(status=status, usage=usage.to_json(), error=error)


class OpencodeState(NamedTuple):
    said: HeadlessState
    session: str = ""
    reason: str = ""
    usage: JsonObject | None = None
    cost: int | None = None
    error: JsonObject | None = None
    noise: int = 0


class OpencodeRun:
    name = "opencode-run"
    version = 1

    def open(self, options: ExchangeOptions) -> OpencodeState:
        return OpencodeState(HeadlessState(begin(options)))

    def feed(self, state: OpencodeState, raw: Raw) -> tuple[OpencodeState, tuple[Chunk, ...]]:
        event = message_of(raw)
        if event is None:
            return (state._replace(noise=state.noise + 1) if raw.strip() else state), ()
        writer, part = HeadlessWriter(state.said), as_object(event.get("part"))
        state = state._replace(session=as_text(event.get("sessionID")) or state.session)
        match event.get("type"):
            case "step_start":
                writer.step()
                state = state._replace(reason="")
            case "text":
                writer.end_text()
                writer.text("text", as_text(part.get("text")))
            case "reasoning":
                writer.end_text()
                writer.text("reasoning", as_text(part.get("text")))
            case "tool_use":
                _call(writer, part)
            case "step_finish":
                writer.end_step()
                state = _counted(state, part)
            case "error":
                error = as_object(event.get("error"))  # opencode sends the name of an error, and describes it in `data`
                inside = as_object(error.get("data"))
                state = state._replace(error=failure({**error, **inside} if inside else event.get("error")).to_json())
            case _:
                pass
        return state._replace(said=writer.said), writer.chunks

    def close(self, state: OpencodeState, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        # if a permission is refused, the program ends after a step that should have continued
        error = _failed(state.error, ended, agent="opencode", over=state.reason not in ("", "tool-calls"))
        reason = "error" if error is not None else state.reason if state.reason in FINISH_REASONS else "other"
        facts = _with_noise({"session": state.session} if state.session else {}, state.noise)
        ending = Ending(reason, state.reason or None, Usage.from_json(state.usage or {}), state.cost, error, facts)
        return HeadlessWriter(state.said).close(ended), ending


def _call(writer: HeadlessWriter, part: JsonObject) -> None:
    state, id = as_object(part.get("state")), as_text(part.get("callID"))
    arguments: Json = state.get("input") if state.get("input") is not None else {}
    writer.call(id, as_text(part.get("tool")), arguments, as_text(state.get("title")))
    match state.get("status"):
        case "completed":
            writer.output(id, as_text(state.get("output")))
        case "error":
            writer.output(id, as_text(state.get("error")), failed=True)
        case _:
            pass


def _counted(state: OpencodeState, part: JsonObject) -> OpencodeState:
    tokens, cost = as_object(part.get("tokens")), nano_dollars(part.get("cost"))
    cache = as_object(tokens.get("cache"))
    counted: JsonObject = {
        "inputTokens": tokens.get("input"),
        "outputTokens": tokens.get("output"),
        "cachedReadTokens": cache.get("read"),
        "cachedWriteTokens": cache.get("write"),
        "thoughtTokens": tokens.get("reasoning"),
        "totalTokens": tokens.get("total"),
    }
    usage = Usage.from_json(state.usage or {}) + usage_of({"usage": counted})
    known = state.cost if cost is None else (state.cost or 0) + cost
    return state._replace(usage=usage.to_json(), cost=known, reason=as_text(part.get("reason")))


_TYPES = {"collabToolCall": "collabAgentToolCall"}
_TALK = frozenset({"agentMessage", "reasoning"})
_STATES = {"in_progress": "inProgress"}


class CodexExec:
    """Translator for `codex exec --json`: complete items without deltas, with names in snake_case.

    The end of a model call is not marked, so text or reasoning after a tool call starts the next model call. Tokens are reported once, at
    the end of the turn. In a resumed session, they include earlier turns, so the usage stays unknown.
    """

    name = "codex-exec"
    version = 2
    """Version 2 reports a call as failed if it was declined without asking the user."""

    def open(self, options: ExchangeOptions) -> State:
        facts: JsonObject = {"resumed": True} if options.extra.get("resumed") is True else {}
        return State(options.prefix, options.tool_call_ids, facts=facts)

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        try:
            event = canonical.loads(raw)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            return (state._replace(lost=state.lost + 1) if raw.strip() else state), ()
        line = Line(state)
        _take(line, event)
        return line.state, tuple(line.chunks)

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        return close(state._replace(facts={name: value for name, value in state.facts.items() if name != "resumed"}), ended)


def _take(line: Line, event: JsonObject) -> None:
    item = _item(as_object(event.get("item")))
    match event.get("type"):
        case "thread.started":
            line.know(session_id=as_text(event.get("thread_id")))
        case "item.started":
            _step(line, item)
            line.started(item)
        case "item.updated" | "item.completed" if item.get("type") == "todoList":
            steps = map(as_object, as_list(item.get("items")))
            items: list[Json] = [{**step, "status": "completed" if step.get("completed") is True else ""} for step in steps]
            line.chunks.append(data("plan", plan_of(items, "text"), id="plan"))
        case "item.completed":
            _step(line, item)
            line.completed(item)
            line.state = line.state._replace(counted=line.state.counted or (line.state.step and item.get("type") not in _TALK))
        case "turn.completed":
            if not line.state.facts.get("resumed"):
                line.add(codex_usage_of(as_object(event.get("usage"))))
            line.over("completed", None)
        case "turn.failed":
            line.over("failed", failure_of(as_object(event.get("error"))))
        case "error":
            line.state = line.state._replace(error=failure_of(event).to_json())
        case _:
            pass


def _step(line: Line, item: JsonObject) -> None:
    """Let a tool call continue the open step. Only text or reasoning after a call's output starts the next step."""
    if item.get("type") not in _TALK and line.state.step:
        line.state = line.state._replace(counted=False)


def _item(item: JsonObject) -> JsonObject:
    """Return the item with the field names of the app-server."""
    fields: JsonObject = {camel(name): value for name, value in item.items()}
    kind = camel(as_text(item.get("type")))
    fields["type"] = _TYPES.get(kind, kind)
    status = as_text(item.get("status"))
    if status:
        fields["status"] = _STATES.get(status, status)
    return fields
