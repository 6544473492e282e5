"""Callers and their credentials: verified in memory by digest, with a limit on failed attempts."""

from __future__ import annotations

import hmac
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from moot.errors import MootError
from moot.guard.tokens import CODE_SECONDS, digest, new_code, new_secret
from moot.server.problems import Problem
from moot.types.ids import Clock, SystemClock, new_id
from moot.types.store import OwnerStore, Store
from moot.types.token import LOCAL_USER, Scope, Token, expand_scopes

__all__ = ["Tries"]


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """Whoever showed a token: whose things they see, and what they may do."""

    token_id: str
    owner_id: str
    scopes: frozenset[Scope]
    """With all that a scope holds: `admin` alone is never in it."""
    store: OwnerStore
    """The owner's own view: what belongs to others is not there."""
    revoked: anyio.Event = field(default_factory=anyio.Event)
    """Set once the token opens nothing any more: open streams end then."""

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes


LOOK = 2.0
"""Seconds between two looks at what other processes have revoked."""

NOTE = 60.0
"""Seconds between two notes of when tokens were used last."""

BROWSER_SECONDS = 30 * 24 * 3600
"""How long a browser stays signed in."""

FIXED = "environment"
"""The id of the token that MOOT_TOKEN gives a server."""

log = logging.getLogger("moot.server")


@dataclass(slots=True)
class _Known:
    token: Token
    caller: Caller
    used_at: int = 0
    """ms; 0 = not since it was noted last."""


class Credentials:
    """The one place that says who a caller is."""

    def __init__(self, store: Store, *, fixed: str = "", clock: Clock | None = None) -> None:
        """`fixed` is a secret that opens everything for as long as this object lives."""
        self._store = store
        self._clock = clock or SystemClock()
        self._known: dict[bytes, _Known] = {}
        """By digest. Only what opens something gets in, so it is bounded by the tokens there are."""
        self._fixed: tuple[bytes, Caller] | None = None
        if fixed:
            self._fixed = digest(fixed), self._caller(FIXED, LOCAL_USER, ("admin",))

    def _caller(self, id: str, owner: str, scopes: tuple[Scope, ...]) -> Caller:
        return Caller(id, owner, expand_scopes(scopes), self._store.of(owner))

    @property
    def now(self) -> int:
        """ms"""
        return self._clock.now() // 1000

    def knows(self, secret: str) -> bool:
        """Whether the secret was let in before, or is the fixed one: then nobody guesses."""
        hashed = digest(secret)
        return hashed in self._known or (self._fixed is not None and hmac.compare_digest(hashed, self._fixed[0]))

    async def caller(self, secret: str) -> Caller | None:
        """Whom a secret lets in; None for one that opens nothing."""
        hashed = digest(secret)
        if self._fixed is not None and hmac.compare_digest(hashed, self._fixed[0]):
            return self._fixed[1]
        known = self._known.get(hashed)
        if known is None:
            token = await self._store.tokens.find(hashed)
            if token is None or not token.valid(self.now):
                return None
            known = self._known.setdefault(hashed, _Known(token, self._caller(token.id, token.owner, token.scopes)))
        if not known.token.valid(self.now):
            self._forget({known.token.id})
            return None
        known.used_at = self.now
        return known.caller

    # ── making and taking back ────────────────────────────────────────────────────────────────────────────────────────────────

    async def create(self, token: Token) -> tuple[Token, str]:
        """The stored token, and its secret, which nobody can tell again."""
        secret = new_secret()
        return await self._store.tokens.create(token, digest(secret)), secret

    async def revoke(self, id: str) -> Token:
        """Raises NotFound."""
        token = await self._store.tokens.revoke(id)
        self._forget({id})
        return token

    async def is_browser(self, id: str) -> bool:
        """Whether a login made it for one browser."""
        return id != FIXED and (await self._store.tokens.get(id)).kind == "browser"

    async def code(self, owner: str) -> str:
        """A code that a browser may sign in with once."""
        code = new_code()
        await self._store.tokens.put_code(digest(code), owner=owner, expires_at=self.now + CODE_SECONDS * 1000)
        return code

    async def sign_in(self, code: str, name: str) -> tuple[Token, str] | None:
        """A browser's token and its secret for a code; None when the code opens nothing (any more)."""
        owner = await self._store.tokens.redeem(digest(code))
        if owner is None:
            return None
        token = Token(new_id(), owner, name, ("admin",), "browser", expires_at=self.now + BROWSER_SECONDS * 1000)
        return await self.create(token)

    # ── keeping up ────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def watch(self, *, revoked: Callable[[], None] = lambda: None) -> None:
        """Ends what was revoked elsewhere or has expired, for as long as it is not cancelled; `revoked` is called when something was."""
        noted = anyio.current_time()
        while True:
            await anyio.sleep(LOOK)
            try:
                if self._known and (invalid := await self._store.tokens.invalid([known.token.id for known in self._known.values()])):
                    self._forget(invalid)
                    revoked()
                if anyio.current_time() - noted >= NOTE:
                    noted = anyio.current_time()
                    await self.note()
            except MootError as error:  # it is tried again at the next look
                log.error("tokens can't be checked: %s", error)

    async def note(self) -> None:
        """Writes down when tokens were used last."""
        used = {known.token.id: known.used_at for known in self._known.values() if known.used_at}
        for known in self._known.values():
            known.used_at = 0
        if used:
            await self._store.tokens.touch(used)

    def _forget(self, ids: set[str]) -> None:
        for hashed, known in list(self._known.items()):
            if known.token.id in ids:
                del self._known[hashed]
                known.caller.revoked.set()


SECONDS = 60.0
"""After so long without being heard an address may try again."""

ADDRESSES = 10_000
"""Addresses that are kept in mind; of more, those that were silent longest are forgotten."""


class Tries:
    """So many wrong ones in `SECONDS`; what opens something is never counted."""

    def __init__(self, most: int, *, what: str = "wrong tokens or codes", now: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._what = what
        self._now = now
        self._wrong: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """Address → when its window began, and how many came since."""

    def check(self, address: str) -> None:
        """Raises Problem (429) for an address that was wrong too often, before anything is looked up for it."""
        began, count = self._wrong.get(address, (0.0, 0))
        left = began + SECONDS - self._now()
        if count >= self._most and left > 0:
            said = f"too many {self._what} came from {address or 'there'}"
            raise Problem(429, said, headers={"retry-after": str(int(left) + 1)}, fix=f"wait {int(left) + 1} s, then try again")

    def wrong(self, address: str) -> None:
        """One more from that address."""
        began, count = self._wrong.pop(address, (self._now(), 0))
        if self._now() - began >= SECONDS:
            began, count = self._now(), 0
        self._wrong[address] = began, count + 1
        if len(self._wrong) > ADDRESSES:
            self._wrong.popitem(last=False)
