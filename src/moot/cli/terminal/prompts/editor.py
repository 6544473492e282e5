"""Editing of a text or a configuration file in the user's editor, without losing the text if something fails.

The file is created in a private folder below `state/drafts` in moot's home directory and removed only after its text was read back. If the
editor or moot crashes, or the terminal is closed, the file stays there.
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
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, cast

import anyio
import anyio.to_thread

from moot.cli.console.output import Output
from moot.cli.terminal.prompts.plain import confirm
from moot.config.home import home_of, lock_file, read_text, write_atomically
from moot.errors import ConfigError, MootError, UsageError
from moot.guard.processes import foreground

MAX_BYTES = 10 * 1024 * 1024
"""Largest file that is read back."""
AT_ONCE = 1.0
"""Seconds. An editor that exits sooner without a change has probably opened a window and did not wait for it."""
_FALLBACKS = ("nano", "vi")
_FIX = "Set VISUAL or EDITOR, for example: export EDITOR=nano"
_IGNORED = (signal.SIGINT, signal.SIGQUIT)
_NORMAL_SCREEN = "\x1b7\x1b[?1049l\x1b[?25h\x1b[0m"
"""Sequence that resets the terminal after an editor was killed: main screen, visible cursor, no colours."""


@dataclass(frozen=True, slots=True)
class Editor:
    """An editor command and the variable that names it."""

    command: tuple[str, ...]
    named_by: str


async def edit_text(text: str, *, suffix: str = ".md", output: Output, again: str = "moot run < {path}") -> str | None:
    """Return the edited text, or None if it was not changed.

    A running prompt-toolkit application is suspended meanwhile. Raise UsageError if there is no editor, and MootError if the editor fails
    or the edited text is not usable. The error names the saved file and the command to continue with: `again`, with the file as `{path}`.
    """
    editor = find_editor(os.environ, attended=output.attended)
    text = text.encode("utf-8", "replace").decode()
    path = await anyio.to_thread.run_sync(partial(_write, home_of(os.environ) / "state" / "drafts", text, suffix))
    started = time.monotonic()
    try:
        async with _suspended():
            status = await _run(editor, path, output)
        if status:
            raise MootError(f"The editor {shlex.join(editor.command)!r} {_status_text(status)}.")
        edited = await anyio.to_thread.run_sync(partial(_read, path, text))
    except BaseException as error:
        where = ""
        with anyio.CancelScope(shield=True):
            where = await anyio.to_thread.run_sync(_save, path, text)
        if isinstance(error, UsageError):  # the editor was not started
            raise
        if not isinstance(error, MootError):
            output.say(f"moot: the text is saved in {where}" if where else "moot: nothing was changed in the editor", "yellow")
            raise
        if not where:
            raise MootError(f"{error.message} Nothing was changed.") from error
        raise MootError(f"{error.message} The text is saved in {where}", fix=f"To continue, run {again.format(path=where)}") from error
    await anyio.to_thread.run_sync(partial(shutil.rmtree, path.parent, ignore_errors=True))
    if edited != text:
        return edited
    if time.monotonic() - started < AT_ONCE:
        ended = f"nothing was changed, and {shlex.join(editor.command)!r} ended immediately"
        output.say(f"moot: {ended}; an editor that opens a window must wait for it, for example EDITOR='code --wait'", "yellow")
    return None


async def save_text(text: str, *, suffix: str = ".md") -> str:
    """Save a text that could not be used next to the other drafts. Return its path, quoted for a shell."""
    return shlex.quote(str(await anyio.to_thread.run_sync(partial(_write, home_of(os.environ) / "state" / "drafts", text, suffix))))


def find_editor(environ: Mapping[str, str], *, attended: bool) -> Editor:
    """Return the editor named by VISUAL or EDITOR (EDITOR first on a dumb terminal), or nano or vi. Raise UsageError if there is none."""
    names = ("VISUAL", "EDITOR") if environ.get("TERM", "") != "dumb" else ("EDITOR", "VISUAL")
    for name in names:
        if value := environ.get(name, "").strip():
            try:
                return Editor(tuple(shlex.split(value)), name)
            except ValueError as error:
                raise UsageError(f"{name} is not a valid command: {value!r} ({error})", fix=_FIX) from error
    for program in _FALLBACKS if attended else ():
        if found := shutil.which(program, path=environ.get("PATH")):
            return Editor((found,), "")
    raise UsageError(
        "No editor found: VISUAL and EDITOR are not set" + (", and neither nano nor vi is installed." if attended else "."), fix=_FIX
    )


# ── running it ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _run(editor: Editor, path: Path, output: Output) -> int:
    """Run the editor in moot's process group, so that Ctrl+Z and `fg` affect both. Return its exit status, negative for a signal."""
    command = [*editor.command, str(path)]
    stdout = None if output.stdout_terminal else sys.stderr  # keep the editor's output out of piped data
    with _terminal_restored(), _signals_ignored():  # Ctrl+C is for the editor
        try:
            process = await foreground(command, stdout=stdout)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = error.strerror if isinstance(error, OSError) else str(error)
            source = f" from {editor.named_by}" if editor.named_by else ""
            raise UsageError(f"Cannot start the editor {editor.command[0]!r}{source}: {reason}.", fix=_FIX) from error
        async with process:
            status = await process.wait()
    if status < 0 and output.stdout_colour:
        output.data(_NORMAL_SCREEN)
    return status


def _ignore(number: int, frame: FrameType | None) -> None:
    """Handle a signal by doing nothing."""


@contextmanager
def _signals_ignored() -> Generator[None, None, None]:
    # with a handler, because the editor would inherit SIG_IGN
    before = {number: signal.signal(number, _ignore) for number in _IGNORED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def _terminal_restored() -> Generator[None, None, None]:
    """Restore the terminal's modes at the end of the block."""
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
    # not imported here: without prompt-toolkit loaded, no application is running
    module: Any = sys.modules.get("prompt_toolkit.application.run_in_terminal")
    if module is None:
        yield
        return
    async with cast("AbstractAsyncContextManager[None]", module.in_terminal()):
        yield


def _status_text(status: int) -> str:
    if status > 0:
        return f"exited with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


# ── the file ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _write(drafts: Path, text: str, suffix: str) -> Path:
    """Create the file in a separate folder, because editors leave other files next to it. Return its path."""
    try:
        drafts.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = Path(tempfile.mkdtemp(prefix="edit-", dir=drafts)) / f"draft{suffix}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write((text if not text or text.endswith("\n") else text + "\n").encode("utf-8", "replace"))
    except OSError as error:
        raise MootError(f"Cannot write a file for the editor in {str(drafts)!r}: {error.strerror}.") from error
    return path


def _read(path: Path, before: str) -> str:
    """Return the edited text, without the final newline that editors add if the original had none."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise MootError("The editor did not save a regular file.")
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise MootError(f"Cannot read the file that the editor saved: {error.strerror}.") from error
    if len(data) > MAX_BYTES:
        raise MootError(f"The edited text is larger than {MAX_BYTES >> 20} MiB.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise MootError(f"The edited text is not UTF-8 (line {line}, byte {error.start}).") from error
    return text if before.endswith("\n") else text.removesuffix("\n")


def _save(path: Path, text: str) -> str:
    """Return the path, quoted for a shell, if the text was changed. Otherwise remove the folder and return an empty string."""
    with suppress(OSError):
        if path.is_file() and (  # reading a pipe would never end
            path.stat().st_size > MAX_BYTES or path.read_bytes().rstrip(b"\n") != text.encode().rstrip(b"\n")
        ):
            return shlex.quote(str(path))
    shutil.rmtree(path.parent, ignore_errors=True)
    return ""


async def edit_checked(path: Path, template: str, check: Callable[[str, str], object], output: Output, *, lock: Path) -> bool:
    """Let the user edit the file, or the template if the file is empty, until `check` accepts the text or the user gives up.

    `lock` is the file or folder to lock while the file is written. `check` is called with the new and the old text, and raises ConfigError
    if the new text is invalid. Return False if nothing was changed. Raise ConfigError if the user gives up or another program has changed
    the file.
    """
    before = read_text(path, mark=True)
    text = before or template
    while True:
        edited = await edit_text(text, suffix=path.suffix, output=output)
        if edited is None and text in (before, template):
            output.say("moot: no changes")
            return False
        text = text if edited is None else edited
        try:
            check(text.removeprefix("\ufeff"), before.removeprefix("\ufeff"))
        except ConfigError as error:
            output.say(f"moot: {error.message}", "red")
            if await confirm("Edit it again?", output):
                continue
            output.say(f"moot: {path} was not changed", "yellow")
            raise
        with lock_file(lock):
            if read_text(path, mark=True) == before:
                write_atomically(path, text.encode())
                output.say(f"moot: saved {path}", "green")
                return True
        edited_copy = path.with_name(f"{path.name}.edited")
        write_atomically(edited_copy, text.encode())
        raise ConfigError(
            "Another program changed the file while you edited it.", file=str(path), fix=f"Your version is in {edited_copy}. Merge the two."
        )
