"""Knowledge in files: documents that agents may search, and memory, Markdown files that agents and people keep between conversations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from moot.types.search import Embedder


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a document's text."""

    place: str
    """Place in the document: `page 3`, `slide 2`, `sheet Sales, row 1`, `chapter 4`, or empty."""
    text: str


class Documents(Protocol):
    """The reader of documents in formats such as PDF."""

    async def text(self, name: str, data: bytes, kind: str) -> str:
        """Return the text of a document, with places such as page numbers.

        Raise UsageError if a package is missing, LimitReached if the document is too large, Refused if it can't be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a document, indexed and found as a whole."""

    place: str
    """The place of the passage's section, or `line 12`."""
    heading: str
    text: str


SourceKind: TypeAlias = Literal["added", "upload", "folder"]
"""added: by a person · upload: an uploaded file · folder: a project's own folder `knowledge`, searched only in that project."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file or folder with documents."""

    id: str
    path: str
    """Absolute path; for an upload, its name."""
    project: str = ""
    """Id of the project whose conversations can search it; empty = all conversations."""
    kind: SourceKind = "added"
    added_at: int = 0
    """Time at which the source was added, in milliseconds since the epoch."""
    documents: int = 0
    """Number of documents, including failed ones."""
    failed: int = 0
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document in the index."""

    path: str
    """Absolute path."""
    size: int = 0
    changed_ns: int = 0
    digest: bytes = b""
    """SHA-256 of its content."""
    problem: str = ""
    """Reason why the document could not be read; empty = it is indexed."""


@dataclass(frozen=True, slots=True)
class KnowledgeHit:
    """A chunk that matches a search."""

    path: str
    place: str
    heading: str
    text: str
    score: float
    """Larger is better; comparable only within one search."""
    by: tuple[str, ...] = ()
    """The search methods that found the passage: `words`, `meaning`."""


@dataclass(frozen=True, slots=True)
class KnowledgeScope:
    """The sources to search: sources without a project, sources of one project, and the `knowledge` folders of the current project."""

    project: str = ""
    folders: tuple[str, ...] = ()


def knowledge_folders(root: str) -> tuple[str, ...]:
    """Return the `knowledge` folder in a project's root; nothing if the project has no root. It is always searched in that project."""
    return (os.path.join(os.path.realpath(root), "knowledge"),) if root else ()  # noqa: PTH118  as text, like the other paths here


class KnowledgeSearch(Protocol):
    """The documents that a running conversation may search."""

    async def search(self, query: str, *, limit: int) -> Sequence[KnowledgeHit]:
        """Return the best chunks. Before that, index changed documents for a short time."""
        ...


class Knowledge(Protocol):
    """The index of documents, for all owners or for one."""

    async def sources(self, scope: KnowledgeScope | None = None) -> list[Source]:
        """Return the sources, sorted by path. With a scope, return only the sources in it."""
        ...

    async def add(self, source: Source) -> Source:
        """Add a source, or return the one with the same path, project and kind."""
        ...

    async def remove(self, id: str) -> None:
        """Remove a source with everything that was indexed from it. Raise NotFound if there is no such source."""
        ...

    async def documents(self, source: str) -> list[IndexedDocument]:
        """Return the documents of a source, sorted by path. Raise NotFound if there is no such source."""
        ...

    async def put(self, source: str, document: IndexedDocument, chunks: Sequence[Chunk] | None) -> None:
        """Replace a document and its chunks. If `chunks` is None, keep the chunks. Raise NotFound if there is no such source."""
        ...

    async def drop(self, source: str, paths: Sequence[str]) -> None:
        """Remove documents from the index. Raise NotFound if there is no such source."""
        ...

    async def search(self, query: str, scope: KnowledgeScope, *, limit: int, embedder: Embedder | None = None) -> list[KnowledgeHit]:
        """Return the chunks that match best by words and, with an embedder, by meaning. Merge both rankings by reciprocal rank."""
        ...

    async def embed(self, embedder: Embedder, *, seconds: float, share: float = 1.0) -> tuple[int, int]:
        """For at most `seconds`, embed chunks that have no vector of this model, using `share` of the time. Return (done, total)."""
        ...


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
