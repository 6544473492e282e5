"""Routes to import conversations from an uploaded file or from the server's machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio.to_thread
from fastapi import Query, Request
from pydantic import Field, ValidationError

from moot.errors import Busy, Refused, UsageError
from moot.imports.conversations import ImportOptions
from moot.imports.report import Failed, ImportResult, Report, UnreadFolder
from moot.imports.sources import Source, local_sources, sources_at
from moot.imports.unread_folders import unread_folders
from moot.server.auth import Chatter, Operator, Reader, Router
from moot.server.imports import ImportJob, ImportWatch, Upload, upload
from moot.server.models import In, ListOut, Out, ShownPath
from moot.server.resources import LATEST
from moot.server.state import CurrentServer, Server
from moot.types.format import Fidelity

_SHOWN = 500
"""Maximum number of conversations in one response."""


class ImportIn(In):
    """An import from the server's machine."""

    all: bool = False
    """Import all conversations of known agents."""
    path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Absolute path of a file or folder."""
    format: Annotated[str, Field(max_length=100)] = ""
    """Format of the file or folder. With `all`, only import conversations of this format. Empty = detect the format."""
    since: Annotated[int, Field(ge=0, le=LATEST)] = 0
    """Time in ms. Conversations without later activity are skipped."""
    dry_run: bool = False
    """Report what would be imported without storing anything."""


class MachineOut(Out):
    """Conversations of one program on the server's machine."""

    format: str
    path: ShownPath
    """Folder that contains all of the program's conversations."""
    sources: int
    bytes: int
    conversations: int
    """Number of conversations already imported."""


class FidelityOut(Out, of=Fidelity, fields="kept approximated lost"):
    """Number of items of each kind that were kept exactly, kept approximately or lost."""


class BroughtOut(Out, of=ImportResult, fields="outcome format path title conversation messages added grown fidelity problems notes"):
    """Outcome for one conversation."""

    path: ShownPath
    conversation: str | None
    """Id of the imported conversation."""
    added: int
    grown: int
    fidelity: FidelityOut


class FailedOut(Out, of=Failed, fields="path problem"):
    """A source that could not be read."""

    path: ShownPath


class WatchOut(Out, of=ImportWatch, fields="wanted since sources messages last_at problem"):
    """State of continuous import, which imports new messages from the agents on the server's machine."""

    wanted: bool
    """True if the setting `imports.watch` is on."""
    since: int | None
    """Time in ms at which continuous import started; null = it is not active."""
    last_at: int | None


class UnclaimedOut(Out):
    """Files in the imported folder that match no known format."""

    count: int
    some: list[ShownPath]


class UnreadOut(Out, of=UnreadFolder, fields="program path bytes is_whole reason"):
    """A folder or file of an agent that can't be read."""

    path: ShownPath


class ImportOut(
    Out,
    of=Report,
    fields="""id state error asked_at ended_at sources sources_done unchanged bytes bytes_done messages added grown problems conversations
    brought failed unclaimed unread""",
):
    """State of an import."""

    id: str
    state: Literal["queued", "running", "finished", "failed"]
    error: str
    """Why the import failed; empty if it did not fail."""
    asked_at: int
    ended_at: int | None
    sources_done: int
    added: int
    """New messages."""
    grown: int
    conversations: dict[str, int]
    """Number of conversations by outcome."""
    brought: list[BroughtOut]
    """Outcomes for individual conversations, at most the newest 500."""
    failed: list[FailedOut]
    unclaimed: UnclaimedOut
    unread: list[UnreadOut]
    """Folders and files of agents on the server's machine that can't be read. Known only if all agents are imported."""


def watch_out(watch: ImportWatch) -> WatchOut:
    wanted = watch.engine.runtime.settings.imports.watch
    return WatchOut.of(watch, wanted=wanted, since=watch.since or None, last_at=watch.last_at or None)


def import_out(job: ImportJob, *, conversations: bool = True) -> ImportOut:
    """Return the response for an import.

    Without `conversations`, as in lists, the outcomes for individual conversations are omitted.
    """
    report = job.report
    return ImportOut.of(
        job,
        report,
        ended_at=job.ended_at or None,
        sources=report.sources,
        sources_done=report.done,
        added=report.counts.added + report.counts.rewritten,
        grown=report.counts.grown,
        brought=[_outcome(one) for one in report.brought[-_SHOWN:]] if conversations else [],
        failed=report.failed[-_SHOWN:] if conversations else [],
        unclaimed=UnclaimedOut(count=report.unclaimed, some=report.strangers),
        unread=[UnreadOut.of(one, path=str(one.path)) for one in report.unread] if conversations else [],
    )


def _outcome(one: ImportResult) -> BroughtOut:
    stored = one.conversation.id if one.conversation is not None and not one.outcome.startswith("would") else None
    return BroughtOut.of(one, conversation=stored, added=one.counts.added, grown=one.counts.grown)


router = Router(prefix="/api/imports", tags=["imports"])

BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": ImportIn.model_json_schema()},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@router.post("", status_code=202, openapi_extra=BODY)
async def ask_import(
    server: CurrentServer,
    caller: Chatter,
    request: Request,
    name: Annotated[str, Query(max_length=255, description="Name of the uploaded file.")] = "",
    format: Annotated[str, Query(max_length=100, description="Format of the file; detected by default.")] = "",
) -> ImportOut:
    """Start an import of an uploaded file, or of files on the server's machine.

    With `name`, the body is the content of a file with this name. Without `name`, the JSON body selects files on the server's machine,
    which requires the scope `machine`.
    """
    if name:
        server.imports.check()
        sent = await upload(server.engine.settings.home, name, request.stream())
        try:
            return import_out(
                server.imports.ask(
                    ImportJob(caller.owner_id, caller.store, _of_sent(server, sent, format), ImportOptions.of(server.engine.settings), sent)
                )
            )
        except Busy:
            await sent.drop()
            raise
    if not caller.may("machine"):
        raise Refused("Reading files on this machine requires the 'machine' scope.", fix="Upload the file instead, and pass its `name`.")
    try:
        body = ImportIn.model_validate_json(await request.body())
    except ValidationError as error:
        words = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])
        raise UsageError(
            f"The body is not a valid import request: {words}.", fix='Send {"all": true}, {"path": "/…"}, or upload a file with its `name`.'
        ) from error
    if body.all == (body.path is not None):
        raise UsageError("Exactly one of `all` and `path` is required.", fix='Send {"all": true} or {"path": "/…"}.')
    options = ImportOptions.of(
        server.engine.settings, home=Path.home(), since=body.since, dry_run=body.dry_run, projects=body.all and not body.format
    )
    return import_out(server.imports.ask(ImportJob(caller.owner_id, caller.store, _sources(server, body), options)))


@router.get("")
async def list_imports(server: CurrentServer, caller: Reader) -> ListOut[ImportOut]:
    """List the imports requested since the server started, newest first."""
    return ListOut(data=[import_out(job, conversations=False) for job in server.imports.of(caller.owner_id)])


@router.get("/found")
async def list_found(server: CurrentServer, caller: Operator) -> ListOut[MachineOut]:
    """List the conversations of other programs found on the server's machine, and how many are already imported."""
    data = server.engine.settings.database.parent
    found = await anyio.to_thread.run_sync(lambda: list(local_sources(Path.home(), os.environ, data)))
    counts = await caller.store.imports.counts()
    names = dict.fromkeys([source.format.name for source in found])
    return ListOut(
        data=[_machine_out(name, [source for source in found if source.format.name == name], counts.get(name, 0)) for name in names]
    )


@router.get("/unread")
async def list_unread(server: CurrentServer, _: Operator) -> ListOut[UnreadOut]:
    """List the folders and files of agents on the server's machine that can't be read."""
    data = server.engine.settings.database.parent

    def unread() -> list[UnreadFolder]:
        return unread_folders(Path.home(), os.environ, local_sources(Path.home(), os.environ, data))

    return ListOut(data=[UnreadOut.of(one, path=str(one.path)) for one in await anyio.to_thread.run_sync(unread)])


@router.get("/watch")
async def get_watch(server: CurrentServer, _: Operator) -> WatchOut:
    """Get the state of continuous import, which imports new messages from the agents on the server's machine."""
    return watch_out(server.import_watch)


@router.get("/{import_id}")
async def get_import(server: CurrentServer, caller: Reader, import_id: str) -> ImportOut:
    """Get an import's progress and the outcome for each conversation."""
    return import_out(server.imports.get(import_id, caller.owner_id))


def _machine_out(name: str, sources: list[Source], imported: int) -> MachineOut:
    folders = {os.path.commonpath([source.path.parent for source in sources])}
    return MachineOut(
        format=name,
        path=min(folders),
        sources=len(sources),
        bytes=sum(source.mark.size for source in sources),
        conversations=imported,
    )


def _of_sent(server: Server, sent: Upload, format: str) -> Callable[[Report], Iterable[Source]]:
    data = server.engine.settings.database.parent
    return lambda report: (replace(source, called=sent.name) for source in sources_at(sent.file, format, data, report))


def _local_sources(data: Path, format: str, report: Report) -> Iterator[Source]:
    """Yield the sources of all agents on this machine, and add the folders that can't be read to the report."""
    found = list(local_sources(Path.home(), os.environ, data, format))
    report.unread = [] if format else unread_folders(Path.home(), os.environ, found)
    yield from found


def _sources(server: Server, body: ImportIn) -> Callable[[Report], Iterable[Source]]:
    data = server.engine.settings.database.parent
    if body.all:
        return lambda report: _local_sources(data, body.format, report)
    path = Path(body.path or "")
    if not path.is_absolute():
        raise UsageError(
            f"{body.path!r} is not an absolute path.", fix="Use the absolute path of a file or folder on the server's machine."
        )
    return lambda report: sources_at(path, body.format, data, report)
