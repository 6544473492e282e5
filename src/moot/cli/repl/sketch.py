"""A run's events as text: what is finished, and the line that still grows."""

from __future__ import annotations

from collections.abc import Sequence

from moot.cli.markdown import Markdown
from moot.cli.repl.looks import Look
from moot.cli.showing import brief, first_line
from moot.guard.terminal import Cleaner, clean
from moot.types.event import Event
from moot.types.message import Message
from moot.types.part import is_tool, tool_name


class Sketch:
    """One run, or one stored message."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._out: list[str] = []
        self._cleaner = Cleaner()
        self._markdown = Markdown(colour=look.colour)
        self._line = ""
        self.folded: Sequence[object] = ()

    def resize(self, width: int) -> None: ...
    def feed(self, event: Event) -> None:
        for chunk in event.chunks:
            match chunk.get("type"):
                case "text-delta":
                    self._put(self._markdown.feed(self._cleaner.feed(str(chunk.get("delta", "")))))
                case "text-end":
                    self._put(self._markdown.feed(self._cleaner.end()) + self._markdown.end())
                    self._close()
                case "tool-input-available":
                    self._close()
                    self._out.append(f"→ {clean(str(chunk.get('toolName')))} {brief(chunk.get('input'))}\n")
                case "tool-output-error" | "tool-input-error":
                    self._close()
                    self._out.append(f"  failed: {clean(first_line(chunk.get('errorText')))}\n")
                case "tool-output-denied":
                    self._close()
                    self._out.append("  denied\n")
                case _:
                    pass

    def message(self, message: Message) -> None:
        for part in message.parts:
            if part.get("type") == "text":
                m = Markdown(colour=self._look.colour)
                text = clean(str(part.get("text", "")))
                self._out.append(("› " + text if message.role == "user" else m.feed(text) + m.end()).rstrip("\n") + "\n")
            elif is_tool(part):
                self._out.append(f"→ {clean(tool_name(part))}\n")
        self._out.append("\n")

    def take(self) -> str:
        out, self._out = "".join(self._out), []
        return out

    def live(self, height: int) -> list[str]:
        return [self._line[-self._look.width + 1 :]] if self._line else []

    def end(self) -> None:
        self._put(self._markdown.feed(self._cleaner.end()) + self._markdown.end())
        self._close()

    def _put(self, text: str) -> None:
        whole, newline, rest = (self._line + text).rpartition("\n")
        if newline:
            self._out.append(whole + "\n")
        self._line = rest

    def _close(self) -> None:
        if self._line:
            self._out.append(self._line + "\n")
            self._line = ""
