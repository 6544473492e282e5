"""The answers that callers were given of late, so that who sends one back goes on in the conversation that it came from."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

MOST = 10_000
"""Answers that are remembered; who comes back to an older one begins a new conversation, and loses nothing by it."""


class Place(NamedTuple):
    conversation: str
    message: str


class Given:
    """By whose they are and by their digest. One of each server."""

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, str], Place] = OrderedDict()

    def remember(self, owner: str, digest: str, place: Place) -> None:
        self._places[owner, digest] = place
        self._places.move_to_end((owner, digest))
        if len(self._places) > MOST:
            self._places.popitem(last=False)

    def find(self, owner: str, digest: str) -> Place | None:
        """None when nobody knows it (any more)."""
        place = self._places.get((owner, digest))
        if place is not None:
            self._places.move_to_end((owner, digest))
        return place
