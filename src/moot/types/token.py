"""Who may ask a server for what: people, their tokens, and the codes that a browser signs in with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias, get_args

from moot.types.idempotency import Idempotency

Scope: TypeAlias = Literal["read", "chat", "tools", "admin"]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""From the least to the most: each one holds those before it."""

LOCAL_USER = "local"
"""The id of the user that always exists: whoever sits at this machine."""


def held(scopes: Sequence[Scope]) -> frozenset[Scope]:
    """All that these scopes allow: a scope with those that it holds."""
    most = max((SCOPES.index(scope) for scope in scopes), default=-1)
    return frozenset(SCOPES[: most + 1])


@dataclass(frozen=True, slots=True)
class User:
    """Whom things belong to."""

    id: str
    name: str
    created_at: int = 0
    """ms"""


@dataclass(frozen=True, slots=True)
class Token:
    """What a secret stands for; the secret itself is kept nowhere, only its hash."""

    id: str
    owner: str
    """Id of a user."""
    name: str
    scopes: tuple[Scope, ...]
    kind: Literal["token", "browser"] = "token"
    """browser: made by a login, and carried by a cookie."""
    created_at: int = 0
    """ms, as all of its times."""
    used_at: int | None = None
    """To the minute."""
    expires_at: int | None = None
    """None = never."""
    revoked_at: int | None = None

    def valid(self, now: int) -> bool:
        """Whether it opens anything at that time (ms)."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class Tokens(Protocol):
    """Users, what they show to be let in, and what they asked for already."""

    @property
    def idempotency(self) -> Idempotency: ...

    async def user(self, name: str) -> User:
        """The user of that name, made when there is none."""
        ...

    async def users(self) -> list[User]: ...

    async def create(self, token: Token, digest: bytes) -> Token:
        """Stores it with the digest of its secret, fsynced; with its time. Raises NotFound when the owner does not exist."""
        ...

    async def find(self, digest: bytes) -> Token | None:
        """The one whose secret has that digest, also when it has expired or was revoked."""
        ...

    async def get(self, reference: str) -> Token:
        """By id, unique prefix (4 characters or more), or the name of one that is not revoked. Raises NotFound."""
        ...

    async def list(self, *, revoked: bool = False) -> list[Token]:
        """Newest first; with `revoked`, also those that open nothing any more."""
        ...

    async def revoke(self, id: str) -> Token:
        """It opens nothing from now on, fsynced; doing it again changes nothing. Raises NotFound."""
        ...

    async def touch(self, used: Mapping[str, int]) -> None:
        """Notes when tokens were used last: id → ms."""
        ...

    async def invalid(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that open nothing any more."""
        ...

    async def put_code(self, digest: bytes, *, owner: str, expires_at: int) -> None:
        """A code that a browser may sign in with once, until then (ms)."""
        ...

    async def redeem(self, digest: bytes) -> str | None:
        """The code's owner, once: None when there is no such code, it has expired or was used."""
        ...
