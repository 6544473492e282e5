"""A conversation put where another agent keeps its sessions, so that it goes on there."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import anyio.to_thread

from moot.errors import MootError, UsageError
from moot.plugins import FORMATS
from moot.runtime.exporting import gathered
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation, Format, Placed
from moot.types.installing import Installable, Session
from moot.types.store import Holdings

__all__ = ["installed"]


async def installed(
    holdings: Holdings, conversation: Conversation, format: Format, *, home: Path, environ: Mapping[str, str], directory: Path
) -> Session:
    """The new session of the format's program, written under an id that nobody has had. Raises UsageError, MootError.

    `directory`: where the program is to go on, for a conversation that has no folder of its own.
    """
    if not isinstance(format, Installable) or not isinstance(format, Placed):
        names = [name for name in FORMATS.names() if isinstance(FORMATS.make(name), Installable)]
        raise UsageError(f"no program goes on with files of the format {format.name!r}; of these some does: {', '.join(names)}")
    whole = await gathered(holdings, conversation, format)
    places = tuple(format.places(home, environ))
    return await anyio.to_thread.run_sync(_placed, format, whole, directory, places)


def _placed(format: Installable, whole: ExportedConversation, directory: Path, places: tuple[Path, ...]) -> Session:
    own = Path(whole.conversation.directory)
    where = (own if own.is_absolute() and own.is_dir() else directory).resolve()  # programs look under the folder's real name
    whole = replace(whole, conversation=replace(whole.conversation, directory=str(where)))
    session = format.session(whole, str(uuid.uuid4()), where, places)
    _put(session)
    return session


def _put(session: Session) -> None:
    """The file whole under its name, which must be free; readable by nobody else."""
    path = session.path
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(session.data)
        os.link(unfinished, path)  # unlike a rename it never takes the place of another file
    except OSError as error:
        raise MootError(f"can't write {str(path)!r}: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
