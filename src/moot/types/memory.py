"""Memory: folders of Markdown files that agents and people keep between conversations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class MemoryFolder:
    """One folder of memory."""

    name: str
    """First part of the file names: `home`, `agents/NAME` or `project`."""
    base: Path
    """An existing folder, such as the project. Nothing outside of it is read or written."""
    below: str = ""
    """The memory folder, relative to `base`. No component of the path may be a symbolic link."""

    @property
    def path(self) -> Path:
        return self.base / self.below if self.below else self.base


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A memory file."""

    name: str
    """Name of the memory folder and the path in that folder, such as `project/MEMORY.md`."""
    path: Path
    size: int
    """Size in bytes."""
    changed_at: int
    """Time of the last change, in milliseconds since the epoch."""
    hidden: int = 0
    """Number of invisible and control characters in the file."""
    comments: int = 0
    """Number of HTML comments in the file."""
    problem: str = ""
    """Reason why the file is not used, or only in part; empty = the whole file is used."""


@dataclass(frozen=True, slots=True)
class MemoryMatch:
    """A line that contains words from a query."""

    name: str
    line: int
    text: str
    """The line. If it is long, only the part around the first matching word."""


@dataclass(frozen=True, slots=True)
class MemorySearch:
    """The result of a search in memory."""

    matches: tuple[MemoryMatch, ...]
    problems: tuple[MemoryFile, ...] = ()
    """Files that were not searched, or only in part."""
