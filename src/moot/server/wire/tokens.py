"""Tokens, and signing in."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from moot.server.wire.base import In, Out
from moot.types.token import Scope, Token


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
