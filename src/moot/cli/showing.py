"""A run's events on stdout: text for people and pipes, `--json`, `--jsonl`, `--ui`."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from moot.cli.errors import to_json
from moot.cli.output import Output
from moot.convert.events import event_json
from moot.convert.versions import for_version
from moot.guard.terminal import Cleaner, clean
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.message import Message
from moot.types.part import note_of, plan_line, plan_of, sub_agent_words, text_of
from moot.types.run import Run

INPUT_CHARACTERS = 160


class Show(Protocol):
    """How one run is shown."""

    async def event(self, event: Event) -> None:
        """Called for each event of the run, in order."""
        ...

    async def end(self, run: Run, message: Message | None) -> None:
        """Called once with the run as it stands at the end."""
        ...


@runtime_checkable
class OnScreen(Protocol):
    """What a Show has besides when it redraws lines of a terminal."""

    def begin(self, conversation: str, calls_before: int) -> None:
        """Called before the first event, with how many tool calls the conversation has already."""
        ...

    async def keep(self) -> None:
        """Draws from time to time, until it is cancelled."""
        ...

    async def pause(self) -> None:
        """Called before somebody else takes the terminal; the next event takes it back."""
        ...

    def leave(self) -> None:
        """Called instead of `end` when the watching ends before the run does."""
        ...


class ShowText:
    """The bare answer as it comes, for a pipe. Tools and reasoning go to stderr."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._ends_line = True
        self._thinking: Cleaner | None = None
        self._note = ""
        self._tools: dict[str, str] = {}

    async def event(self, event: Event) -> None:
        for chunk in event.chunks:
            match chunk.get("type"):
                case "text-delta":
                    await self._text(str(chunk.get("delta", "")))
                case "text-end":
                    await self._end_text()
                case "reasoning-delta":
                    self._reason(str(chunk.get("delta", "")))
                case "reasoning-end":
                    self._end_reasoning()
                case _:
                    self._aside(chunk)

    async def end(self, run: Run, message: Message | None) -> None:
        self._end_reasoning()
        await self._end_text()
        if self._output.stderr_terminal and (line := summary(run, message)):
            self._output.say(line, "dim")

    async def _text(self, text: str) -> None:
        self._end_reasoning()
        if not text:
            return
        self._ends_line = text.endswith("\n")
        await self._output.stream(text)

    async def _end_text(self) -> None:
        if not self._ends_line:
            self._ends_line = True
            await self._output.stream("\n")

    def _reason(self, text: str) -> None:
        if not self._output.stderr_terminal:
            return
        if self._thinking is None:
            self._thinking = Cleaner()
        self._output.mutter(self._thinking.feed(text))

    def _end_reasoning(self) -> None:
        if self._thinking is not None:
            self._output.mutter(self._thinking.end() + "\n")
            self._thinking = None

    def _aside(self, chunk: Chunk) -> None:
        call = str(chunk.get("toolCallId", ""))
        match chunk.get("type"):
            case "tool-input-available":
                self._tools[call] = str(chunk.get("toolName", ""))
                self._tell(f"→ {self._tools[call]} {brief(chunk.get('input'))}", "cyan")
            case "tool-input-error":
                self._tell(f"→ {chunk.get('toolName', '')}: {first_line(chunk.get('errorText'))}", "yellow")
            case "tool-output-error":
                self._tell(f"  {self._tools.get(call, 'tool')} failed: {first_line(chunk.get('errorText'))}", "yellow")
            case "tool-output-denied":
                self._tell(f"  {self._tools.get(call, 'tool')}: denied", "yellow")
            case "data-note":
                self._tell(f"  {note_of(chunk)}", "yellow")
            case "data-plan":
                self._tell(f"  {plan_line(plan_of(chunk))}", "dim")
            case "data-subagent" if not (said := sub_agent_words(chunk)).thought:
                self._tell(f"  {said.agent}: {first_line(said.text)}", "dim")
            case "data-attempt":
                self._tell("  the answer broke off; trying again", "yellow")
            case "message-metadata" | "start" | "finish":
                self._label(chunk.get("messageMetadata"))
            case _:
                pass

    def _label(self, metadata: Json) -> None:
        """A model's note (that it is very small, that it is no model at all) is shown beside its answer, once."""
        note = metadata.get("note") if isinstance(metadata, dict) else None
        if isinstance(note, str) and note != self._note:
            self._note = note
            self._tell(f"note: {note}", "yellow")

    def _tell(self, line: str, style: str) -> None:
        self._end_reasoning()
        self._output.say(line, style)


class ShowJson:
    """One document at the end."""

    def __init__(self, output: Output) -> None:
        self._output = output

    async def event(self, event: Event) -> None:
        return

    async def end(self, run: Run, message: Message | None) -> None:
        await self._output.stream(self._output.to_json(result(run, message)) + "\n")
        label(message, self._output)


class ShowEvents:
    """One event to a line, and the result as the last."""

    def __init__(self, output: Output) -> None:
        self._output = output

    async def event(self, event: Event) -> None:
        await self._output.stream(self._output.to_json(event_json(event)) + "\n")

    async def end(self, run: Run, message: Message | None) -> None:
        await self._output.stream(self._output.to_json({"kind": "result", **result(run, message)}) + "\n")
        label(message, self._output)


class ShowChunks:
    """One chunk to a line, as a client of version 6 takes them."""

    def __init__(self, output: Output) -> None:
        self._output = output

    async def event(self, event: Event) -> None:
        lines = [self._output.to_json(chunk) + "\n" for chunk in for_version(event.chunks, 6)]
        await self._output.stream("".join(lines))

    async def end(self, run: Run, message: Message | None) -> None:
        label(message, self._output)


def label(message: Message | None, output: Output) -> None:
    """Says what must be said beside a model's answer: that it is very small, that it is no model at all."""
    note = message.metadata.get("note") if message else None
    if isinstance(note, str):
        output.say(f"note: {note}", "yellow")


def result(run: Run, message: Message | None) -> JsonObject:
    """What a script gets of a run."""
    failure = run.error
    return {
        "schema_version": 1,
        "ok": run.status == "finished",
        "conversation": run.conversation,
        "run": run.id,
        "message": run.message,
        "status": run.status,
        "agent": run.agent,
        "model": _model(run, message),
        "text": text_of(message.parts) if message else "",
        "finish_reason": message.metadata.get("finish_reason") if message else None,
        "usage": run.usage.to_json(),
        "cost": run.cost,
        "note": message.metadata.get("note") if message else None,
        "error": to_json(failure.kind, failure.message, failure.fix, retryable=failure.retryable) if failure else None,
    }


def summary(run: Run, message: Message | None) -> str:
    """One line of figures: model, tokens, money, time, and how to go on."""
    usage = run.usage
    figures = [_model(run, message)]
    if usage.input is not None or usage.output is not None:
        figures.append(f"{usage.input or 0:,} in, {usage.output or 0:,} out")
    if run.cost is not None:
        figures.append(f"${run.cost / 1e9:.4f}")
    if run.started_at is not None and run.ended_at is not None:
        figures.append(f"{(run.ended_at - run.started_at) / 1000:.1f} s")
    figures.append(f"moot chat continue {run.conversation[:13]}")
    return " · ".join(figure for figure in figures if figure)


def brief(value: Json) -> str:
    """A tool's arguments on one line."""
    text = dumps(value).decode() if value else ""
    text = " ".join(clean(text).split())
    return text if len(text) <= INPUT_CHARACTERS else f"{text[: INPUT_CHARACTERS - 1]}…"


def first_line(value: Json) -> str:
    """The beginning of what went wrong."""
    text = str(value or "").strip().partition("\n")[0]
    return text if len(text) <= INPUT_CHARACTERS else f"{text[: INPUT_CHARACTERS - 1]}…"


def _model(run: Run, message: Message | None) -> str:
    metadata = message.metadata if message else {}
    model, provider = metadata.get("model"), metadata.get("provider")
    return f"{model}@{provider}" if isinstance(model, str) and isinstance(provider, str) else run.model
