"""The real `moot` on a real terminal: its output byte for byte, and the screen of a terminal emulator."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pyte

if TYPE_CHECKING:
    from e2e.cli_process import MootProcess

CLEARS = re.compile(rb"\x1b\[[23]J|\x1b\[\?1049h|\x1b\[\?47h|\x1bc")
"""Sequences that clear a whole screen or its scrollback, or switch to another screen."""


class _Screen(pyte.Screen):
    """A screen with a scrollback. It renders each line once, when it scrolls away, because a flood has too many lines."""

    scrollback: list[str]

    def reset(self) -> None:
        self.scrollback = []
        super().reset()

    def index(self) -> None:
        top, bottom = self.margins or (0, self.lines - 1)
        if self.cursor.y == bottom:
            self.scrollback.append("".join(self.buffer[top][at].data for at in range(self.columns)).rstrip())
        super().index()

    def erase_in_display(self, how: int = 0, *args: object, **options: object) -> None:
        if how == 3:
            self.scrollback = []
        super().erase_in_display(how, *args, **options)


class PtyScreen:
    """A process on a pseudo-terminal. `raw` has every byte it wrote, `lines` the visible screen, `history` the scrollback."""

    def __init__(self, moot: MootProcess, *arguments: str, rows: int = 24, columns: int = 80, term: str = "xterm-256color") -> None:
        self.child = moot.terminal(*arguments, term=term)
        self.raw = b""
        self._screen = _Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.resize(rows, columns)

    def resize(self, rows: int, columns: int) -> None:
        self._screen.resize(rows, columns)
        self.child.setwinsize(rows, columns)

    def read(self, seconds: float = 0.05) -> bytes:
        """Read output for that time."""
        taken = b""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                piece = self.child.read_nonblocking(65536, timeout=left)
            except pexpect.TIMEOUT:
                break
            except pexpect.EOF:
                break
            taken += piece
            self._answer(piece)
            self._stream.feed(piece)
        self.raw += taken
        return taken

    def _answer(self, piece: bytes) -> None:
        """Answer cursor position requests as a terminal does; prompt-toolkit sends them."""
        for _ in range(piece.count(b"\x1b[6n")):
            self.child.send(b"\x1b[%d;%dR" % (self._screen.cursor.y + 1, self._screen.cursor.x + 1))

    @property
    def lines(self) -> list[str]:
        """The visible lines without trailing blanks."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def history(self) -> list[str]:
        """Lines that have scrolled away, oldest first."""
        return self._screen.scrollback

    @property
    def text(self) -> str:
        """Scrollback and screen."""
        return "\n".join([*self.history, *self.lines])

    def wait_for(self, wanted: str, seconds: float = 60.0) -> str:
        """Return the whole text as soon as it contains the wanted text. Fail with the screen after the time limit."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if wanted in self.text:
                return self.text
            if not self.read(0.05) and not self.child.isalive():
                break
        self.read(0.05)
        assert wanted in self.text, f"{wanted!r} is not to be seen:\n{self.text}"
        return self.text

    def send(self, keys: str | bytes) -> None:
        self.child.send(keys)

    def wait_exit(self, seconds: float = 60.0) -> int:
        """Return the exit code, or minus the signal that ended the process."""
        end = time.monotonic() + seconds
        while self.child.isalive() and time.monotonic() < end:
            self.read(0.05)
        self.read(0.05)
        assert not self.child.isalive(), f"it still runs:\n{self.text}"
        self.child.close()
        return self.child.exitstatus if self.child.exitstatus is not None else -(self.child.signalstatus or 0)

    def kill(self, number: int) -> int:
        """Send a signal that ends moot, which may consist of two processes. Return like `wait_exit` when both have ended."""
        pid = self.child.pid
        children = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        self.child.kill(number)
        code, end = self.wait_exit(), time.monotonic() + 60
        while any(map(is_running, children)):
            assert time.monotonic() < end, "the conversation continues without its terminal"
            time.sleep(0.01)
        return code

    def close(self) -> None:
        self.child.close(force=True)


def is_running(process: int) -> bool:
    """Return true if the process exists and has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def wait_until(screen: PtyScreen, true: Callable[[], object], seconds: float = 60) -> None:
    """Read the screen until the function returns something true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"it did not come about:\n{screen.text}"
        screen.read(0.05)
