"""Routes for memory (the Markdown files that agents keep between conversations) and for documents that agents may search."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from anyio import to_thread
from fastapi import Header, Query, Request, Response
from pydantic import Field

from moot.errors import Refused, UsageError
from moot.guard.hidden import hidden_characters
from moot.server.auth import Chatter, Reader, Router, ToolUser
from moot.server.credentials import Caller
from moot.server.models import In, ListOut, Out, ShownPath
from moot.server.problems import Problem
from moot.server.resources import IfMatch, Limit, check_match, etag_of, tagged
from moot.server.state import CurrentServer, Server
from moot.tools.memory import FILE_BYTES, Memory, all_folders, memory_folders
from moot.types.knowledge import IndexedDocument, KnowledgeHit, KnowledgeScope, MemoryFile, Source, knowledge_folders

router = Router(prefix="/api/memory", tags=["memory"])


class MemoryFileOut(Out, of=MemoryFile, fields="name path size changed_at hidden problem"):
    """A memory file."""

    path: ShownPath
    """Absolute path on the server's machine."""


class MemoryTextOut(Out):
    """The content of a memory file."""

    name: str
    text: str
    hidden: list[str]
    """Code points of invisible and control characters in the text, such as `U+200B`."""


class MemoryTextIn(In):
    """The new content of a memory file."""

    text: Annotated[str, Field(max_length=FILE_BYTES)]


InProject = Annotated[str | None, Query(alias="project", max_length=200, description="Id or name of the project whose memory to include.")]

IfNoneMatch = Annotated[Literal["*"] | None, Header(alias="if-none-match")]


async def _memory(server: Server, caller: Caller, project: str | None, name: str = "") -> Memory:
    """Return the caller's memory. Only the user who runs the server has files outside the folders of projects."""
    folder = (await caller.store.projects.get(project)).root_path or "" if project else ""
    home = server.engine.settings.home
    if caller.is_home_owner:
        return Memory(await to_thread.run_sync(all_folders, home, folder, name))
    return Memory(memory_folders(home, "", folder, is_local=False))


def _text(name: str, text: str) -> MemoryTextOut:
    return MemoryTextOut(name=name, text=text, hidden=[found for _, found in hidden_characters(text)])


@router.get("")
async def list_memory(server: CurrentServer, caller: Reader, project: InProject = None) -> ListOut[MemoryFileOut]:
    """List the memory files. The file `MEMORY.md` of each memory folder is part of the system prompt."""
    memory = await _memory(server, caller, project)
    files = await to_thread.run_sync(memory.files, abandon_on_cancel=True)
    return ListOut(data=[MemoryFileOut.of(file) for file in files])


@router.get("/{name}", response_model=MemoryTextOut, responses={304: {"description": "Not modified."}})
async def get_memory(server: CurrentServer, caller: Reader, request: Request, name: str, project: InProject = None) -> Response:
    """Get the text of a memory file, such as `home/MEMORY.md`, with its ETag. Slashes in the name must be encoded as `%2F`."""
    memory = await _memory(server, caller, project, name)
    return tagged(request, _text(name, await to_thread.run_sync(memory.read, name)))


@router.put("/{name}")
async def put_memory(
    server: CurrentServer,
    caller: ToolUser,
    response: Response,
    name: str,
    body: MemoryTextIn,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    project: InProject = None,
) -> MemoryTextOut:
    """Create or replace a memory file.

    Send the ETag of the file's current content as `If-Match` to detect concurrent changes. With `If-None-Match: *`, an existing file is
    not replaced.
    """
    memory = await _memory(server, caller, project, name)

    def check(current: str | None) -> None:
        if if_none_match is not None and current is not None:
            raise Problem(412, f"{name!r} already exists.", fix="Open the existing file, or use another name.")
        if if_match is not None and current is None:
            raise Problem(412, f"{name!r} was deleted after you read it.", fix="Save it under a new name, or without If-Match.")
        if current is not None:
            check_match(if_match, etag_of(_text(name, current)))

    await to_thread.run_sync(partial(memory.write, name, body.text, check=check))
    saved = _text(name, await to_thread.run_sync(memory.read, name))
    response.headers["etag"] = etag_of(saved)
    return saved


@router.delete("/{name}")
async def delete_memory(
    server: CurrentServer, caller: ToolUser, name: str, if_match: IfMatch = None, project: InProject = None
) -> MemoryTextOut:
    """Delete a memory file and return its last content. Send its ETag as `If-Match` to detect concurrent changes."""
    memory = await _memory(server, caller, project, name)

    def check(current: str | None) -> None:
        check_match(if_match, etag_of(_text(name, current or "")))

    return _text(name, await to_thread.run_sync(partial(memory.delete, name, check=check)))


knowledge_router = Router(prefix="/api/knowledge", tags=["knowledge"])


class SourceOut(Out, of=Source, fields="id path project kind added_at documents failed chunks"):
    """A file or folder with documents, or an uploaded document."""

    path: ShownPath
    """Absolute path on the server's machine, or the name of the uploaded document."""
    kind: Literal["added", "upload", "folder"]


class DocumentOut(Out, of=IndexedDocument, fields="path size problem"):
    """An indexed document of a source."""

    path: ShownPath


class PassageOut(Out, of=KnowledgeHit, fields="path place heading text by"):
    """A passage of a document that matches a search."""

    path: ShownPath
    place: str
    """Page, slide, sheet or line of the passage, such as `page 3`; may be empty."""
    by: list[str]
    """The kinds of search that found the passage: `words`, `meaning`."""


class SourceIn(In):
    """A file or folder to index."""

    path: Annotated[str, Field(min_length=1, max_length=4096)]
    """Absolute path on the server's machine."""
    project: Annotated[str, Field(max_length=200)] = ""
    """Id or name of the project whose conversations can search the documents; empty = all conversations."""


OfProject: TypeAlias = Annotated[
    str, Query(alias="project", max_length=200, description="Id or name of the project whose conversations can search it; empty = all.")
]
DOCUMENT: dict[str, Any] = {"requestBody": {"required": True, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}}


async def _project(caller: Caller, name: str) -> str:
    return (await caller.store.projects.get(name)).id if name else ""


@knowledge_router.get("")
async def list_sources(caller: Reader) -> ListOut[SourceOut]:
    """List the files, folders and uploads whose documents are indexed for you."""
    return ListOut(data=[SourceOut.of(source) for source in await caller.store.knowledge.sources()])


@knowledge_router.post("", status_code=201)
async def add_source(server: CurrentServer, caller: ToolUser, body: SourceIn) -> SourceOut:
    """Add a file or folder on the server's machine and index it. Only the user who runs the server can do this; others can upload."""
    if not caller.is_home_owner:
        raise Refused(
            "Only the owner of this machine can add files that are stored on it.",
            fix="Upload the document, or put it into the project's folder `knowledge`.",
        )
    if not Path(body.path).is_absolute():
        raise UsageError(
            f"{body.path!r} is not an absolute path.", fix="Use the absolute path of a file or folder on the server's machine."
        )
    library = server.engine.runtime.library(caller.owner_id)
    source = await library.add(Path(body.path), project=await _project(caller, body.project))
    await library.refresh(source)
    return await _source(caller, source.id)


@knowledge_router.post("/uploads/{name}", status_code=201, openapi_extra=DOCUMENT)
async def upload_document(server: CurrentServer, caller: Chatter, name: str, request: Request, project: OfProject = "") -> SourceOut:
    """Index the document in the body. The file itself is not stored. An earlier upload with the same name is replaced."""
    if "/" in name or "\0" in name or len(name) > 200:
        raise UsageError(f"{name[:100]!r} is not a valid document name.", fix="Use a file name such as report.pdf.")
    data = await request.body()
    if not data:
        raise UsageError("The request body is empty.", fix="Send the content of the file in the body.")
    library = server.engine.runtime.library(caller.owner_id)
    source = await library.upload(name, data, project=await _project(caller, project))
    return await _source(caller, source.id)


@knowledge_router.get("/search")
async def search_documents(
    server: CurrentServer,
    caller: Reader,
    q: Annotated[str, Query(min_length=1, max_length=500, description="Words to search for, or a question.")],
    project: OfProject = "",
    limit: Limit = 8,
) -> ListOut[PassageOut]:
    """Search documents by words and, if the embedding model is installed, by meaning. Best passages first."""
    root = (await caller.store.projects.get(project)).root_path if project else None
    scope = KnowledgeScope(await _project(caller, project), knowledge_folders(root or ""))
    hits = await server.engine.runtime.library(caller.owner_id).search(q, scope, limit=limit)
    return ListOut(data=[PassageOut.of(hit, by=[*hit.by]) for hit in hits])


@knowledge_router.get("/{source_id}/documents")
async def list_documents(caller: Reader, source_id: str) -> ListOut[DocumentOut]:
    """List the documents of a source. `problem` says why a document could not be read."""
    return ListOut(data=[DocumentOut.of(document) for document in await caller.store.knowledge.documents(source_id)])


@knowledge_router.post("/{source_id}/refresh")
async def refresh_source(server: CurrentServer, caller: Chatter, source_id: str) -> SourceOut:
    """Index new and changed documents of a source."""
    await server.engine.runtime.library(caller.owner_id).refresh(await _found(caller, source_id), again=True)
    return await _source(caller, source_id)


@knowledge_router.delete("/{source_id}")
async def remove_source(caller: Chatter, source_id: str) -> SourceOut:
    """Remove a source and its documents from the index. The files are not deleted."""
    found = await _found(caller, source_id)
    await caller.store.knowledge.remove(found.id)
    return SourceOut.of(found)


async def _found(caller: Caller, id: str) -> Source:
    await caller.store.knowledge.documents(id)  # raises NotFound
    return next(source for source in await caller.store.knowledge.sources() if id in (source.path, source.id) or source.id.startswith(id))


async def _source(caller: Caller, id: str) -> SourceOut:
    return SourceOut.of(await _found(caller, id))
