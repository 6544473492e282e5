"""Continue conversations in other programs: install them there as sessions, and return the commands that resume them."""

from __future__ import annotations

import os
import shlex
import stat
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Literal

import anyio.to_thread

from moot.errors import MootError, UsageError
from moot.features.exports import gather
from moot.plugins import FORMATS
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation, Format, HasLocations, HasResumeCommand, Installable, InstallableSession
from moot.types.store import OwnerStore

_SPACE = uuid.UUID("2b0d5c1e-8f57-5c43-9a0e-6d1c3e7f4a58")


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed session."""

    session: InstallableSession
    outcome: Literal["written", "replaced", "unchanged"]
    """`replaced`: the new file replaced a file that moot had written, and contains all lines of that file."""
    beside: Path | None = None
    """An earlier file of the session, which is kept because it has content that is missing from the conversation."""


async def install_session(
    holdings: OwnerStore, conversation: Conversation, format: Format, *, home: Path, environ: Mapping[str, str], directory: Path
) -> Installed:
    """Write the conversation as a session of the format's program. An existing session is updated as long as no content is lost.

    `directory` is the folder in which the program continues if the conversation has no folder. Raise UsageError if no program can continue
    the format's sessions, MootError if writing fails.
    """
    if not isinstance(format, Installable) or not isinstance(format, HasLocations):
        names = [name for name in FORMATS.names() if isinstance(FORMATS.make(name), Installable)]
        raise UsageError(f"No program can continue sessions in the format {format.name!r}. Supported formats: {', '.join(names)}.")
    whole = await gather(holdings, conversation, format, counted=True)
    places = tuple(format.places(home, environ))
    return await anyio.to_thread.run_sync(_placed, format, whole, directory, places)


def _placed(format: Installable, whole: ExportedConversation, directory: Path, places: tuple[Path, ...]) -> Installed:
    own = Path(whole.conversation.directory)
    where = (own if own.is_absolute() and own.is_dir() else directory).resolve()  # programs use the real path of the folder
    whole = replace(whole, conversation=replace(whole.conversation, directory=str(where)))
    beside: Path | None = None
    for number in count(1):
        id = str(uuid.uuid5(_SPACE, f"{whole.conversation.id} {number}"))
        session = format.session(whole, id, where, places)
        try:
            outcome = _put(session)
        except OSError as error:
            raise MootError(f"Cannot write {str(session.path)!r}: {error.strerror}.") from error
        if outcome is not None:
            return Installed(session, outcome, beside)
        beside = session.path
    raise AssertionError("there is always another id")


def _put(session: InstallableSession) -> Literal["written", "replaced", "unchanged"] | None:
    """Write the file atomically, so that only its owner can read it.
    Return None if an existing file contains lines that the new one doesn't.

    Raise OSError if writing fails.
    """
    path = session.path
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    there = path.lstat() if os.path.lexists(path) else None
    for other, data in session.beside.items():
        _add(other, data)
    if there is not None and (not stat.S_ISREG(there.st_mode) or not _holds(session, path)):
        return None
    if there is not None and there.st_size == len(session.data) and path.read_bytes() == session.data:
        return "unchanged"
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(session.data)
        if there is None:
            os.link(unfinished, path)  # unlike a rename, this never replaces another file
            return "written"
        if (now := path.lstat()).st_size != there.st_size or now.st_mtime_ns != there.st_mtime_ns:
            return None  # the program has just changed it
        unfinished.replace(path)
        return "replaced"
    finally:
        unfinished.unlink(missing_ok=True)


def _add(path: Path, data: bytes) -> None:
    """Write a file if it does not exist. Raise OSError if writing fails."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError), os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(data)


def _holds(session: InstallableSession, path: Path) -> bool:
    lines, ignored = set(session.data.splitlines(keepends=True)), session.bookkeeping
    with path.open("rb") as file:
        return all(line in lines or (ignored and line.startswith(ignored)) for line in file)


def resume_command(conversation: Conversation) -> str | None:
    """Return the POSIX shell command that continues the conversation in the program from which it was imported, or else in moot.

    Return None for a sub-agent's conversation, which only its parent can continue.
    """
    if conversation.parent is not None:
        return None
    theirs = _original(conversation.origin) if conversation.origin is not None and conversation.follows else None
    return theirs or f"moot chat continue {shlex.quote(conversation.id)}"


def _original(origin: JsonObject) -> str | None:
    """Return the original program's command, or None if the program has none or its sessions may not be on this machine.

    Ids and folders come from imported files.
    Those with control characters are rejected, because a terminal may run them when they are pasted.
    """
    name, id, directory = (str(origin.get(key) or "") for key in ("format", "source_id", "directory"))
    format = FORMATS.make(name) if name in FORMATS and origin.get("placed") and not origin.get("program") else None
    if not isinstance(format, HasResumeCommand) or not id or id.startswith("-") or not (id + directory).isprintable():
        return None
    command = shlex.join((*format.resume_command, id))
    return f"cd {shlex.quote(directory)} && {command}" if directory.startswith("/") else command
