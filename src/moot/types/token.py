"""Users, tokens, sign-in codes and idempotency keys of the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias, get_args


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A stored response."""

    status: int
    """0 = answered, but the response was not stored because it contained a secret."""
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Claim:
    """The state of a key: unused; claimed, but not answered; answered; used for a different request."""

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
        """Store the response."""
        ...

    async def release(self, owner: str, key: str) -> None:
        """Free the key of a request that had no effect."""
        ...


Scope: TypeAlias = Literal["read", "chat", "tools", "admin", "machine"]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""In ascending order; each scope includes those before it. `admin` covers the user's own data, `machine` what all share."""

LOCAL_USER = "local"
"""The id of the user that always exists: the person at this machine."""


def scopes_for(owner: str) -> tuple[Scope, ...]:
    """Return the scopes that a token of this user can have. Only the person at this machine can change the machine."""
    return SCOPES if owner == LOCAL_USER else SCOPES[:-1]


def expand_scopes(scopes: Sequence[Scope], owner: str = LOCAL_USER) -> frozenset[Scope]:
    """Return these scopes and all scopes they include, as far as the owner of the token can have them."""
    most = max((SCOPES.index(scope) for scope in scopes), default=-1)
    return frozenset(SCOPES[: most + 1]) & frozenset(scopes_for(owner))


@dataclass(frozen=True, slots=True)
class User:
    """An owner of resources."""

    id: str
    name: str
    created_at: int = 0
    """ms"""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a user; only the hash of its secret is stored."""

    id: str
    owner: str
    """Id of a user."""
    name: str
    scopes: tuple[Scope, ...]
    kind: Literal["token", "browser"] = "token"
    """browser: created by a login and stored in a cookie."""
    created_at: int = 0
    """ms, like all its times."""
    used_at: int | None = None
    """Accurate to the minute."""
    expires_at: int | None = None
    """None = never."""
    revoked_at: int | None = None

    def valid(self, now: int) -> bool:
        """Return True if the token is valid at that time (ms)."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class Tokens(Protocol):
    """Users, their tokens and sign-in codes, and idempotency keys."""

    @property
    def idempotency(self) -> Idempotency: ...

    async def user(self, name: str) -> User:
        """Return the user of that name, creating it if needed."""
        ...

    async def users(self) -> list[User]: ...

    async def create(self, token: Token, digest: bytes) -> Token:
        """Store a token with the digest of its secret, durably, and return it with its time. An existing id gets the new secret.

        Raise NotFound if the owner does not exist.
        """
        ...

    async def find(self, digest: bytes) -> Token | None:
        """Return the token with that digest, even if it is expired or revoked."""
        ...

    async def get(self, reference: str) -> Token:
        """Find by id, unique prefix (4 characters or more), or the name of an unrevoked token. Raise NotFound."""
        ...

    async def list(self, *, revoked: bool = False) -> list[Token]:
        """List tokens, newest first; with `revoked`, include invalid ones."""
        ...

    async def revoke(self, id: str) -> Token:
        """Revoke a token, durably; repeating it has no effect. Raise NotFound."""
        ...

    async def touch(self, used: Mapping[str, int]) -> None:
        """Record when tokens were last used: id → ms."""
        ...

    async def invalid(self, ids: Sequence[str]) -> set[str]:
        """Return the ids whose tokens are invalid."""
        ...

    async def put_code(self, digest: bytes, *, owner: str, expires_at: int) -> None:
        """Store a code for a single browser sign-in until `expires_at` (ms)."""
        ...

    async def redeem(self, digest: bytes) -> str | None:
        """Use up a code and return its owner; None if it is unknown, expired or used."""
        ...
