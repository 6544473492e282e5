"""Imports: a file that is sent, or what lies on the server's machine; what is there to bring in, and how far it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
from fastapi import Query, Request
from pydantic import ValidationError

from moot.errors import Busy, Refused, UsageError
from moot.runtime.importing import Report, Source, Wanted, sources_at, sources_here
from moot.server.auth import Admin, Chatter, Reader
from moot.server.importing import ImportJob
from moot.server.routing import Router
from moot.server.state import Here, Server
from moot.server.uploading import Upload, upload
from moot.server.wire.base import ListOut, shown_path
from moot.server.wire.imports import ImportIn, ImportOut, MachineOut, WatchOut, import_out, watch_out

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
            return import_out(here.imports.ask(ImportJob(caller.owner_id, caller.store, _of_sent(here, sent, format), Wanted(), sent)))
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
    options = Wanted(home=Path.home(), since=wanted.since, dry_run=wanted.dry_run)
    return import_out(here.imports.ask(ImportJob(caller.owner_id, caller.store, _sources(here, wanted), options)))


@router.get("")
async def list_imports(here: Here, caller: Reader) -> ListOut[ImportOut]:
    """Lists the imports that this server was asked for since it began, newest first."""
    return ListOut(data=[import_out(job, conversations=False) for job in here.imports.of(caller.owner_id)])


@router.get("/found")
async def list_found(here: Here, caller: Admin) -> ListOut[MachineOut]:
    """Lists what the programs whose formats are known keep on the server's machine, and how much of each is here."""
    data = here.engine.settings.database.parent
    found = await anyio.to_thread.run_sync(lambda: list(sources_here(Path.home(), os.environ, data)))
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
        return lambda _: sources_here(Path.home(), os.environ, data, wanted.format)
    path = Path(wanted.path or "")
    if not path.is_absolute():
        raise UsageError(f"{wanted.path!r} is no absolute path", fix="name a file or folder of the server's machine")
    return lambda report: sources_at(path, wanted.format, data, report)
