"""Imports: upload a file, or import what is on the server's machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio.to_thread
from fastapi import Query, Request
from pydantic import Field, ValidationError

from moot.errors import Busy, Refused, UsageError
from moot.imports.conversations import ImportOptions
from moot.imports.report import ImportResult, Report
from moot.imports.sources import Source, local_sources, sources_at
from moot.server.auth import Admin, Chatter, Reader, Router
from moot.server.imports import Following, ImportJob, Upload, upload
from moot.server.models import In, ListOut, Out, shown_path
from moot.server.state import Here, Server

_SHOWN = 500
"""Conversations in one answer."""


class ImportIn(In):
    """What is to be brought in of the server's machine."""

    all: bool = False
    """What the agents on it keep."""
    path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """A file or a folder, absolute."""
    format: Annotated[str, Field(max_length=100)] = ""
    """What it is, or which format alone is meant; empty = that is found out."""
    since: Annotated[int, Field(ge=0)] = 0
    """ms; conversations that have not gone on since are passed over."""
    dry_run: bool = False
    """Say what would come, and store nothing."""


class MachineOut(Out):
    """What one program keeps on the server's machine."""

    format: str
    path: str
    """A folder in which all of it lies."""
    sources: int
    bytes: int
    conversations: int
    """That are here already."""


class FidelityOut(Out):
    """What became of the things in conversations."""

    kept: dict[str, int]
    approximated: dict[str, int]
    lost: dict[str, int]


class BroughtOut(Out):
    """What became of one conversation."""

    outcome: Literal["added", "grown", "known", "would be added", "would grow", "empty"]
    format: str
    path: str
    title: str
    conversation: str | None
    """Its id here."""
    messages: int
    """In the source."""
    added: int
    grown: int
    fidelity: FidelityOut
    problems: int
    """Records that could not be read."""
    notes: list[str]


class FailedOut(Out):
    """A source that could not be read."""

    path: str
    problem: str


class WatchOut(Out):
    """What of the agents on the server's machine comes in while they write it."""

    wanted: bool
    """What `imports.watch` says."""
    since: int | None
    """null = nothing is followed."""
    sources: int
    messages: int
    """That came, or went on, since."""
    last_at: int | None
    problem: str
    """Why nothing is followed though it is wanted."""


class UnclaimedOut(Out):
    """Files below a folder that no format knows."""

    count: int
    some: list[str]


class ImportOut(Out):
    """An import, as it stands."""

    id: str
    state: Literal["queued", "running", "finished", "failed"]
    error: str
    """Why it failed; empty when it did not."""
    asked_at: int
    ended_at: int | None
    sources: int
    sources_done: int
    unchanged: int
    """Sources that stand as they were when they were last read."""
    bytes: int
    bytes_done: int
    messages: int
    added: int
    """New messages."""
    grown: int
    problems: int
    conversations: dict[str, int]
    """Outcome → how many."""
    brought: list[BroughtOut]
    """At most 500, the newest."""
    failed: list[FailedOut]
    unclaimed: UnclaimedOut


def watch_out(following: Following) -> WatchOut:
    return WatchOut(
        wanted=following.engine.runtime.settings.imports.watch,
        since=following.since or None,
        sources=following.sources,
        messages=following.messages,
        last_at=following.last_at or None,
        problem=following.problem,
    )


def import_out(job: ImportJob, *, conversations: bool = True) -> ImportOut:
    """The import; without single conversations where many imports are listed."""
    report = job.report
    return ImportOut(
        id=job.id,
        state=job.state,
        error=job.error,
        asked_at=job.asked_at,
        ended_at=job.ended_at or None,
        sources=report.sources,
        sources_done=report.done,
        unchanged=report.unchanged,
        bytes=report.bytes,
        bytes_done=report.bytes_done,
        messages=report.messages,
        added=report.taken.added + report.taken.rewritten,
        grown=report.taken.grown,
        problems=report.problems,
        conversations=dict(report.conversations),
        brought=[_brought(one) for one in report.brought[-_SHOWN:]] if conversations else [],
        failed=[FailedOut(path=shown_path(one.path), problem=one.problem) for one in report.failed[-_SHOWN:]] if conversations else [],
        unclaimed=UnclaimedOut(count=report.unclaimed, some=[shown_path(path) for path in report.strangers]),
    )


def _brought(one: ImportResult) -> BroughtOut:
    fidelity = one.fidelity
    return BroughtOut(
        outcome=one.outcome,
        format=one.format,
        path=shown_path(one.path),
        title=one.title,
        conversation=one.conversation.id if one.conversation is not None and not one.outcome.startswith("would") else None,
        messages=one.messages,
        added=one.taken.added,
        grown=one.taken.grown,
        fidelity=FidelityOut(kept=dict(fidelity.kept), approximated=dict(fidelity.approximated), lost=dict(fidelity.lost)),
        problems=one.problems,
        notes=list(one.notes),
    )


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
    here: Here,
    caller: Chatter,
    request: Request,
    name: Annotated[str, Query(max_length=255, description="Of the file that the body is.")] = "",
    format: Annotated[str, Query(max_length=100, description="What the file is; else that is found out.")] = "",
) -> ImportOut:
    """Brings in a file, which is the body and has that `name`; or, told as JSON and with the scope `admin`, what is on the machine."""
    if name:
        here.imports.check()
        sent = await upload(here.engine.settings.home, name, request.stream())
        try:
            return import_out(
                here.imports.ask(ImportJob(caller.owner_id, caller.store, _of_sent(here, sent, format), ImportOptions(), sent))
            )
        except Busy:
            await sent.drop()
            raise
    if not caller.may("admin"):
        raise Refused("to read files of this machine a token needs the scope 'admin'", fix="send a file, with its `name`")
    try:
        wanted = ImportIn.model_validate_json(await request.body())
    except ValidationError as error:
        words = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])
        raise UsageError(f"the body is no import: {words}", fix='send {"all": true}, {"path": "/…"}, or a file with its `name`') from error
    if wanted.all == (wanted.path is not None):
        raise UsageError("an import is of `all` or of one `path`", fix='send {"all": true} or {"path": "/…"}')
    options = ImportOptions(home=Path.home(), since=wanted.since, dry_run=wanted.dry_run)
    return import_out(here.imports.ask(ImportJob(caller.owner_id, caller.store, _sources(here, wanted), options)))


@router.get("")
async def list_imports(here: Here, caller: Reader) -> ListOut[ImportOut]:
    """Lists the imports that this server was asked for since it began, newest first."""
    return ListOut(data=[import_out(job, conversations=False) for job in here.imports.of(caller.owner_id)])


@router.get("/found")
async def list_found(here: Here, caller: Admin) -> ListOut[MachineOut]:
    """Lists what the programs whose formats are known keep on the server's machine, and how much of each is here."""
    data = here.engine.settings.database.parent
    found = await anyio.to_thread.run_sync(lambda: list(local_sources(Path.home(), os.environ, data)))
    counts = await caller.store.imports.counts()
    names = dict.fromkeys([source.format.name for source in found])
    return ListOut(data=[_found(name, [source for source in found if source.format.name == name], counts.get(name, 0)) for name in names])


@router.get("/watch")
async def get_watch(here: Here, caller: Admin) -> WatchOut:
    """Tells whether what agents on the server's machine write comes in by itself, and how much has come."""
    return watch_out(here.following)


@router.get("/{import_id}")
async def get_import(here: Here, caller: Reader, import_id: str) -> ImportOut:
    """Gives an import as it stands: how far it is, and what became of each conversation."""
    return import_out(here.imports.get(import_id, caller.owner_id))


def _found(name: str, sources: list[Source], here: int) -> MachineOut:
    folders = {os.path.commonpath([source.path.parent for source in sources])}
    return MachineOut(
        format=name,
        path=shown_path(min(folders)),
        sources=len(sources),
        bytes=sum(source.mark.size for source in sources),
        conversations=here,
    )


def _of_sent(here: Server, sent: Upload, format: str) -> Callable[[Report], Iterable[Source]]:
    data = here.engine.settings.database.parent
    return lambda report: (replace(source, called=sent.name) for source in sources_at(sent.file, format, data, report))


def _sources(here: Server, wanted: ImportIn) -> Callable[[Report], Iterable[Source]]:
    data = here.engine.settings.database.parent
    if wanted.all:
        return lambda _: local_sources(Path.home(), os.environ, data, wanted.format)
    path = Path(wanted.path or "")
    if not path.is_absolute():
        raise UsageError(f"{wanted.path!r} is no absolute path", fix="name a file or folder of the server's machine")
    return lambda report: sources_at(path, wanted.format, data, report)
