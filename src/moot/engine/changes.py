"""The files that prompts have changed, as diffs. The contents come from the checkpoints that undo uses."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from anyio import to_thread

from moot.runtime.runtime import Runtime
from moot.store.content import checkpoints as stored
from moot.store.database.connection import Connection, checkpoints_path
from moot.tools.texts import decode, is_binary, printable
from moot.types.checkpoint import Checkpoint, FileChange, FilePlace, FileState
from moot.types.conversation import Conversation

Obstacle: TypeAlias = Literal["binary", "large", "missing", "unknown", "other"]
"""Why there is no diff. missing: a content is no longer stored · unknown: moot was stopped before it read the file · other: not a file."""

FILES = 200
"""Maximum number of files that are returned."""
DIFF_BYTES = 1 << 20
"""Maximum size of all diffs together, in characters."""
_LINES = 4000
"""Maximum number of lines in texts that are compared, because comparing takes quadratic time."""


@dataclass(frozen=True, slots=True)
class FileDiff:
    """A file that was changed, with the diff of its first and last state."""

    path: str
    change: Literal["created", "modified", "deleted"]
    diff: str | None = None
    """The hunks of a unified diff; empty if only the permissions or line endings have changed. None if there is no diff."""
    added: int = 0
    removed: int = 0
    obstacle: Obstacle | None = None
    mixed: bool = False
    """True if someone else changed the file in between."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The files that one or more runs and their sub-agents changed, sorted by path."""

    files: tuple[FileDiff, ...]
    count: int
    """Number of all files, including those that are not returned."""
    left_out: tuple[tuple[str, str], ...]
    """Paths whose changes are not recorded, each with the reason."""
    undone: bool
    """True if some of the runs changed files and were undone. Their changes are not included."""
    partial: bool
    """True if changes by commands are still to be determined, because a run is active or was interrupted."""


async def changes_of(runtime: Runtime, conversation: Conversation, message: str | None = None) -> Changes:
    """Return the files changed by the run that wrote a message, or by all runs of the current branch."""
    if message is not None:
        run = (await runtime.store.conversations.message(message, conversation=conversation.id)).run
        runs = [run] if run is not None else []
    else:
        runs = [node.run for node in await runtime.store.tree.nodes(conversation.id) if node.shown and node.run is not None]
    path = checkpoints_path(runtime.settings.database)

    def work() -> Changes:
        if not runs or not path.exists():
            return Changes((), 0, (), undone=False, partial=False)
        with stored.opened(path) as connection:
            return _compared(connection, stored.load(connection, runs), os.path.realpath(conversation.directory or "."))

    return await to_thread.run_sync(work)


def _compared(connection: Connection, checkpoints: Sequence[Checkpoint], directory: str) -> Changes:
    current = [one for one in checkpoints if not one.is_undone]
    merged: dict[FilePlace, FileChange] = {}
    for change in (change for one in current for change in one.changes):
        known = merged.get(change.place)
        merged[change.place] = known.followed_by(change) if known is not None else change
    changes = sorted((one for one in merged.values() if one.before != one.after), key=lambda one: one.place.absolute)
    return Changes(
        tuple(_diffs(connection, changes[:FILES], directory)),
        len(changes),
        tuple(dict.fromkeys(pair for one in current for pair in one.left_out)),
        undone=any(one.is_undone and one.changes for one in checkpoints),
        partial=any(one.is_open for one in current),
    )


def _diffs(connection: Connection, changes: Iterable[FileChange], directory: str) -> Iterable[FileDiff]:
    left = DIFF_BYTES
    for change in changes:
        file = _diff(connection, change, directory)
        size = len(file.diff or "")
        if size > left:
            yield FileDiff(file.path, file.change, added=file.added, removed=file.removed, obstacle="large", mixed=file.mixed)
        else:
            left -= size
            yield file


def _diff(connection: Connection, change: FileChange, directory: str) -> FileDiff:
    path = printable(os.fsdecode(change.place.absolute)).removeprefix(f"{directory}/")
    kind = "created" if change.before.kind == "nothing" else "deleted" if change.after and change.after.kind == "nothing" else "modified"
    texts = [_text(connection, state) for state in (change.before, change.after)]
    for text in texts:
        if isinstance(text, _Obstacle):
            return FileDiff(path, kind, obstacle=text.reason, mixed=change.mixed)
    old, new = (text.splitlines() for text in texts if isinstance(text, str))
    if max(len(old), len(new)) > _LINES:
        return FileDiff(path, kind, obstacle="large", mixed=change.mixed)
    lines = list(difflib.unified_diff(old, new, lineterm=""))[2:]
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return FileDiff(path, kind, "\n".join(lines), added, removed, mixed=change.mixed)


@dataclass(frozen=True, slots=True)
class _Obstacle:
    reason: Obstacle


def _text(connection: Connection, state: FileState | None) -> str | _Obstacle:
    """Return the content of a file in a state, or why it can't be compared."""
    if state is None:
        return _Obstacle("unknown")
    if state.kind == "nothing":
        return ""
    if state.kind not in ("file", "link"):
        return _Obstacle("other")
    data = stored.get(connection, state.digest)
    if data is None:
        return _Obstacle("missing")
    if is_binary(data):
        return _Obstacle("binary")
    try:
        return decode(data).text
    except UnicodeDecodeError:
        return _Obstacle("binary")
