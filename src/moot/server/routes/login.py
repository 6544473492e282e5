"""A browser's way in and out: a code that works once becomes a cookie."""

from __future__ import annotations

from fastapi import Request, Response

from moot.server.auth import COOKIE, Reader, address_of
from moot.server.caller import Caller
from moot.server.credentials import BROWSER_SECONDS
from moot.server.problems import Problem
from moot.server.routing import Router
from moot.server.state import Here, Server
from moot.server.wire.tokens import LoginIn, SessionOut
from moot.types.token import SCOPES

router = Router(prefix="/api", tags=["login"])


@router.post("/login")
async def login(here: Here, request: Request, response: Response, given: LoginIn) -> SessionOut:
    """Signs a browser in with a code of `moot web`, or with a token: a cookie comes back."""
    here.logins.check(address_of(request))
    try:
        caller, secret = await (_by_code(here, given.code) if given.code is not None else _by_token(here, given.token or ""))
    except Problem:
        here.logins.wrong(address_of(request))
        raise
    response.set_cookie(
        COOKIE,
        secret,
        max_age=BROWSER_SECONDS,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.headers.get("origin", "").startswith("https:"),
    )
    return _session(caller)


async def _by_code(here: Server, code: str) -> tuple[Caller, str]:
    made = await here.tokens.sign_in(code, "browser")
    caller = await here.tokens.caller(made[1]) if made is not None else None
    if made is None or caller is None:
        raise Problem(401, "the code opens nothing: it was used, has expired or is wrong", fix="open the page again with `moot web`")
    return caller, made[1]


async def _by_token(here: Server, secret: str) -> tuple[Caller, str]:
    """The cookie carries that same token, so that revoking it ends the browser's visit as well."""
    caller = await here.tokens.caller(secret)
    if caller is None:
        raise Problem(401, "the token opens nothing: it is wrong, has expired or was revoked", fix="moot tokens create NAME")
    return caller, secret


@router.post("/logout", status_code=204)
async def logout(here: Here, caller: Reader, response: Response) -> None:
    """Signs the browser out: what `login` made for it opens nothing from now on; a token that a person brought stays."""
    if await here.tokens.is_browser(caller.token_id):
        await here.tokens.revoke(caller.token_id)
        here.streams.look()
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


@router.get("/session")
async def session(caller: Reader) -> SessionOut:
    """Says who is asking, and what they may do."""
    return _session(caller)


def _session(caller: Caller) -> SessionOut:
    return SessionOut(token_id=caller.token_id, owner=caller.owner_id, scopes=[scope for scope in SCOPES if scope in caller.scopes])
