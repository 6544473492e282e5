"""Who is asking."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio

from moot.types.store import Holdings
from moot.types.token import Scope


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """Whoever showed a token: whose things they see, and what they may do."""

    token_id: str
    owner_id: str
    scopes: frozenset[Scope]
    """With all that a scope holds: `admin` alone is never in it."""
    store: Holdings
    """The owner's own view: what belongs to others is not there."""
    revoked: anyio.Event = field(default_factory=anyio.Event)
    """Set once the token opens nothing any more: open streams end then."""

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes
