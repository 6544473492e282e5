"""One run's events, or stored messages, as the text of a terminal: what is finished once and for all, and what still moves."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from moot.cli.screen.calls import Calls
from moot.cli.screen.cards import Folded
from moot.cli.screen.look import Look
from moot.cli.screen.pieces import Note, Piece, Reasoning, Text, Typed
from moot.cli.screen.styles import BAD, BOLD, DIM, PLAIN, WARNING, Style
from moot.cli.times import moment
from moot.types.canonical import Json
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.message import Message
from moot.types.part import Part, PlanEntry, is_tool, note_of, plan_line, plan_of, sub_agent_words

__all__ = ["Transcript"]

_REMEMBERED = 100
"""Folded things that can still be opened."""


class Transcript:
    """Draws, and does nothing else: time comes with the events and with `live`, lines go out through `take` and `live`.

    `reveal` says how the call of a number can be seen whole (0 = reasoning; empty = there is no way); `calls_before` is how many calls the
    conversation has already; `announces`: nobody looks at `live`, so a call is told also when it begins.
    """

    def __init__(self, look: Look, *, reveal: Callable[[int], str] | None = None, calls_before: int = 0, announces: bool = False) -> None:
        self.look = look
        self._reveal = reveal or _by_key
        self._pieces: deque[Piece] = deque()
        self._texts: dict[str, Text] = {}
        self._thoughts: dict[str, Reasoning] = {}
        self._folded: deque[Folded] = deque(maxlen=_REMEMBERED)
        self._calls = Calls(self._pieces.append, self._folded.append, self._reveal, calls_before, announces=announces)
        self._last = ""
        """The kind of piece that was taken from last."""
        self._note = ""
        self._plan: list[str] = []
        """What was last shown of it."""
        self._now = 0

    @property
    def folded(self) -> Sequence[Folded]:
        """What was not shown whole, newest last."""
        return tuple(self._folded)

    @property
    def busy(self) -> bool:
        """Whether something runs whose time is shown."""
        return self._calls.busy or bool(self._thoughts)

    def resize(self, width: int) -> None:
        """What is drawn from here on fits that many columns; what was taken stays as it is."""
        self.look = self.look.resized(width)
        for piece in self._pieces:
            piece.resize(self.look)

    def feed(self, event: Event) -> None:
        """The next event of the run."""
        self._now = event.at or self._now
        for chunk in event.chunks:
            self._chunk(chunk, event)

    def message(self, message: Message) -> None:
        """A stored message, drawn whole."""
        state = "" if message.status == "finished" else f" · {message.status}"
        dash = self.look.sign("──", "--")
        title = f"{dash} {message.role} · {moment(message.created_at)}{state}"
        self._say(title if self.look.unicode else title.replace("·", "-"), DIM, kind="head")
        for part in message.parts:
            self._part(part, plain=message.role != "assistant")
        self._metadata(message.metadata)
        self.end()
        self._note = ""

    def take(self) -> str:
        """What was finished since the last time: lines that end in a newline, to be printed once; empty when there is nothing."""
        lines: list[str] = []
        while self._pieces:
            piece = self._pieces[0]
            over = piece.over
            taken = piece.take()
            if taken:
                if self._apart(piece):
                    lines.append("")
                self._last = piece.kind
                lines += map(self.look.painted, taken)
            if not over:
                break
            self._pieces.popleft()
        return "".join(line + "\n" for line in lines)

    def live(self, height: int, now: float | None = None) -> list[str]:
        """At most so many lines of what still moves, as it is at that time (seconds since the epoch; None = when the last event came)."""
        moving = self._now if now is None else int(now * 1_000_000)
        lines: list[str] = []
        last = self._last
        for piece in self._pieces:
            shown = piece.live(moving)
            if shown:
                if last and (last != piece.kind or piece.kind == "head"):
                    lines.append("")
                last = piece.kind
                lines += map(self.look.painted, shown)
        return lines[-height:] if height > 0 else []

    def end(self) -> None:
        """The run is over, or waits: everything open is finished as it stands."""
        for text in self._texts.values():
            text.end()
        for thoughts in self._thoughts.values():
            thoughts.end(self._now)
        self._calls.end()
        self._texts, self._thoughts = {}, {}

    def _apart(self, piece: Piece) -> bool:
        return bool(self._last) and (self._last != piece.kind or piece.kind == "head")

    # ── chunks ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _chunk(self, chunk: Chunk, event: Event) -> None:
        kind = str(chunk.get("type", ""))
        match kind:
            case "text-delta":
                self._text(str(chunk.get("id", "")), str(chunk.get("delta", "")))
            case "text-end":
                self._end_text(str(chunk.get("id", "")))
            case "reasoning-delta":
                self._reason(str(chunk.get("id", "")), str(chunk.get("delta", "")))
            case "reasoning-end":
                if thoughts := self._thoughts.pop(str(chunk.get("id", "")), None):
                    thoughts.end(self._now)
            case "message-metadata" | "start" | "finish":
                self._metadata(chunk.get("messageMetadata"))
            case "error":
                self._say(f"error: {chunk.get('errorText', '')}", BAD)
            case "abort":
                self._say(f"stopped: {chunk['reason']}" if chunk.get("reason") else "stopped", WARNING)
            case _ if kind.startswith("tool-"):
                self._calls.feed(self.look, chunk, event)
            case _:
                self._aside(kind, chunk)

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

    def _reason(self, id: str, delta: str) -> None:
        thoughts = self._thoughts.get(id)
        if thoughts is None:
            thoughts = self._thoughts[id] = Reasoning(self.look, self._now, self._folded.append, self._reveal(0))
            self._pieces.append(thoughts)
        if delta.strip():
            self._calls.close_group()
        thoughts.feed(delta)

    def _put(self, piece: Piece) -> None:
        """Places what is no call."""
        self._calls.close_group()
        self._pieces.append(piece)

    # ── what is neither text nor call ─────────────────────────────────────────────────────────────────────────────────────────

    def _say(self, text: str, style: Style = PLAIN, *, kind: str = "note") -> None:
        self._put(Note(self.look, text, style, kind=kind))

    def _metadata(self, metadata: Json) -> None:
        """A model's note (that it is very small, that it is no model at all) is shown beside its answer, once."""
        note = metadata.get("note") if isinstance(metadata, dict) else None
        if isinstance(note, str) and note != self._note:
            self._note = note
            self._say(f"note: {note}", WARNING)

    def _aside(self, kind: str, what: Chunk | Part) -> None:
        match kind:
            case "file" | "reasoning-file":
                self._say(f"[{what.get('filename') or 'file'}, {what.get('mediaType', 'unknown')}]", DIM)
            case "source-url":
                title = what.get("title")
                self._say(f"source: {title} ({what.get('url', '')})" if title else f"source: {what.get('url', '')}", DIM)
            case "source-document":
                self._say(f"source: {what.get('title', '')}", DIM)
            case "data-note":
                self._say(note_of(what), WARNING)
            case "data-plan":
                self._planned(plan_of(what))
            case "data-subagent" if not (said := sub_agent_words(what)).thought:
                self._say(f"{said.agent}: {said.text}", DIM)
            case "data-attempt":
                self._say("the answer broke off here and was begun again", WARNING)
            case "steering-message":
                self._steered(what.get("parts"))
            case "data-steering":
                data = what.get("data")
                self._steered(data.get("parts") if isinstance(data, dict) else None)
            case _:
                pass

    def _planned(self, plan: tuple[PlanEntry, ...]) -> None:
        """A new plan whole, and what has become of one in a line."""
        if [entry.content for entry in plan] == self._plan:
            self._say(plan_line(plan), DIM)
            return
        self._plan = [entry.content for entry in plan]
        signs = {"completed": self.look.sign("✓", "x"), "in_progress": self.look.sign("▸", ">")}
        for entry in plan:
            self._say(f"{signs.get(entry.status, self.look.sign('·', '-'))} {entry.content}", DIM)

    def _steered(self, parts: Json) -> None:
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, dict) and isinstance(text := part.get("text"), str):
                self._say(f"{self.look.sign('❯', '>')} {text}", BOLD)

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
                self._reason("", text)
                if thoughts := self._thoughts.pop("", None):
                    thoughts.end(0)
            case _ if is_tool(part):
                self._calls.stored(self.look, part)
            case _:
                self._aside(kind, part)


def _by_key(_number: int) -> str:
    return "Ctrl+O"
