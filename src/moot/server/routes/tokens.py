"""Tokens: whoever may do everything gives others less."""

from __future__ import annotations

from fastapi import Query, Request

from moot.server.auth import Admin
from moot.server.idempotency import SECRET
from moot.server.routing import Router
from moot.server.state import Here
from moot.server.wire.base import ListOut
from moot.server.wire.tokens import TokenIn, TokenMade, TokenOut, token_out
from moot.types.ids import new_id
from moot.types.token import SCOPES, Scope, Token

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
