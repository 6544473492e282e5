"""The interfaces for verifying a store and for translating old exchanges with newer converters."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from moot.types.canonical import Json, JsonObject
from moot.types.message import Message
from moot.types.provider import Translator

DamageKind: TypeAlias = Literal["missing", "changed", "unreadable", "chunks", "ending", "record", "message", "blob", "file"]
"""missing: a seq, row or blob that is referenced but absent · changed: bytes that don't match their checksum · unreadable: invalid JSON, or
a translator that raised · chunks, ending: differ from a new translation of the raw bytes · record: a row that differs from the log ·
message: differs from the parts built from its events · file: the database file itself is damaged."""

SHOWN = 100
"""Maximum number of damaged items listed in a receipt. Further ones are only counted."""

Translators: TypeAlias = Callable[[str], Translator[Any] | None]
"""Function from an exchange's `converter` to its translator in any version; None if there is none."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One difference between the stored and the expected state."""

    kind: DamageKind
    where: str
    """The damaged item: `event 12`, `message ID`, `blob HASH`."""
    expected: str
    found: str
    conversation: str = ""
    """Id of the conversation; empty = the item belongs to no conversation."""
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


@dataclass(slots=True)
class Receipt:
    """The result of a verification, updated as it proceeds."""

    conversations: int = 0
    runs: int = 0
    live: int = 0
    """Runs that have not ended; checked up to the last event that their stored message includes."""
    exchanges: int = 0
    rebuilt: int = 0
    """Exchanges whose chunks were rebuilt from raw and compared."""
    translated: int = 0
    """Exchanges for which readers see a newer translation."""
    not_rebuilt: dict[str, int] = field(default_factory=dict[str, int])
    """Other exchanges, by converter. These converters are available only in another version or not at all."""
    redacted: int = 0
    """Tombstone events; their remaining content is checked."""
    redacted_exchanges: int = 0
    """Exchanges that can't be rebuilt because some of their raw was redacted."""
    events: int = 0
    raw_events: int = 0
    raw_bytes: int = 0
    chunks: int = 0
    messages: int = 0
    requests: int = 0
    """Request manifests whose pieces all exist."""
    blobs: int = 0
    blob_bytes: int = 0
    damaged: int = 0
    """Number of all differences, including unlisted ones."""
    damages: list[Damage] = field(default_factory=list[Damage])

    def add(self, damage: Damage) -> None:
        self.damaged += 1
        if len(self.damages) < SHOWN:
            self.damages.append(damage)

    def to_json(self) -> JsonObject:
        return {
            "ok": not self.damaged,
            **asdict(self),
            "not_rebuilt": dict[str, Json](sorted(self.not_rebuilt.items())),
            "damages": list[Json]([damage.to_json() for damage in self.damages]),
        }


class Verifier(Protocol):
    """The check of stored data against its checksums and raw bytes. Read-only."""

    def verify(self, translators: Translators, *, conversation: str | None = None) -> AsyncGenerator[Receipt, None]:
        """Yield the same receipt after each batch; it is complete when the generator ends.

        Verify one conversation by id, with the blobs it refers to, or else all conversations and blobs. Raise NotFound if there is no such
        conversation.
        """
        ...


@dataclass(frozen=True, slots=True)
class Upgrade:
    """The effect of newer converters on one run, or on a conversation's calls outside runs."""

    conversation: str
    run: str
    """Empty = calls outside runs."""
    exchanges: tuple[str, ...]
    converters: tuple[str, ...]
    """`<from> → <to>`, without duplicates."""
    events: int = 0
    """Number of events whose chunks change."""
    chunks: tuple[int, int] = (0, 0)
    """Number of chunks in those exchanges, before and after."""
    endings: int = 0
    """Exchanges whose ending changes: its reason, usage or error. The run's recorded usage does not change."""
    differences: tuple[tuple[str, str, str], ...] = ()
    """The first few changes in the message: position, content before, content after."""
    skipped: str = ""
    """Reason why the run is not upgraded; empty = it is upgraded."""

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
    """Newer translations of old exchanges, stored in addition to the original ones. The log never changes."""

    def upgrade(self, translators: Translators, *, conversation: str | None = None, store: bool = True) -> AsyncGenerator[Upgrade, None]:
        """Yield, run by run, the changes that newer converters make to older exchanges; if `store` is set, apply them.

        Readers then get the new translation, also in messages. Live and damaged runs are skipped. Runs that are already upgraded are not
        reported again. Raise NotFound if there is no such conversation.
        """
        ...

    async def first(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages in their original translation."""
        ...

    async def converters(self, conversation: str) -> dict[str, str]:
        """Return the converter of each newer translation in the conversation, by exchange."""
        ...
