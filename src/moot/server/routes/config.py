"""The configuration: what is in force, where it was written, and changes to it."""

from __future__ import annotations

from typing import cast

from fastapi import Request, Response

from moot.config.secret import masked
from moot.server.auth import Admin
from moot.server.changing import check_place, is_local, write
from moot.server.etags import IfMatch, check_match, etag_of, tagged
from moot.server.routing import Router
from moot.server.state import Here, Server
from moot.server.wire.config import ConfigIn, ConfigOut, FaultOut
from moot.types.canonical import Json

router = Router(prefix="/api/config", tags=["configuration"])


@router.get("", responses={200: {"model": ConfigOut}, 304: {"description": "As the caller has it."}}, response_model=None)
async def show_config(here: Here, _: Admin, request: Request) -> Response:
    """Shows every setting in force, secrets masked; which layer decided it; and what is wrong with the file as it stands."""
    return tagged(request, _shown(here))


@router.patch("")
async def change_config(
    here: Here, _: Admin, request: Request, response: Response, wanted: ConfigIn, if_match: IfMatch = None
) -> ConfigOut:
    """Writes values into the configuration file, all or none, checked first; comments and order stay, and they are in force at once."""
    check_match(if_match, etag_of(_shown(here)))
    values = cast("dict[str, Json]", wanted.values)
    check_place(values, local=is_local(request))
    await write(here, values)
    shown = _shown(here)
    response.headers["etag"] = etag_of(shown)
    return shown


def _shown(server: Server) -> ConfigOut:
    loaded, error = server.configuration.loaded, server.configuration.error
    fault = None
    if error is not None:
        fault = FaultOut(file=error.file, line=error.line, column=error.column, message=error.message)
    return ConfigOut(
        generation=loaded.settings.generation,
        error=fault,
        home=str(loaded.settings.home),
        config=masked(loaded.configuration),
        origin=dict(loaded.origin),
        notes=list(loaded.notes),
    )
