"""Users, tokens, sign-in codes and idempotency keys of the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias, get_args


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The response to a request with an idempotency key."""

    status: int
    """HTTP status; 0 = answered, but the response was not stored because it contained a secret."""
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Claim:
    """The state of an idempotency key.

    new: unused · open: claimed, but not answered yet · done: answered · other: used for another request.
    """

    standing: Literal["new", "open", "done", "other"]
    at: int = 0
    """Time of the first claim, in ms."""
    kept: StoredResponse | None = None


class Idempotency(Protocol):
    """Stored responses by owner and key, kept for a day."""

    async def claim(self, owner: str, key: str, *, request: bytes, worker: str) -> Claim:
        """Claim a key for `worker` if it is `new` or `open`; `request` is a digest of the request."""
        ...

    async def keep(self, owner: str, key: str, kept: StoredResponse) -> None:
        """Store the response to a request with a claimed key."""
        ...

    async def release(self, owner: str, key: str) -> None:
        """Free the key of a request that had no effect."""
        ...


Scope: TypeAlias = Literal["read", "chat", "tools", "admin", "machine"]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""In ascending order; each scope includes those before it. `admin` covers the user's own data, `machine` the settings
that all users share."""

LOCAL_USER = "local"
"""The id of the user that always exists: the person at this machine."""


def scopes_for(owner: str) -> tuple[Scope, ...]:
    """Return the scopes that a token of this user can have. Only the local user's tokens can have the scope `machine`."""
    return SCOPES if owner == LOCAL_USER else SCOPES[:-1]


def expand_scopes(scopes: Sequence[Scope], owner: str = LOCAL_USER) -> frozenset[Scope]:
    """Return these scopes and all scopes that they include, limited to those that the token's owner can have."""
    most = max((SCOPES.index(scope) for scope in scopes), default=-1)
    return frozenset(SCOPES[: most + 1]) & frozenset(scopes_for(owner))


@dataclass(frozen=True, slots=True)
class User:
    """An owner of resources."""

    id: str
    name: str
    created_at: int = 0
    """Time of creation, in milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a user; only the hash of its secret is stored."""

    id: str
    owner: str
    """Id of a user."""
    name: str
    scopes: tuple[Scope, ...]
    kind: Literal["token", "browser"] = "token"
    """`browser` = created by a sign-in in the browser and stored in a cookie."""
    created_at: int = 0
    """Time of creation, in milliseconds since the epoch."""
    used_at: int | None = None
    """Time of the last use, in milliseconds since the epoch, accurate to the minute; None = not used yet."""
    expires_at: int | None = None
    """Time at which the token expires, in milliseconds since the epoch; None = never."""
    revoked_at: int | None = None
    """Time of revocation, in milliseconds since the epoch; None = not revoked."""

    def valid(self, now: int) -> bool:
        """Return True if the token is valid at the given time (ms)."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class Tokens(Protocol):
    """Users, their tokens and sign-in codes, and idempotency keys."""

    @property
    def idempotency(self) -> Idempotency: ...

    async def user(self, name: str) -> User:
        """Return the user with this name, creating the user if needed."""
        ...

    async def users(self) -> list[User]: ...

    async def create(self, token: Token, digest: bytes) -> Token:
        """Store a token with the digest of its secret, durably, and return it with its creation time.

        If a token with this id exists, it gets the new secret.

        Raise NotFound if the owner does not exist.
        """
        ...

    async def find(self, digest: bytes) -> Token | None:
        """Return the token with this digest, even if it is expired or revoked."""
        ...

    async def get(self, reference: str) -> Token:
        """Return a token by id, by unique prefix of an id (4 characters or more), or by the name of an unrevoked token.

        Raise NotFound if none or several match.
        """
        ...

    async def list(self, *, revoked: bool = False) -> list[Token]:
        """List tokens, newest first; if `revoked` is set, include invalid ones."""
        ...

    async def revoke(self, id: str) -> Token:
        """Revoke a token, durably; revoking it again has no effect. Raise NotFound if none or several match."""
        ...

    async def touch(self, used: Mapping[str, int]) -> None:
        """Record when tokens were last used, in ms by token id."""
        ...

    async def invalid(self, ids: Sequence[str]) -> set[str]:
        """Return the ids of tokens that are invalid."""
        ...

    async def put_code(self, digest: bytes, *, owner: str, expires_at: int) -> None:
        """Store a code for a single browser sign-in until `expires_at` (ms)."""
        ...

    async def redeem(self, digest: bytes) -> str | None:
        """Mark a code as used and return its owner; None if the code is unknown, expired or already used."""
        ...
