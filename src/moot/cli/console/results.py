"""Output formats of a run: text, `--json`, `--jsonl` and `--ui`."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from moot.cli.console.lines import to_json
from moot.cli.console.output import Output
from moot.convert.serialization import event_json
from moot.convert.unfold import for_version
from moot.guard.terminal import Cleaner, clean
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.hooks import BLOCKED, hook_label
from moot.types.message import Message, model_ms, note_of, plan_line, plan_of, sub_agent_words, text_of, transcript_line
from moot.types.part_tree import parent_call
from moot.types.run import Run

INPUT_CHARACTERS = 160


class Show(Protocol):
    """Output format of one run."""

    async def event(self, event: Event) -> None:
        """Handle the next event of the run."""

    async def end(self, run: Run, message: Message | None) -> None:
        """Handle the end of the run. This is called once."""


@runtime_checkable
class OnScreen(Protocol):
    """Additional methods of a `Show` that redraws terminal lines."""

    def begin(self, conversation: str, calls_before: int) -> None:
        """Start drawing. `calls_before` is the number of tool calls in the conversation before this run."""

    async def keep(self) -> None:
        """Redraw the lines periodically until cancelled."""

    async def pause(self) -> None:
        """Release the terminal until the next event."""

    def leave(self) -> None:
        """Finish the output when the user detaches. This is called instead of `end` if the run is still active."""


class ShowText:
    """Text format for pipes: the plain answer on stdout, tool calls and reasoning on stderr."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._ends_line = True
        self._thinking: Cleaner | None = None
        self._note = ""
        self._tools: dict[str, str] = {}
        self._margins: dict[str, str] = {}
        """The indentation of each tool call, keyed by id. The calls of a sub-agent are indented below the call that started it."""

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
                    self._other_chunk(chunk)

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
        self._output.dim_text(self._thinking.feed(text))

    def _end_reasoning(self) -> None:
        if self._thinking is not None:
            self._output.dim_text(self._thinking.end() + "\n")
            self._thinking = None

    def _other_chunk(self, chunk: Chunk) -> None:
        call = str(chunk.get("toolCallId", ""))
        margin = self._margin(call, chunk)
        match chunk.get("type"):
            case "tool-input-available":
                made_by = hook_label(chunk)
                self._tools[call] = f"{chunk.get('toolName', '')}{f' ({made_by})' if made_by else ''}"
                self._print_status(f"{margin}→ {self._tools[call]} {brief(chunk.get('input'))}", "cyan")
            case "tool-input-error":
                self._print_status(f"{margin}→ {chunk.get('toolName', '')}: {first_line(chunk.get('errorText'))}", "yellow")
            case "tool-output-error":
                self._print_status(f"{margin}  {self._tools.get(call, 'tool')} failed: {first_line(chunk.get('errorText'))}", "yellow")
            case "tool-output-denied":
                self._print_status(f"{margin}  {self._tools.get(call, 'tool')}: denied", "yellow")
            case "data-note":
                self._print_status(f"  {note_of(chunk)}", "yellow")
            case "data-plan" | "data-transcript":
                self._print_status(f"  {transcript_line(chunk) or plan_line(plan_of(chunk))}", "dim")
            case "data-subagent" if not (text := sub_agent_words(chunk)).thought:
                self._print_status(f"{margin or '  '}{text.agent}: {first_line(text.text)}", "dim")
            case "data-attempt":
                self._print_status("  the answer was interrupted; retrying", "yellow")
            case "message-metadata" | "start" | "finish":
                self._label(chunk.get("messageMetadata"))
            case _:
                pass

    def _margin(self, call: str, chunk: Chunk) -> str:
        parent = self._margins.get(parent_call(chunk))
        margin = self._margins.get(call, "") if parent is None else f"{parent}  "
        if call:
            self._margins[call] = margin
        return margin

    def _label(self, metadata: Json) -> None:
        """Print a model's note once, for example that it is very small or only a demo."""
        note = metadata.get("note") if isinstance(metadata, dict) else None
        if isinstance(note, str) and note != self._note:
            self._note = note
            self._print_status(f"note: {note}", "yellow")

    def _print_status(self, line: str, style: str) -> None:
        self._end_reasoning()
        self._output.say(line, style)


class ShowJson:
    """JSON format: one document at the end."""

    def __init__(self, output: Output) -> None:
        self._output = output

    async def event(self, event: Event) -> None:
        return

    async def end(self, run: Run, message: Message | None) -> None:
        await self._output.stream(self._output.to_json(result(run, message)) + "\n")
        label(message, self._output)


class ShowEvents:
    """JSON Lines format: one event per line, and the result as the last line."""

    def __init__(self, output: Output) -> None:
        self._output = output

    async def event(self, event: Event) -> None:
        await self._output.stream(self._output.to_json(event_json(event)) + "\n")

    async def end(self, run: Run, message: Message | None) -> None:
        await self._output.stream(self._output.to_json({"kind": "result", **result(run, message)}) + "\n")
        label(message, self._output)


class ShowChunks:
    """Chunk format: one AI SDK 6 chunk per line of JSON."""

    def __init__(self, output: Output) -> None:
        self._output = output

    async def event(self, event: Event) -> None:
        lines = [self._output.to_json(chunk) + "\n" for chunk in for_version(event.chunks, 6)]
        await self._output.stream("".join(lines))

    async def end(self, run: Run, message: Message | None) -> None:
        label(message, self._output)


def label(message: Message | None, output: Output) -> None:
    """Print a model's note, for example that it is very small or only a demo."""
    note = message.metadata.get("note") if message else None
    if isinstance(note, str):
        output.say(f"note: {note}", "yellow")


def result(run: Run, message: Message | None) -> JsonObject:
    """Return the result of a run for scripts."""
    failure = run.error
    return {
        "schema_version": 1,
        "ok": run.status == "finished" and (message is None or message.metadata.get("finish_reason") != BLOCKED),
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
    """Return one line with the model, tokens, cost, duration of the model calls and the command that continues the conversation."""
    usage = run.usage
    figures = [_model(run, message)]
    if usage.input is not None or usage.output is not None:
        figures.append(f"{usage.input or 0:,} in, {usage.output or 0:,} out")
    if run.cost is not None:
        figures.append(f"${run.cost / 1e9:.4f}")
    if message is not None and (ms := model_ms(message.metadata)) is not None:
        figures.append(f"{ms / 1000:.1f} s")
    figures.append(f"moot chat continue {run.conversation[:13]}")
    return " · ".join(figure for figure in figures if figure)


def brief(value: Json) -> str:
    """Format a tool's arguments on one line."""
    text = dumps(value).decode() if value else ""
    text = " ".join(clean(text).split())
    return text if len(text) <= INPUT_CHARACTERS else f"{text[: INPUT_CHARACTERS - 1]}…"


def first_line(value: Json) -> str:
    """Return the first line of an error text, shortened if it is long."""
    text = str(value or "").strip().partition("\n")[0]
    return text if len(text) <= INPUT_CHARACTERS else f"{text[: INPUT_CHARACTERS - 1]}…"


def _model(run: Run, message: Message | None) -> str:
    metadata = message.metadata if message else {}
    model, provider = metadata.get("model"), metadata.get("provider")
    return f"{model}@{provider}" if isinstance(model, str) and isinstance(provider, str) else run.model
