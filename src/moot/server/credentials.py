"""Authentication of callers by token. Valid tokens are cached by digest, and failed attempts are limited."""

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
from moot.types.token import LOCAL_USER, Scope, Token, expand_scopes, scopes_for


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """The owner and scopes of the token that authenticated a request."""

    token_id: str
    owner_id: str
    scopes: frozenset[Scope]
    """Scopes of the token and all scopes they include; `machine` includes all others."""
    store: OwnerStore
    """The owner's view of the store, without resources of other users."""
    revoked: anyio.Event = field(default_factory=anyio.Event)
    """Set when the token becomes invalid; open streams end then."""

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes

    @property
    def is_home_owner(self) -> bool:
        """True for the person who runs this server. Other users can only access the folders assigned to their projects."""
        return self.owner_id == LOCAL_USER


INTERVAL = 2.0
"""Seconds between checks for tokens revoked by other processes."""

NOTE_INTERVAL = 60.0
"""Seconds between writes of the tokens' last-use times to the store."""

BROWSER_SECONDS = 30 * 24 * 3600
"""Lifetime of a browser session in seconds."""

FIXED = "environment"
"""Id of the token set by MOOT_TOKEN."""

log = logging.getLogger("moot.server")


@dataclass(slots=True)
class _Known:
    token: Token
    caller: Caller
    used_at: int = 0
    """Time of the last use in ms, if it is not stored yet; otherwise 0."""


class Credentials:
    """Tokens, sign-in codes and the callers they authenticate."""

    def __init__(self, store: Store, *, fixed: str = "", clock: Clock | None = None) -> None:
        """Create the cache. `fixed` is an additional secret with all scopes, from MOOT_TOKEN; empty = none."""
        self._store = store
        self._clock = clock or SystemClock()
        self._cached: dict[bytes, _Known] = {}
        """Cached tokens by digest. Only valid tokens are cached, so the cache can't grow larger than their number."""
        self._fixed: tuple[bytes, Caller] | None = None
        if fixed:
            self._fixed = digest(fixed), self._caller(FIXED, LOCAL_USER, ("machine",))

    def _caller(self, id: str, owner: str, scopes: tuple[Scope, ...]) -> Caller:
        return Caller(id, owner, expand_scopes(scopes, owner), self._store.of(owner))

    @property
    def now(self) -> int:
        """Current time in ms."""
        return self._clock.now() // 1000

    def knows(self, secret: str) -> bool:
        """Return True if the secret is the fixed one or was accepted before, so it does not count as a guess."""
        hashed = digest(secret)
        return hashed in self._cached or (self._fixed is not None and hmac.compare_digest(hashed, self._fixed[0]))

    async def caller(self, secret: str) -> Caller | None:
        """Return the caller a secret authenticates, or None if it is invalid."""
        hashed = digest(secret)
        if self._fixed is not None and hmac.compare_digest(hashed, self._fixed[0]):
            return self._fixed[1]
        cached = self._cached.get(hashed)
        if cached is None:
            token = await self._store.tokens.find(hashed)
            if token is None or not token.valid(self.now):
                return None
            cached = self._cached.setdefault(hashed, _Known(token, self._caller(token.id, token.owner, token.scopes)))
        if not cached.token.valid(self.now):
            self._forget({cached.token.id})
            return None
        cached.used_at = self.now
        return cached.caller

    # ── creation and revocation ───────────────────────────────────────────────────────────────────────────────────────────────

    async def create(self, token: Token) -> tuple[Token, str]:
        """Store a token and return it with its secret, which can't be retrieved later."""
        secret = new_secret()
        return await self._store.tokens.create(token, digest(secret)), secret

    async def revoke(self, id: str) -> Token:
        """Revoke a token. Raise NotFound if it does not exist."""
        token = await self._store.tokens.revoke(id)
        self._forget({id})
        return token

    async def is_browser(self, id: str) -> bool:
        """Return True if the token was created by a browser sign-in."""
        return id != FIXED and (await self._store.tokens.get(id)).kind == "browser"

    async def code(self, owner: str) -> str:
        """Return a one-time sign-in code for a browser."""
        code = new_code()
        await self._store.tokens.put_code(digest(code), owner=owner, expires_at=self.now + CODE_SECONDS * 1000)
        return code

    async def sign_in(self, code: str, name: str) -> tuple[Token, str] | None:
        """Return a browser token and its secret, or None if the code is invalid or used."""
        owner = await self._store.tokens.redeem(digest(code))
        if owner is None:
            return None
        token = Token(new_id(), owner, name, scopes_for(owner)[-1:], "browser", expires_at=self.now + BROWSER_SECONDS * 1000)
        return await self.create(token)

    # ── synchronization ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def watch(self, *, revoked: Callable[[], None] = lambda: None) -> None:
        """Drop cached tokens that another process revoked or that have expired. Never returns. `revoked` is called after each drop."""
        noted = anyio.current_time()
        while True:
            await anyio.sleep(INTERVAL)
            try:
                if self._cached and (invalid := await self._store.tokens.invalid([cached.token.id for cached in self._cached.values()])):
                    self._forget(invalid)
                    revoked()
                if anyio.current_time() - noted >= NOTE_INTERVAL:
                    noted = anyio.current_time()
                    await self.note()
            except MootError as error:  # retried at the next check
                log.error("tokens can't be checked: %s", error)

    async def note(self) -> None:
        """Store the times at which tokens were last used."""
        used = {cached.token.id: cached.used_at for cached in self._cached.values() if cached.used_at}
        for cached in self._cached.values():
            cached.used_at = 0
        if used:
            await self._store.tokens.touch(used)

    def _forget(self, ids: set[str]) -> None:
        for hashed, cached in list(self._cached.items()):
            if cached.token.id in ids:
                del self._cached[hashed]
                cached.caller.revoked.set()


SECONDS = 60.0
"""Length of the counting window in seconds."""

ADDRESSES = 10_000
"""Maximum number of tracked addresses; the least recently seen are dropped."""


class AttemptLimit:
    """Limits failed attempts per address and window; successful ones are not counted."""

    def __init__(self, most: int, *, what: str = "wrong tokens or codes", now: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._what = what
        self._now = now
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """Start of the window and number of failures, by address."""

    def check(self, address: str) -> None:
        """Raise Problem (429) if the address has exceeded the limit. Call this before the attempt is processed."""
        started, count = self._failures.get(address, (0.0, 0))
        remaining = started + SECONDS - self._now()
        if count >= self._most and remaining > 0:
            detail = f"Too many {self._what} from {address or 'this address'}."
            raise Problem(429, detail, headers={"retry-after": str(int(remaining) + 1)}, fix=f"Wait {int(remaining) + 1} s, then retry.")

    def record(self, address: str) -> None:
        """Count a failed attempt from the address."""
        started, count = self._failures.pop(address, (self._now(), 0))
        if self._now() - started >= SECONDS:
            started, count = self._now(), 0
        self._failures[address] = started, count + 1
        if len(self._failures) > ADDRESSES:
            self._failures.popitem(last=False)
