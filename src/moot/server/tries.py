"""Wrong credentials of late, by the address they came from: who guesses is not even heard for a while, and keeps nobody else out."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from moot.server.problems import Problem

__all__ = ["Tries"]

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
