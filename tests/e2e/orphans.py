"""Orphaned runs, whose process has died, and waiting for their outcome."""

from __future__ import annotations

import fcntl
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from moot.types.conversation import Conversation
from moot.types.ids import new_id
from moot.types.message import Message, text_part
from moot.types.run import Run, RunStatus
from moot.types.store import Accepted, Submission


async def reach(on: Any, run: str, status: RunStatus) -> Run:
    with anyio.fail_after(60):
        while (found := await on.engine.store.records.run(run)).status != status:
            await anyio.sleep(0.01)
    return found


async def orphan(on: Any, on_crash: Any = "ask") -> Accepted:
    """Create a running run whose owner is dead, as `kill -9` leaves it."""
    run = Run(new_id(), "", new_id(), on_crash=on_crash)
    conversation = Conversation(new_id(), directory=str(on.directory))
    user = Message(new_id(), "user", (text_part("hello"),))
    return await on.engine.store.records.submit(Submission(replace(run, conversation=conversation.id), conversation, user, owner="gone"))


def is_locked(path: Path) -> bool:
    """Return whether a process holds a lock on the file. Ids of processes are other ones in a sandbox."""
    with path.open() as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
