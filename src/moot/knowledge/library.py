"""Indexing the documents of sources in chunks of similar length, and searching them."""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
from anyio import to_thread

from moot.convert.files.attachments import kind_of
from moot.errors import MootError, NotFound, StoreError, UsageError
from moot.guard.paths import Paths
from moot.guard.roots import DIRECTORY, is_own, refuse_own
from moot.knowledge.documents import MAX_BYTES, DocumentReader, decoded, digest_of
from moot.types.ids import new_id
from moot.types.knowledge import Chunk, IndexedDocument, Knowledge, KnowledgeHit, KnowledgeScope, Section, Source
from moot.types.search import Embedders

log = logging.getLogger("moot.knowledge")

FILES = 20_000
"""Maximum number of files to index in a source."""
DEPTH = 60
"""Maximum depth of folders. Each level keeps a file descriptor open while files are listed."""
TEXT_BYTES = 16 << 20
WAIT = 2.0
"""Maximum number of seconds for indexing changed files before a search."""
EMBED_WAIT = 0.5

_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build"})
_WEB = (".html", ".htm", ".xhtml")

Progress = Callable[[int, int], None]
"""Callback that gets the number of changed files read so far, and the number of all changed files."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The result of indexing a source."""

    indexed: int = 0
    failed: int = 0
    removed: int = 0
    unchanged: int = 0

    def __add__(self, other: Refreshed) -> Refreshed:
        return Refreshed(*(getattr(self, name) + getattr(other, name) for name in ("indexed", "failed", "removed", "unchanged")))


class Library:
    """The documents of one owner, or of all owners."""

    def __init__(self, index: Knowledge, reader: DocumentReader, embedders: Embedders | None = None) -> None:
        self._index = index
        self._reader = reader
        self._embedders = embedders

    async def add(self, path: Path, *, project: str = "") -> Source:
        """Add a file or folder. Raise UsageError if it does not exist, Refused if it is moot's own data."""
        real = await anyio.Path(path).resolve()
        if not await real.exists():
            raise UsageError(f"{str(path)!r} does not exist.", fix="Specify an existing file or folder.")
        if not await real.is_file() and not await real.is_dir():
            raise UsageError(f"{str(path)!r} is neither a file nor a folder.", fix="Specify an existing file or folder.")
        await to_thread.run_sync(_refuse_own, Path(real))
        return await self._index.add(Source(new_id(), str(real), project))

    async def upload(self, name: str, data: bytes, *, project: str = "") -> Source:
        """Index an uploaded document without storing its file, replacing one with the same name. Raise MootError if it can't be read."""
        digest = await to_thread.run_sync(digest_of, data)
        chunks, problem = await self._chunks(name, data)
        source = await self._index.add(Source(new_id(), name, project, "upload"))
        await self._index.put(source.id, IndexedDocument(name, len(data), digest=digest, problem=problem), chunks)
        return replace(source, documents=1, chunks=len(chunks))

    async def refresh(self, source: Source, progress: Progress | None = None, *, again: bool = False) -> Refreshed:
        """Index new and changed files, and remove missing ones. Skip unchanged files; if `again` is set, retry those that failed before."""
        if source.kind == "upload":
            return Refreshed(unchanged=source.documents)
        known = {document.path: document for document in await self._index.documents(source.id)}
        listed = await to_thread.run_sync(_files, source, abandon_on_cancel=True)
        if listed is None:
            await self._index.remove(source.id)
            return Refreshed(removed=len(known))
        facts = {document.path: (document.size, document.changed_ns) for document in known.values() if not (again and document.problem)}
        changed = [path for path, status in listed.files.items() if facts.get(path) != (status.st_size, status.st_mtime_ns)]
        result = Refreshed(unchanged=len(listed.files) - len(changed), failed=len(listed.problems))
        for number, path in enumerate(changed, 1):
            result += await self._read(source, path, listed.files[path], known.get(path))
            if progress is not None:
                progress(number, len(changed))
        for path, problem in listed.problems.items():
            if path not in known or known[path].problem != problem:
                await self._index.put(source.id, IndexedDocument(path, problem=problem), [])
        missing = [path for path in known if path not in listed.files and path not in listed.problems]
        if missing:
            await self._index.drop(source.id, missing)
        return result + Refreshed(removed=len(missing))

    async def embed(self, seconds: float) -> tuple[int, int]:
        """Embed new chunks for at most `seconds` if the model is installed. Return the numbers of embedded chunks and of all chunks."""
        if self._embedders is None or not self._embedders.here():
            return 0, 0
        return await self._index.embed(await self._embedders.embedder(), seconds=seconds)

    async def search(self, query: str, scope: KnowledgeScope, *, limit: int = 8) -> Sequence[KnowledgeHit]:
        """Return the best chunks. Before that, index changed files for a short time. Raise UsageError for an empty query."""
        if not query.strip():
            raise UsageError("The query is empty.", fix="Enter search terms or a question.")
        embedder = await self._embedders.embedder() if self._embedders is not None and self._embedders.here() else None
        try:
            with anyio.move_on_after(WAIT):
                await self._catch_up(scope)
            if embedder is not None:
                await self._index.embed(embedder, seconds=EMBED_WAIT)
        except StoreError as error:  # such as a full disk; documents indexed before can still be found
            log.warning("changed documents can't be indexed: %s", error)
        return await self._index.search(query, scope, limit=limit, embedder=embedder)

    async def _catch_up(self, scope: KnowledgeScope) -> None:
        sources = await self._index.sources(scope)
        for folder in {*scope.folders} - {source.path for source in sources if source.kind == "folder"}:
            if await anyio.Path(folder).is_dir():
                sources.append(await self._index.add(Source(new_id(), folder, kind="folder")))
        for source in sources:
            with suppress(NotFound):  # removed meanwhile
                await self.refresh(source)

    async def _read(self, source: Source, path: str, status: os.stat_result, before: IndexedDocument | None) -> Refreshed:
        document = IndexedDocument(path, status.st_size, status.st_mtime_ns)
        try:
            data, digest = await to_thread.run_sync(_bytes, source, path)
            document = replace(document, digest=digest)
            if before is not None and before.digest == document.digest and not before.problem:
                await self._index.put(source.id, document, None)
                return Refreshed(unchanged=1)
            chunks, problem = await self._chunks(path, data)
            await self._index.put(source.id, replace(document, problem=problem), chunks)
        except (MootError, OSError) as error:
            problem = error.advice() if isinstance(error, MootError) else error.strerror or str(error)
            await self._index.put(source.id, replace(document, problem=problem), [])
            return Refreshed(failed=1)
        return Refreshed(indexed=1)

    async def _chunks(self, path: str, data: bytes) -> tuple[list[Chunk], str]:
        """Return the chunks of a document, and a description of the problem if they cover only its beginning.

        Raise MootError if it can't be read.
        """
        name = Path(path).name
        kind = "html" if name.lower().endswith(_WEB) else kind_of(name)
        if kind:
            sections, is_cut = await self._reader.sections(name, data, kind)
        else:
            sections, is_cut = [Section("", await _text_of(name, data))], False
        chunks = await to_thread.run_sync(lambda: chunks_of(sections, lines=not kind))
        is_cut = is_cut or len(chunks) >= MAX_CHUNKS
        return chunks, f"It is too long: only its first {len(chunks):,} passages are indexed." if is_cut else ""


async def _text_of(name: str, data: bytes) -> str:
    if len(data) > TEXT_BYTES:
        raise UsageError(f"{name!r} has more than {TEXT_BYTES >> 20} MiB of text.", fix="Split it into several files.")
    text = await decoded(data)
    if text is None:
        raise UsageError(f"{name!r} is neither text nor a document of a known format.")
    return text


@dataclass(frozen=True, slots=True)
class _Listed:
    """The files of a source, and the problems of those that can't be indexed, both by path."""

    files: dict[str, os.stat_result] = field(default_factory=dict[str, os.stat_result])
    problems: dict[str, str] = field(default_factory=dict[str, str])


def _refuse_own(path: Path) -> None:
    """Raise Refused if the path is a moot home folder or inside one, because it contains keys."""
    for folder in (path, *path.parents):
        with suppress(OSError):
            descriptor = os.open(folder, DIRECTORY)
            try:
                refuse_own(str(path), descriptor)
            finally:
                os.close(descriptor)


def _files(source: Source) -> _Listed | None:
    """Return the regular files of a source, sorted. Links, hidden entries and moot's own folders are skipped.

    Return None for the folder `knowledge` of a project that no longer exists.
    """
    listed, path = _Listed(), source.path
    try:
        status = os.lstat(path)
    except OSError as error:
        if source.kind == "folder":
            return None
        listed.problems[path] = f"It can't be read: {error.strerror}."
        return listed
    if stat.S_ISREG(status.st_mode):
        listed.files[path] = status
    elif stat.S_ISDIR(status.st_mode):
        _walk(path, listed)
    return listed


def _walk(top: str, listed: _Listed) -> None:
    """List the files of a folder. Each folder is opened relative to its parent, so that no link is followed."""

    def unreadable(error: OSError) -> None:
        listed.problems.setdefault(
            top, f"A folder in it can't be read: {_shown(str(error.filename or ''))} {error.strerror}.".replace(" .", ".")
        )

    try:
        for name, folders, files, descriptor in os.fwalk(top, onerror=unreadable, follow_symlinks=False):
            own, depth = is_own(descriptor), name.count("/") - top.count("/")
            wanted = [] if own else sorted(each for each in folders if not each.startswith(".") and each not in _SKIPPED)
            folders[:] = wanted if depth < DEPTH else []
            if wanted and depth >= DEPTH:
                listed.problems[_shown(name)] = f"Folders below it are nested deeper than {DEPTH} levels and are not indexed."
            for file in sorted(files) if not own else ():
                if len(listed.files) >= FILES:
                    listed.problems[top] = f"It has more than {FILES:,} files; only the first are indexed."
                    return
                _list_file(f"{name}/{file}", file, descriptor, listed)
    except OSError as error:
        listed.problems[top] = f"It can't be read: {error.strerror}."


def _list_file(path: str, name: str, folder: int, listed: _Listed) -> None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:  # removed meanwhile
        return
    if name.startswith(".") or not stat.S_ISREG(status.st_mode):
        return
    if _shown(path) != path:
        listed.problems[_shown(path)] = "Its name is not valid UTF-8. Rename it."
    else:
        listed.files[path] = status


def _shown(path: str) -> str:
    """Return a path with bytes that are not UTF-8 replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def _bytes(source: Source, path: str) -> tuple[bytes, bytes]:
    """Return the content of a file and its digest. Pipes, devices, and links that replaced the file or a folder are not opened."""
    base = Path(path).parent if path == source.path else Path(source.path)
    paths = Paths((base,), base, links=False)
    with paths.open_read(str(Path(path).relative_to(base))) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path!r} is larger than {MAX_BYTES >> 20} MiB.")
    return data, digest_of(data)


CHUNK_WORDS = 300
"""Number of words after which a chunk ends with the current paragraph. Two characters of CJK text count as one word."""
CHUNK_CHARACTERS = 4000
"""Maximum length of a chunk, for texts without paragraphs."""
MAX_CHUNKS = 20_000
"""Maximum number of chunks per document."""

_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*\s*")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def chunks_of(sections: Iterable[Section], *, lines: bool) -> list[Chunk]:
    """Return the chunks of a document. If `lines` is set, the place of each chunk is the number of its first line."""
    found = (chunk for section in sections for chunk in _of_section(section, lines=lines))
    return [chunk for chunk, _ in zip(found, range(MAX_CHUNKS), strict=False)]


def _of_section(section: Section, *, lines: bool) -> Iterator[Chunk]:
    heading, first, kept, count = "", 1, list[str](), 0

    def chunk() -> Iterator[Chunk]:
        text = "\n".join(kept).strip()
        if text:
            yield Chunk(f"line {first}" if lines else section.place, heading, text)

    for number, line in enumerate(_lines(section.text), 1):
        title = _HEADING.fullmatch(line)
        length = sum(map(len, kept)) + len(line)
        if title is not None or length > CHUNK_CHARACTERS or (count >= CHUNK_WORDS and not line.strip()):
            yield from chunk()
            kept, count = [], 0
        if title is not None:
            heading = title[1][:200]
        if not kept:
            first = number
            if not line.strip():
                continue
        kept.append(line)
        count += len(line.split()) + len(_CJK.findall(line)) // 2
    yield from chunk()


def _lines(text: str) -> Iterator[str]:
    """Yield the lines. Lines longer than a chunk are split."""
    for line in text.split("\n"):
        yield line[:CHUNK_CHARACTERS]
        yield from (line[at : at + CHUNK_CHARACTERS] for at in range(CHUNK_CHARACTERS, len(line), CHUNK_CHARACTERS))
