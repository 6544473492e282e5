"""Tokens, and signing a browser in and out."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from fastapi import Query, Request, Response
from pydantic import Field, model_validator

from moot.server.auth import COOKIE, Admin, Reader, Router, address_of
from moot.server.credentials import BROWSER_SECONDS, Caller
from moot.server.idempotency import SECRET
from moot.server.models import In, ListOut, Out
from moot.server.problems import Problem
from moot.server.state import Here, Server
from moot.types.ids import new_id
from moot.types.token import SCOPES, Scope, Token


class TokenOut(Out):
    """A token, without its secret, which nobody can tell again."""

    id: str
    name: str
    owner: str
    """Id of the user whose things it opens."""
    kind: Literal["token", "browser"]
    scopes: list[Scope]
    created_at: int
    used_at: int | None
    expires_at: int | None
    revoked_at: int | None


class TokenMade(TokenOut):
    """A new token with its secret, shown this once."""

    secret: str


class TokenIn(In):
    """A token to make."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: list[Scope] = Field(default=["chat"], min_length=1)
    user: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Name of the user whose things it opens, made when there is none; whoever asks, without it."""
    expires_in: Annotated[int, Field(ge=1, le=10 * 366 * 24 * 3600)] | None = None
    """Seconds; null = it stays until it is revoked."""


class LoginIn(In):
    """What a browser signs in with: a code, or a token that a person pasted."""

    code: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    token: Annotated[str, Field(min_length=1, max_length=200)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.code is None) == (self.token is None):
            raise ValueError("give a code or a token")
        return self


class SessionOut(Out):
    """Who is signed in."""

    token_id: str
    owner: str
    scopes: list[Scope]


def token_out(token: Token) -> TokenOut:
    """A token as it is sent."""
    return TokenOut(
        id=token.id,
        name=token.name,
        owner=token.owner,
        kind=token.kind,
        scopes=list(token.scopes),
        created_at=token.created_at,
        used_at=token.used_at,
        expires_at=token.expires_at,
        revoked_at=token.revoked_at,
    )


router = Router(prefix="/api/tokens", tags=["tokens"])


@router.get("")
async def list_tokens(here: Here, _: Admin, revoked: bool = Query(default=False)) -> ListOut[TokenOut]:
    """Lists tokens, newest first; with `revoked` also those that open nothing any more."""
    return ListOut(data=[token_out(token) for token in await here.engine.store.tokens.list(revoked=revoked)])


@router.post("", status_code=201)
async def create_token(here: Here, caller: Admin, request: Request, wanted: TokenIn) -> TokenMade:
    """Makes a token; its secret is shown this once."""
    request.scope[SECRET] = True
    owner = caller.owner_id if wanted.user is None else (await here.engine.store.tokens.user(wanted.user)).id
    scopes: tuple[Scope, ...] = tuple(scope for scope in SCOPES if scope in wanted.scopes)
    expires_at = None if wanted.expires_in is None else here.tokens.now + wanted.expires_in * 1000
    token, secret = await here.tokens.create(Token(new_id(), owner, wanted.name, scopes, expires_at=expires_at))
    return TokenMade(**token_out(token).model_dump(), secret=secret)


@router.delete("/{token_id}")
async def revoke_token(here: Here, _: Admin, token_id: str) -> TokenOut:
    """Revokes a token: it opens nothing from now on, and the streams that it opened end."""
    found = await here.engine.store.tokens.get(token_id)
    revoked = await here.tokens.revoke(found.id)
    here.streams.look()
    return token_out(revoked)


login_router = Router(prefix="/api", tags=["login"])


@login_router.post("/login")
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


@login_router.post("/logout", status_code=204)
async def logout(here: Here, caller: Reader, response: Response) -> None:
    """Signs the browser out: what `login` made for it opens nothing from now on; a token that a person brought stays."""
    if await here.tokens.is_browser(caller.token_id):
        await here.tokens.revoke(caller.token_id)
        here.streams.look()
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


@login_router.get("/session")
async def session(caller: Reader) -> SessionOut:
    """Says who is asking, and what they may do."""
    return _session(caller)


def _session(caller: Caller) -> SessionOut:
    return SessionOut(token_id=caller.token_id, owner=caller.owner_id, scopes=[scope for scope in SCOPES if scope in caller.scopes])
