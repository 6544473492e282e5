"""A browser's way in and out: a code that works once becomes a cookie."""

from __future__ import annotations

from fastapi import Request, Response

from moot.server.auth import COOKIE, Reader
from moot.server.credentials import BROWSER_SECONDS
from moot.server.problems import Problem
from moot.server.routing import Router
from moot.server.state import Here
from moot.server.wire.tokens import LoginIn, SessionOut
from moot.types.token import SCOPES, held

router = Router(prefix="/api", tags=["login"])


@router.post("/login")
async def login(here: Here, request: Request, response: Response, given: LoginIn) -> SessionOut:
    """Signs a browser in with a code of `moot web`; the cookie that comes back is its token."""
    made = await here.tokens.sign_in(given.code, "browser")
    if made is None:
        raise Problem(401, "the code opens nothing: it was used, has expired or is wrong", fix="open the page again with `moot web`")
    token, secret = made
    response.set_cookie(
        COOKIE, secret, max_age=BROWSER_SECONDS, path="/", httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )
    scopes = held(token.scopes)
    return SessionOut(token_id=token.id, owner=token.owner, scopes=[scope for scope in SCOPES if scope in scopes])


@router.post("/logout", status_code=204)
async def logout(here: Here, caller: Reader, response: Response) -> None:
    """Signs the browser out: its token opens nothing from now on."""
    await here.tokens.revoke(caller.token_id)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


@router.get("/session")
async def session(caller: Reader) -> SessionOut:
    """Says who is asking, and what they may do."""
    return SessionOut(token_id=caller.token_id, owner=caller.owner_id, scopes=[scope for scope in SCOPES if scope in caller.scopes])
