"""The seam of verifying a store: what is found, and what was looked at."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from moot.types.canonical import Json, JsonObject
from moot.types.provider import Translator

DamageKind: TypeAlias = Literal["missing", "changed", "unreadable", "chunks", "ending", "record", "message", "blob", "file"]
"""missing: a seq, row or blob that is named and not there · changed: bytes that their own check or hash does not fit · unreadable: bytes
that are no JSON of ours, or a translator that raised · chunks, ending: other than the raw bytes give · record: a row that says other than
the log · message: other than its events fold to · file: the database itself is broken."""

SHOWN = 100
"""Damages that a receipt names; the others are counted."""

Translators: TypeAlias = Callable[[str], Translator[Any] | None]
"""The translator for an exchange's `converter`, whatever its version; None where there is none."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One difference between what is stored and what it must be."""

    kind: DamageKind
    where: str
    """The thing, in words: `event 12`, `message ID`, `blob HASH`."""
    expected: str
    found: str
    conversation: str = ""
    """Empty = of no conversation."""
    seq: int | None = None
    run: str | None = None

    def to_json(self) -> JsonObject:
        return {
            "kind": self.kind,
            "where": self.where,
            "conversation": self.conversation or None,
            "seq": self.seq,
            "run": self.run,
            "expected": self.expected,
            "found": self.found,
        }


def _damages() -> list[Damage]:
    return []


@dataclass(slots=True)
class Receipt:
    """What was looked at, and what was wrong with it; filled while the work goes on."""

    conversations: int = 0
    runs: int = 0
    live: int = 0
    """Runs that have not ended: judged as far as their message is folded."""
    exchanges: int = 0
    rebuilt: int = 0
    """Exchanges whose chunks were made again from raw and compared."""
    not_rebuilt: dict[str, int] = field(default_factory=dict[str, int])
    """The others, by the converter that made them: it is here in another version, or not at all."""
    events: int = 0
    raw_events: int = 0
    raw_bytes: int = 0
    chunks: int = 0
    messages: int = 0
    requests: int = 0
    """Manifests whose pieces are all there."""
    blobs: int = 0
    blob_bytes: int = 0
    damaged: int = 0
    """All differences, those that are not named included."""
    damages: list[Damage] = field(default_factory=_damages)

    def add(self, damage: Damage) -> None:
        self.damaged += 1
        if len(self.damages) < SHOWN:
            self.damages.append(damage)

    def to_json(self) -> JsonObject:
        names = ("conversations", "runs", "live", "exchanges", "rebuilt")
        more = ("events", "raw_events", "raw_bytes", "chunks", "messages", "requests", "blobs", "blob_bytes", "damaged")
        return {
            "ok": not self.damaged,
            **{name: getattr(self, name) for name in names},
            "not_rebuilt": dict[str, Json](sorted(self.not_rebuilt.items())),
            **{name: getattr(self, name) for name in more},
            "damages": list[Json]([damage.to_json() for damage in self.damages]),
        }


class Verifying(Protocol):
    """Whether what is stored is what it was, and follows from the raw bytes. It only reads."""

    def verify(self, translators: Translators, *, conversation: str | None = None) -> AsyncGenerator[Receipt, None]:
        """The receipt as it grows, again after each stretch; whoever has taken the last one has all of it.

        Of one conversation by its id (with the blobs that it names), else of all conversations and blobs. Raises NotFound.
        """
        ...
