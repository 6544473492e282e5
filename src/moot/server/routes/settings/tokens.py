"""Routes for access tokens, and for signing a browser in and out."""

from __future__ import annotations

from typing import Annotated, Self

from fastapi import Query, Request, Response
from pydantic import Field, model_validator

from moot.errors import NotFound, Refused
from moot.server.auth import COOKIE, Admin, Reader, Router, address_of
from moot.server.credentials import BROWSER_SECONDS, Caller
from moot.server.idempotency import SECRET, CurrentAttempt
from moot.server.models import In, ListOut, Out
from moot.server.problems import Problem
from moot.server.routes.settings.web_search import is_available
from moot.server.state import CurrentServer, Server
from moot.types.ids import new_id
from moot.types.token import SCOPES, Scope, Token, expand_scopes, scopes_for


class TokenOut(Out, of=Token, fields="id name owner kind scopes created_at used_at expires_at revoked_at"):
    """A token without its secret, which can't be retrieved."""

    owner: str
    """Id of the user whose resources the token grants access to."""


class TokenMade(TokenOut):
    """A new token with its secret, which is shown only once."""

    secret: str


class TokenIn(In):
    """A token to create."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: list[Scope] = Field(default=["chat"], min_length=1)
    user: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Name of the user whose resources the token grants access to; the user is created if missing. Defaults to the caller."""
    expires_in: Annotated[int, Field(ge=1, le=10 * 366 * 24 * 3600)] | None = None
    """Lifetime in seconds; null = until revoked."""


class LoginIn(In):
    """Credentials for browser sign-in: a code, or a token entered by a person."""

    code: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    token: Annotated[str, Field(min_length=1, max_length=200)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.code is None) == (self.token is None):
            raise ValueError("Exactly one of `code` and `token` is required.")
        return self


class SessionOut(Out):
    """The caller's token."""

    token_id: str
    owner: str
    scopes: list[Scope]
    transcribes: bool
    """True if `POST /api/transcriptions` is available, because `models.transcription` is set."""
    searches_web: bool
    """True if the tool `web_search` has a search engine."""
    keys: dict[str, list[str]]
    """Keyboard shortcuts of the configuration: action → its keys, such as `alt+enter`. Empty if the caller doesn't own moot's home."""


router = Router(prefix="/api/tokens", tags=["tokens"])


@router.get("")
async def list_tokens(server: CurrentServer, caller: Admin, revoked: bool = Query(default=False)) -> ListOut[TokenOut]:
    """List your tokens, newest first; with the scope `machine`, list the tokens of all users.

    `revoked` adds tokens that are no longer valid.
    """
    found = await server.engine.store.tokens.list(revoked=revoked)
    return ListOut(data=[TokenOut.of(token) for token in found if _manages(caller, token)])


@router.post("", status_code=201)
async def create_token(server: CurrentServer, caller: Admin, attempt: CurrentAttempt, request: Request, body: TokenIn) -> TokenMade:
    """Create a token. Its secret is shown only once. Creating a token for another user requires the scope `machine`, which only tokens of
    the user who runs the server can have.
    """
    request.scope[SECRET] = True
    if body.user is not None and not caller.may("machine"):
        raise Refused("Creating tokens for other users requires the 'machine' scope.", fix="Omit `user`.")
    owner = caller.owner_id if body.user is None else (await server.engine.store.tokens.user(body.user)).id
    scopes: tuple[Scope, ...] = tuple(scope for scope in SCOPES if scope in body.scopes)
    if not expand_scopes(scopes) <= caller.scopes & {*scopes_for(owner)}:
        raise Refused(
            "The token would have more permissions than you, or more than its user can have.", fix="Leave out the scope 'machine'."
        )
    expires_at = None if body.expires_in is None else server.tokens.now + body.expires_in * 1000
    token, secret = await server.tokens.create(Token(attempt.id or new_id(), owner, body.name, scopes, expires_at=expires_at))
    return TokenMade.of(token, secret=secret)


@router.delete("/{token_id}")
async def revoke_token(server: CurrentServer, caller: Admin, token_id: str) -> TokenOut:
    """Revoke a token. It stops working immediately, and its open streams end."""
    found = await server.engine.store.tokens.get(token_id)
    if not _manages(caller, found):
        raise NotFound(f"No token matches {token_id!r}.", fix="See `moot tokens list`.")
    revoked = await server.tokens.revoke(found.id)
    server.streams.check()
    return TokenOut.of(revoked)


def _manages(caller: Caller, token: Token) -> bool:
    return token.owner == caller.owner_id or caller.may("machine")


login_router = Router(prefix="/api", tags=["login"])


@login_router.post("/login")
async def login(server: CurrentServer, request: Request, response: Response, credentials: LoginIn) -> SessionOut:
    """Sign in a browser with a code from `moot web` or with a token, and set a session cookie."""
    server.logins.check(address_of(request))
    try:
        caller, secret = await _signed_in(server, credentials)
    except Problem:
        server.logins.record(address_of(request))
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
    return _session(server, caller)


async def _signed_in(server: Server, credentials: LoginIn) -> tuple[Caller, str]:
    """Return the caller and the value of the cookie. A token itself becomes the cookie, so revoking it ends the browser session."""
    secret = credentials.token
    if credentials.code is not None:
        created = await server.tokens.sign_in(credentials.code, "browser")
        secret = created[1] if created is not None else None
    caller = await server.tokens.caller(secret) if secret is not None else None
    if secret is not None and caller is not None:
        return caller, secret
    if credentials.code is not None:
        raise Problem(401, "The sign-in code is invalid, used or expired.", fix="Run `moot web` to open the page again.")
    raise Problem(401, "The token is invalid, expired or revoked.", fix="moot tokens create NAME")


@login_router.post("/logout", status_code=204)
async def logout(server: CurrentServer, caller: Reader, response: Response) -> None:
    """Sign out a browser. Its session token is revoked; a token that was entered by a person is not."""
    if await server.tokens.is_browser(caller.token_id):
        await server.tokens.revoke(caller.token_id)
        server.streams.check()
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


@login_router.get("/session")
async def session(server: CurrentServer, caller: Reader) -> SessionOut:
    """Get the current token's id, owner and scopes."""
    return _session(server, caller)


def _session(server: Server, caller: Caller) -> SessionOut:
    return SessionOut(
        token_id=caller.token_id,
        owner=caller.owner_id,
        scopes=[scope for scope in SCOPES if scope in caller.scopes],
        transcribes=server.engine.runtime.settings.models.transcription != "",
        searches_web=is_available(server),
        keys={name: [*chords] for name, chords in server.engine.runtime.settings.keys.items()} if caller.is_home_owner else {},
    )
