"""A text in the person's own editor. Whatever the editor does, what was written in it is not lost.

The file lies in a private folder below `state/drafts` of the home from the first moment on, and is removed only when its text was read
back: an editor that dies, a terminal that hangs up, or an end of moot itself leave it where it can be taken up.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import stat
import sys
import tempfile
import termios
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread

from moot.cli.output import Output
from moot.config.home import home_of
from moot.errors import MootError, UsageError
from moot.guard.processes import foreground

LONGEST = 10 * 1024 * 1024
"""Bytes that are read back; no model reads more."""
AT_ONCE = 1.0
"""Seconds. An editor that took less and changed nothing has probably opened a window and not waited for it."""
_FALLBACKS = ("nano", "vi")
_FIX = "Name an editor in VISUAL or EDITOR, as in: export EDITOR=nano"
_HELD = (signal.SIGINT, signal.SIGQUIT)
_NORMAL_SCREEN = "\x1b7\x1b[?1049l\x1b[?25h\x1b[0m"
"""For a terminal that a killed editor left: its own screen away, cursor shown, colours off. The cursor stays where none had been."""


@dataclass(frozen=True, slots=True)
class Editor:
    """Which program, and who named it."""

    command: tuple[str, ...]
    named_by: str


async def edit_text(text: str, *, suffix: str = ".md", output: Output, again: str = "moot run < {path}") -> str | None:
    """The text as the person left it in their editor; None when they changed nothing.

    A running prompt-toolkit application is suspended meanwhile. Raises UsageError when there is no editor, MootError when it failed or
    its text cannot be used; the error says where that text lies, and `again` how to go on with it (with `{path}` in it).
    """
    editor = find_editor(os.environ, attended=output.attended)
    text = text.encode("utf-8", "replace").decode()
    path = await anyio.to_thread.run_sync(partial(_write, home_of(os.environ) / "state" / "drafts", text, suffix))
    started = time.monotonic()
    try:
        async with _suspended():
            status = await _run(editor, path, output)
        if status:
            raise MootError(f"the editor {shlex.join(editor.command)!r} {_ended(status)}")
        edited = await anyio.to_thread.run_sync(partial(_read, path, text))
    except BaseException as error:
        where = await _keep(path, text)
        if isinstance(error, UsageError):  # it did not even start
            raise
        if not isinstance(error, MootError):
            output.say(f"moot: the text is kept in {where}" if where else "moot: nothing was changed in the editor", "yellow")
            raise
        if not where:
            raise MootError(f"{error.message}; nothing was changed") from error
        raise MootError(f"{error.message}; the text is kept in {where}", fix=f"Go on with it: {again.format(path=where)}") from error
    await anyio.to_thread.run_sync(partial(shutil.rmtree, path.parent, ignore_errors=True))
    if edited != text:
        return edited
    if time.monotonic() - started < AT_ONCE:
        words = f"nothing was changed, and {shlex.join(editor.command)!r} ended at once"
        output.say(f"moot: {words}; if it opens a window it must wait for it, as in EDITOR='code --wait'", "yellow")
    return None


async def keep_text(text: str, *, suffix: str = ".md") -> str:
    """Puts a text where an editor's lie that could not be used; its path, quoted for a shell."""
    return shlex.quote(str(await anyio.to_thread.run_sync(partial(_write, home_of(os.environ) / "state" / "drafts", text, suffix))))


def find_editor(environ: Mapping[str, str], *, attended: bool) -> Editor:
    """VISUAL, then EDITOR (first, on a terminal that can't draw), then what is usual. Raises UsageError."""
    names = ("VISUAL", "EDITOR") if environ.get("TERM", "") != "dumb" else ("EDITOR", "VISUAL")
    for name in names:
        if value := environ.get(name, "").strip():
            try:
                return Editor(tuple(shlex.split(value)), name)
            except ValueError as error:
                raise UsageError(f"{name} holds no command: {value!r}: {error}", fix=_FIX) from error
    for program in _FALLBACKS if attended else ():
        if found := shutil.which(program, path=environ.get("PATH")):
            return Editor((found,), "")
    raise UsageError("no editor is named by VISUAL or EDITOR" + (", and neither nano nor vi is here" if attended else ""), fix=_FIX)


# ── running it ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _run(editor: Editor, path: Path, output: Output) -> int:
    """Its exit status; minus the signal that ended it. It shares our process group: Ctrl+Z stops both, `fg` goes on with both."""
    command = [*editor.command, str(path)]
    stdout = None if output.stdout_terminal else sys.stderr  # where stdout carries data, the editor's own words do not belong there
    with _terminal_kept():
        try:
            process = await foreground(command, stdout=stdout)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = error.strerror if isinstance(error, OSError) else str(error)
            named = f" of {editor.named_by}" if editor.named_by else ""
            raise UsageError(f"the editor {editor.command[0]!r}{named} does not start: {reason}", fix=_FIX) from error
        async with process:
            # only now: what is ignored stays ignored in a child, and Ctrl+C is the editor's
            with _ignored():
                status = await process.wait()
    if status < 0 and output.stdout_colour:
        output.data(_NORMAL_SCREEN)
    return status


@contextmanager
def _ignored() -> Generator[None, None, None]:
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _HELD}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def _terminal_kept() -> Generator[None, None, None]:
    """The terminal's modes are afterwards what they were, whoever left them otherwise."""
    if not sys.stdin.isatty():
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        yield
    finally:
        if termios.tcgetattr(descriptor) != before:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@asynccontextmanager
async def _suspended() -> AsyncGenerator[None, None]:
    # whoever has an application running has imported this; nobody else should wait for it
    module: Any = sys.modules.get("prompt_toolkit.application.run_in_terminal")
    if module is None:
        yield
        return
    async with cast("AbstractAsyncContextManager[None]", module.in_terminal()):
        yield


def _ended(status: int) -> str:
    if status > 0:
        return f"ended with {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


# ── the file ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _write(drafts: Path, text: str, suffix: str) -> Path:
    """A new file of its own, in a folder of its own: editors leave other files beside it."""
    try:
        drafts.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = Path(tempfile.mkdtemp(prefix="edit-", dir=drafts)) / f"draft{suffix}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write((text if not text or text.endswith("\n") else text + "\n").encode("utf-8", "replace"))
    except OSError as error:
        raise MootError(f"cannot write a file for the editor in {str(drafts)!r}: {error.strerror}") from error
    return path


def _read(path: Path, before: str) -> str:
    """What the editor left, without the newline that every editor adds if the text had none at its end."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise MootError("the editor left something that is no file")
            data = file.read(LONGEST + 1)
    except OSError as error:
        raise MootError(f"the editor left no file that can be read: {error.strerror}") from error
    if len(data) > LONGEST:
        raise MootError(f"the editor left more than {LONGEST >> 20} MiB; no model reads that much")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise MootError(f"what the editor saved is not UTF-8 (line {line}, byte {error.start})") from error
    return text if before.endswith("\n") else text.removesuffix("\n")


async def _keep(path: Path, text: str) -> str:
    """Where there is something to keep, quoted for a shell; empty = nothing was written, and the folder is gone."""
    with anyio.CancelScope(shield=True):
        if await anyio.to_thread.run_sync(partial(_is_changed, path, text)):
            return shlex.quote(str(path))
        await anyio.to_thread.run_sync(partial(shutil.rmtree, path.parent, ignore_errors=True))
    return ""


def _is_changed(path: Path, text: str) -> bool:
    try:
        if not path.is_file():  # reading a pipe would never end
            return False
        return path.stat().st_size > LONGEST or path.read_bytes().rstrip(b"\n") != text.encode().rstrip(b"\n")
    except OSError:
        return False
