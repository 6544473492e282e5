"""Checkpoints: the files that a prompt changed, as they were before and after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

FileKind: TypeAlias = Literal["nothing", "file", "link", "folder", "other"]
"""nothing: the path doesn't exist · other: a special file, or one that is too large. Only files and links are restored."""


class FileState(NamedTuple):
    """The state of a path. Equal states have equal content and permissions."""

    kind: FileKind
    mode: int = 0
    """Permission bits of a file."""
    digest: bytes = b""
    """SHA-256 of a file's content or of a link's target."""


NOTHING = FileState("nothing")


class FileStamp(NamedTuple):
    """Facts about a file. At least one of them changes whenever the file is changed or replaced."""

    inode: int
    size: int
    changed_ns: int
    """Modification time."""
    status_ns: int
    """Time of the last change to content, name or permissions. Programs can't set this time."""


class SeenFile(NamedTuple):
    """A file's state, and the stamp it had when it was read."""

    stamp: FileStamp
    state: FileState


@dataclass(slots=True)
class FolderState:
    """The state of all files below a folder, by relative path."""

    files: dict[bytes, SeenFile] = field(default_factory=dict[bytes, SeenFile])
    left_out: list[tuple[bytes, str]] = field(default_factory=list[tuple[bytes, str]])
    """Paths that undo doesn't cover, each with the reason."""


class FilePlace(NamedTuple):
    """A file, identified by the allowed folder that contains it and the path below that folder."""

    root: bytes
    path: bytes

    @property
    def absolute(self) -> bytes:
        return self.root.rstrip(b"/") + b"/" + self.path


class FileChange(NamedTuple):
    """The change that a prompt made to one file."""

    place: FilePlace
    before: FileState
    after: FileState | None
    """State after the change; None = unknown, because moot was stopped before it could read the file."""
    mixed: bool
    """True if someone else changed the file in between."""

    def followed_by(self, later: FileChange) -> FileChange:
        """Merge this change with a later change to the same file, and return the result."""
        return later._replace(before=self.before, mixed=self.mixed or later.mixed or self.after not in (None, later.before))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The changes made by one run and its sub-agents."""

    run: str
    no: int
    """Position in the order of checkpoints."""
    changes: tuple[FileChange, ...]
    left_out: tuple[tuple[str, str], ...]
    """Paths that undo doesn't cover, each with the reason."""
    is_open: bool
    """True if moot was stopped before the changes made by commands were determined."""
    is_undone: bool


@dataclass(frozen=True, slots=True)
class Undone:
    """An undo that can still be redone."""

    conversation: str
    prompt: str
    """Id of the user's message."""
    runs: tuple[str, ...]
    head_before: str | None
    head_after: str | None
    newest: str | None
    """Id of the conversation's newest message at that time. A newer message makes redo impossible."""
    talk: bool
    files: bool
    no: int = 0
    """Position in the order of undos; set by the store."""


Put: TypeAlias = Callable[[bytes], bytes]
"""Function that stores content and returns its digest."""
