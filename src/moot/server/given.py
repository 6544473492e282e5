"""The answers that callers were given, so that who sends one back goes on in the conversation that it came from.

What this server has answered is known by its digest. What one before it has is found by the runs themselves: each names, in what it serves,
the digest of all that was sent to it, and its stored answer tells whether it is the one that came back.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import anyio

from moot.convert.callers.digests import answer_digest
from moot.convert.callers.telling import pieces_of
from moot.types.run import Run
from moot.types.served import Served
from moot.types.store import Holdings

__all__ = ["Given", "Place"]

MOST = 10_000
"""Answers that are known; who comes back to an older one begins a new conversation, and loses nothing by it."""

_PAGE = 500


class Place(NamedTuple):
    conversation: str
    message: str


class Given:
    """By whose they are and by their digest. One of each server."""

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, str], Place] = OrderedDict()
        self._earlier: dict[str, dict[str, list[str]]] = {}
        """Of an owner, the runs that were there before this server looked: by what was sent, newest first."""
        self._looking = anyio.Lock()

    def remember(self, owner: str, digest: str, place: Place) -> None:
        self._places[owner, digest] = place
        self._places.move_to_end((owner, digest))
        if len(self._places) > MOST:
            self._places.popitem(last=False)

    async def find(self, store: Holdings, owner: str, digest: str, before: str) -> Place | None:
        """Where the answer with that digest, to what has the digest `before`, stands; None when nobody knows it (any more)."""
        place = self._places.get((owner, digest))
        if place is not None:
            self._places.move_to_end((owner, digest))
            return place
        async with self._looking:
            if owner not in self._earlier:
                self._earlier[owner] = await _runs_of(store)
        for id in self._earlier[owner].get(before, ()):
            run = await store.records.run(id)
            if await _said(store, run, before) == digest:
                place = Place(run.conversation, run.message)
                self.remember(owner, digest, place)
                return place
        return None


async def _runs_of(store: Holdings) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    last: int | None = None
    looked = 0
    while looked < MOST and (page := await store.records.runs(statuses=frozenset({"finished"}), limit=_PAGE, before=last)):
        for run in page:
            served = Served.of(run.settings)
            if served is not None and served.digest:
                found.setdefault(served.digest, []).append(run.id)
        last = page[-1].no
        looked += len(page)
    return found


async def _said(store: Holdings, run: Run, before: str) -> str:
    """The digest of a run's answer as its caller had it."""
    served = Served.of(run.settings) or Served()
    message = await store.conversations.message(run.message)
    return answer_digest(before, pieces_of(message.parts, served.takes))
