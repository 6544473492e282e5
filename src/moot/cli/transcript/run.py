"""Runs and stored messages as terminal text: finished lines, and lines that still change."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from moot.cli.console.format import moment
from moot.cli.terminal.look import Look
from moot.cli.terminal.text import BAD, BOLD, DIM, PLAIN, WARNING, Style
from moot.cli.transcript.sections import Note, Piece, Reasoning, Summary, Text, Typed
from moot.cli.transcript.tool_calls import Calls
from moot.cli.transcript.tool_cards import Folded
from moot.convert.files.attachments import label_of
from moot.types.canonical import Json
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.message import (
    Message,
    Part,
    PlanEntry,
    is_settled,
    is_tool,
    note_of,
    plan_line,
    plan_of,
    sub_agent_words,
    transcript_line,
    wait_end,
)
from moot.types.part_tree import linked, parent_call
from moot.types.tree import COMPACTION_PART, summary_lines

_REMEMBERED = 100
"""Number of most recent folded outputs to keep, so that they can be shown in full."""


class Transcript:
    """A drawing of runs, made without I/O or a clock. Times come from the events and from `live`; lines are returned by `take` and `live`.

    `reveal` takes a call's number (0 for reasoning) and returns the key or command that shows the call in full, or an empty string if
    there is none. `calls_before` is the number of earlier tool calls in the conversation. Set `announces` if the lines of `live` are not
    displayed, so that a call is also printed when it starts.
    """

    def __init__(self, look: Look, *, reveal: Callable[[int], str] | None = None, calls_before: int = 0, announces: bool = False) -> None:
        self.look = look
        self._reveal: Callable[[int], str] = reveal or (lambda _: "Ctrl+O")
        self._pieces: deque[Piece] = deque()
        self._texts: dict[str, Text] = {}
        self._reasoning: dict[str, Reasoning] = {}
        self._folded: deque[Folded] = deque(maxlen=_REMEMBERED)
        self._calls = Calls(self._pieces.append, self._folded.append, self._reveal, calls_before, announces=announces)
        self._last = ""
        """The kind of the most recently printed piece."""
        self._note = ""
        self._sources: list[str] = []
        """URLs of the answer's sources. The answer cites them by their numbers, from 1."""
        self._plan: list[str] = []
        """The entries of the most recently shown plan."""
        self._now = 0
        self._until = 0
        """Time at which a waiting run continues, in µs since the epoch; 0 if the run isn't waiting for a certain time."""

    @property
    def folded(self) -> Sequence[Folded]:
        """Outputs that were not shown in full, newest last."""
        return tuple(self._folded)

    @property
    def busy(self) -> bool:
        """True if a duration that is still increasing is shown."""
        return self._calls.busy or bool(self._reasoning) or self._until > 0

    def resize(self, width: int) -> None:
        """Set the width for everything that is drawn from here on."""
        self.look = self.look.resized(width)
        for piece in self._pieces:
            piece.resize(self.look)

    def feed(self, event: Event) -> None:
        """Add the next event of the run."""
        self._now = event.at or self._now
        if event.chunks:
            self._until = 0
        for chunk in event.chunks:
            self._chunk(chunk, event)

    def message(self, message: Message) -> None:
        """Add a complete stored message."""
        state = "" if message.status == "finished" else f" · {message.status}"
        dash = self.look.sign("──", "--")
        title = f"{dash} {message.role} · {moment(message.created_at)}{state}"
        if not message.parts or message.parts[0].get("type") != COMPACTION_PART:
            self._add_note(title if self.look.unicode else title.replace("·", "-"), DIM, kind="head")
        self._sources = []
        for part in linked(message.parts):
            self._part(part, plain=message.role != "assistant")
        self._metadata(message.metadata)
        self.end()
        self._note = ""

    def resume(self, message: Message) -> None:
        """Add the unfinished tool calls of a run's answer. The rest of the answer has already been printed."""
        self._sources = list(dict.fromkeys(str(part.get("url")) for part in message.parts if part.get("type") == "source-url"))
        for part in linked(message.parts):
            if is_tool(part) and not is_settled(part):
                self._calls.stored(self.look, part)

    def take(self) -> str:
        """Return the lines finished since the last call, each ending in a newline. The caller prints them once."""
        lines: list[str] = []
        while self._pieces:
            piece = self._pieces[0]
            over = piece.over
            if taken := piece.take():
                if self._last and (self._last != piece.kind or piece.kind == "head"):
                    lines.append("")
                self._last = piece.kind
                lines += map(self.look.painted, taken)
            if not over:
                break
            self._pieces.popleft()
        return "".join(line + "\n" for line in lines)

    def live(self, height: int, now: float | None = None) -> list[str]:
        """Return at most `height` lines that can still change, as they look at `now` (in seconds since the epoch;
        None = time of the last event).
        """
        at = self._now if now is None else int(now * 1_000_000)
        lines: list[str] = []
        last = self._last
        for piece in self._pieces:
            if shown := piece.live(at):
                if last and (last != piece.kind or piece.kind == "head"):
                    lines.append("")
                last = piece.kind
                lines += map(self.look.painted, shown)
        if self._until:
            minutes, seconds = divmod(max(0, self._until - at) // 1_000_000, 60)
            lines.append(self.look.painted([(f"Continues in {minutes}:{seconds:02}", DIM)]))
        return lines[-height:] if height > 0 else []

    def end(self) -> None:
        """Finish everything that is open, because the run has ended or is waiting."""
        self._until = 0
        for text in self._texts.values():
            text.end()
        for reasoning in self._reasoning.values():
            reasoning.end(self._now)
        self._calls.end()
        self._texts, self._reasoning = {}, {}

    # ── chunks ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _chunk(self, chunk: Chunk, event: Event) -> None:
        kind = str(chunk.get("type", ""))
        match kind:
            case "text-delta":
                self._text(str(chunk.get("id", "")), str(chunk.get("delta", "")))
            case "text-end":
                self._end_text(str(chunk.get("id", "")))
            case "reasoning-delta":
                self._add_reasoning(str(chunk.get("id", "")), str(chunk.get("delta", "")))
            case "reasoning-end":
                if reasoning := self._reasoning.pop(str(chunk.get("id", "")), None):
                    reasoning.end(self._now)
            case "message-metadata" | "start" | "finish":
                self._sources = [] if kind == "start" else self._sources
                self._metadata(chunk.get("messageMetadata"))
            case "error":
                self._add_note(f"error: {chunk.get('errorText', '')}", BAD)
            case "abort":
                self._add_note(f"stopped: {chunk['reason']}" if chunk.get("reason") else "stopped", WARNING)
            case _ if kind.startswith("tool-"):
                self._calls.feed(self.look, chunk, event)
            case _:
                self._other(kind, chunk)

    def _text(self, id: str, delta: str) -> None:
        if not delta:
            return
        text = self._texts.get(id)
        if text is None:
            text = self._texts[id] = Text(self.look)
            self._put(text)
        text.feed(delta)

    def _end_text(self, id: str) -> None:
        if text := self._texts.pop(id, None):
            text.end()

    def _add_reasoning(self, id: str, delta: str) -> None:
        reasoning = self._reasoning.get(id)
        if reasoning is None:
            reasoning = self._reasoning[id] = Reasoning(self.look, self._now, self._folded.append, self._reveal(0))
            self._pieces.append(reasoning)
        if delta.strip():
            self._calls.close_group()
        reasoning.feed(delta)

    def _put(self, piece: Piece) -> None:
        """Append a piece that is not a tool call."""
        self._calls.close_group()
        self._pieces.append(piece)

    # ── notes and other parts ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _add_note(self, text: str, style: Style = PLAIN, *, kind: str = "note") -> None:
        self._put(Note(self.look, text, style, kind=kind))

    def _metadata(self, metadata: Json) -> None:
        """Show a note about the model, such as a warning that it is very small, unless the note has already been shown."""
        note = metadata.get("note") if isinstance(metadata, dict) else None
        if isinstance(note, str) and note != self._note:
            self._note = note
            self._add_note(f"note: {note}", WARNING)

    def _other(self, kind: str, part: Chunk | Part) -> None:  # noqa: C901
        match kind:
            case "file" | "reasoning-file":
                self._add_note(f"[{label_of(part)}]", DIM)
            case "source-url":
                url, title = str(part.get("url", "")), part.get("title")
                if url not in self._sources:
                    self._sources.append(url)
                    number = len(self._sources)
                    self._add_note(f"source [{number}]: {title} ({url})" if title else f"source [{number}]: {url}", DIM)
            case "source-document":
                self._add_note(f"source: {part.get('title', '')}", DIM)
            case "data-note":
                self._add_note(note_of(part), WARNING)
                self._until = wait_end(part) * 1000
            case "data-transcript":
                self._add_note(transcript_line(part), DIM)
            case "data-plan":
                self._add_plan(plan_of(part))
            case "data-compaction":
                self._put(Summary(self.look, summary_lines(part), self._folded.append))
            case "data-subagent":
                self._add_words(part)
            case "data-attempt":
                self._add_note("The answer was interrupted here and started again.", WARNING)
            case "steering-message":
                self._add_steering(part.get("parts"))
            case "data-steering":
                data = part.get("data")
                self._add_steering(data.get("parts") if isinstance(data, dict) else None)
            case _:
                pass

    def _add_words(self, part: Chunk | Part) -> None:
        """Show text from a sub-agent, together with the call that started the sub-agent if that call is known."""
        words = sub_agent_words(part)
        said = f"{words.agent}: {words.text}"
        if not words.thought and not self._calls.add_words(self.look, parent_call(part), said):
            self._add_note(said, DIM)

    def _add_plan(self, plan: tuple[PlanEntry, ...]) -> None:
        """Show a new plan in full, but only one line of progress for a plan that was already shown."""
        if [entry.content for entry in plan] == self._plan:
            self._add_note(plan_line(plan), DIM)
            return
        self._plan = [entry.content for entry in plan]
        signs = {"completed": self.look.sign("✓", "x"), "in_progress": self.look.sign("▸", ">")}
        for entry in plan:
            self._add_note(f"{signs.get(entry.status, self.look.sign('·', '-'))} {entry.content}", DIM)

    def _add_steering(self, parts: Json) -> None:
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, dict) and isinstance(text := part.get("text"), str):
                self._add_note(f"{self.look.sign('❯', '>')} {text}", BOLD)

    # ── stored parts ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _part(self, part: Part, *, plain: bool) -> None:
        kind = str(part.get("type", ""))
        text = str(part.get("text", ""))
        match kind:
            case "text" if plain:
                self._put(Typed(self.look, text))
            case "text":
                self._text("", text)
                self._end_text("")
            case "reasoning":
                self._add_reasoning("", text)
                if reasoning := self._reasoning.pop("", None):
                    reasoning.end(0)
            case _ if is_tool(part):
                self._calls.stored(self.look, part)
            case _:
                self._other(kind, part)
