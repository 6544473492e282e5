"""The shell command that continues a conversation in the program that it belongs to."""

from __future__ import annotations

import shlex

from moot.plugins import FORMATS
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.format import HasResumeCommand


def resume_command(conversation: Conversation) -> str | None:
    """Return the command, for a POSIX shell: that of the program that it was imported from if it has one, or else moot's.

    None for a sub-agent's conversation, which only its parent continues.
    """
    if conversation.parent is not None:
        return None
    theirs = _original(conversation.origin) if conversation.origin is not None and conversation.follows else None
    return theirs or f"moot chat continue {shlex.quote(conversation.id)}"


def _original(origin: JsonObject) -> str | None:
    """Return the original program's command, or None if it has none or its sessions may not be on this machine.

    Ids and folders come from imported files. Those with control characters are refused, because a terminal may run them when pasted.
    """
    name, id, directory = (str(origin.get(key) or "") for key in ("format", "source_id", "directory"))
    format = FORMATS.make(name) if name in FORMATS and origin.get("placed") and not origin.get("program") else None
    if not isinstance(format, HasResumeCommand) or not id or id.startswith("-") or not (id + directory).isprintable():
        return None
    command = shlex.join((*format.resume_command, id))
    return f"cd {shlex.quote(directory)} && {command}" if directory.startswith("/") else command
