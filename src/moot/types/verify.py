"""The seams of verifying a store and of translating it anew: what is found, what was looked at, what a newer converter changes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from moot.types.canonical import Json, JsonObject
from moot.types.message import Message
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
    translated: int = 0
    """Exchanges that readers are shown in a newer translation than the first."""
    not_rebuilt: dict[str, int] = field(default_factory=dict[str, int])
    """The others, by the converter that made them: it is here in another version, or not at all."""
    redacted: int = 0
    """Events that are tombstones: something was taken out of them, and what is left is judged."""
    redacted_exchanges: int = 0
    """Exchanges that are not made again from raw because some of it was taken out."""
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
        names = ("conversations", "runs", "live", "exchanges", "rebuilt", "translated")
        more = (
            "redacted",
            "redacted_exchanges",
            "events",
            "raw_events",
            "raw_bytes",
            "chunks",
            "messages",
            "requests",
            "blobs",
            "blob_bytes",
            "damaged",
        )
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


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What newer converters make of one run, or of the calls beside the runs of a conversation."""

    conversation: str
    run: str
    """Empty = calls beside the runs."""
    exchanges: tuple[str, ...]
    converters: tuple[str, ...]
    """`<from> → <to>`, each once."""
    events: int = 0
    """Those that stand for other chunks now."""
    chunks: tuple[int, int] = (0, 0)
    """Before and after, in those exchanges."""
    endings: int = 0
    """Exchanges that end otherwise now: another reason, usage or error. What a run took stays as it was counted."""
    differences: tuple[tuple[str, str, str], ...] = ()
    """The first few places of the message that become others: where, before, after."""
    skipped: str = ""
    """Why it is left as it is; empty = it is not."""

    def to_json(self) -> JsonObject:
        return {
            "conversation": self.conversation,
            "run": self.run or None,
            "exchanges": list[Json](self.exchanges),
            "converters": list[Json](self.converters),
            "events": self.events,
            "chunks": {"before": self.chunks[0], "after": self.chunks[1]},
            "endings": self.endings,
            "differences": [{"where": where, "before": before, "after": after} for where, before, after in self.differences],
            "skipped": self.skipped or None,
        }


class Translations(Protocol):
    """Newer translations of old exchanges, beside the first ones. The log is never changed."""

    def upgrade(self, translators: Translators, *, conversation: str | None = None, store: bool = True) -> AsyncGenerator[Upgrade, None]:
        """What the converters that are here would change of what older versions made, run by run, and with `store` does.

        Stored, it is what readers get, the messages included. Only ended runs; one that the store has damaged is left as it is. What was
        upgraded already is not told again. Raises NotFound.
        """
        ...

    async def first(self, messages: Sequence[Message]) -> list[Message]:
        """The messages as they were first translated."""
        ...

    async def converters(self, conversation: str) -> dict[str, str]:
        """Exchanges of that conversation that are shown in a newer translation → the converter that made it."""
        ...
