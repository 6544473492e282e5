"""Memory: folders of Markdown files that agents and people keep between conversations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class MemoryFolder:
    """One folder of memory."""

    name: str
    """First part of its files' names: `home`, `agents/NAME` or `project`."""
    base: Path
    """An existing folder that nothing may leave, such as the project."""
    below: str = ""
    """The folder of memory inside the base. Its components must not be links."""

    @property
    def path(self) -> Path:
        return self.base / self.below if self.below else self.base


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A memory file."""

    name: str
    """The folder's name and the path in it, such as `project/MEMORY.md`."""
    path: Path
    size: int
    changed_at: int
    """Milliseconds."""
    hidden: int = 0
    """Number of invisible and control characters in it."""
    comments: int = 0
    """Number of HTML comments in it."""
    problem: str = ""
    """Why it is not used, or not as a whole; empty = it is."""


@dataclass(frozen=True, slots=True)
class MemoryMatch:
    """A line that contains words of a query."""

    name: str
    line: int
    text: str
    """The line; of a long one, the stretch around the first word."""


@dataclass(frozen=True, slots=True)
class MemorySearch:
    """The result of a search in memory."""

    matches: tuple[MemoryMatch, ...]
    problems: tuple[MemoryFile, ...] = ()
    """Files that were not searched, or not as a whole."""
