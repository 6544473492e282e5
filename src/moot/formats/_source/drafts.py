"""Messages of a growing file. The newest ones stay open because later records may belong to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from moot.formats._writing import things_in
from moot.types.canonical import JsonObject
from moot.types.format import Fidelity, ImportedMessage
from moot.types.message import Role
from moot.types.part import Part

__all__ = ["NOWHERE", "Draft", "Drafts", "Growing"]

_HELD = 4
_LARGEST = 16 << 20
"""Size in bytes after which an assistant message is continued in another message."""
NOWHERE = -1
"""Index of the parent of a first message."""


class Growing(Protocol):
    """The content of an assistant message while its records are read."""

    @property
    def waits(self) -> bool:
        """True while a tool call has no output."""
        ...

    def parts(self, *, over: bool) -> tuple[Part, ...]:
        """Return the current parts. `over` means that no more records follow."""
        ...

    def metadata(self) -> JsonObject:
        """Return the message's metadata."""
        ...


A = TypeVar("A", bound=Growing)


@dataclass(slots=True)
class Draft(Generic[A]):
    """A message that may still grow."""

    id: str
    place: int
    parent: str | None
    at: int
    prompt: tuple[Part, ...] | None
    """The parts of a prompt; None for an assistant message."""
    answer: A
    last: int = 0
    """The newest line of the tree that belongs to the message."""
    raws: list[bytes] = field(default_factory=list[bytes])
    size: int = 0
    role: Role = "user"
    """Role of a message that is not an assistant message."""

    def grow(self, raw: bytes) -> None:
        """Append raw bytes of the source."""
        self.raws.append(raw)
        self.size += len(raw)

    def is_full(self) -> bool:
        """Return whether the message is so large that the next model call starts another one."""
        return self.size > _LARGEST and not self.answer.waits


class Drafts(Generic[A]):
    """Messages by index, in the order in which they start."""

    def __init__(self, answer: Callable[[int], A]) -> None:
        """`answer` creates an empty answer to a prompt of that time."""
        self._new = answer
        self.kept: Counter[str] = Counter()
        self.approximated: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.model = ""
        self._started: list[tuple[str, bool]] = []
        self._parents = set[int]()
        self._open: dict[int, Draft[A]] = {}
        self._answers: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._started)

    def get(self, place: int | None) -> Draft[A] | None:
        """Return the message at an index if it may still grow."""
        return self._open.get(place) if place is not None else None

    def answer(self, place: int) -> Draft[A] | None:
        """Return the assistant message at an index if it may still grow."""
        draft = self._open.get(place)
        return draft if draft is not None and draft.prompt is None else None

    def answer_to(self, place: int) -> Draft[A] | None:
        """Return the newest answer to a prompt if it may still grow."""
        is_prompt = place == NOWHERE or not self._started[place][1]
        return self._open.get(self._answers.get(place, NOWHERE)) if is_prompt else None

    def begin(self, id: str, parent: int, at: int, prompt: tuple[Part, ...] | None, line: int) -> Draft[A]:
        """Start a message below the message at index `parent`. `line` is the line of the tree that it follows."""
        if parent in self._parents or (parent == NOWHERE and self._started):
            above = self._open.get(parent)
            (self.kept if above is None or above.last == line else self.approximated)["branches"] += 1
        self._parents.add(parent)
        place = len(self._started)
        above = self._open.get(parent)
        draft = Draft[A](
            id, place, self._started[parent][0] if parent != NOWHERE else None, at, prompt, self._new(above.at if above else at)
        )
        self._started.append((id, prompt is None))
        self._open[place] = draft
        if prompt is None:
            self._answers[parent] = place
        return draft

    def finished(self, *, all: bool = False) -> Iterator[ImportedMessage]:
        """Yield the messages that can't grow any more, or all of them at the end."""
        while len(self._open) > (0 if all else _HELD):
            draft = self._open.pop(next(iter(self._open)))
            yield self._message(draft, over=bool(self._open))

    def _message(self, draft: Draft[A], *, over: bool) -> ImportedMessage:
        raw = b"".join(draft.raws)
        parts = draft.answer.parts(over=over) if draft.prompt is None else draft.prompt
        role, metadata = (draft.role, {}) if draft.prompt is not None else ("assistant", draft.answer.metadata())
        message = ImportedMessage(role, parts, draft.id, raw, draft.parent, draft.at, metadata)
        self.kept.update(things_in(message))
        self.model = str(metadata.get("model") or self.model)
        return message

    def fidelity(self) -> Fidelity:
        """Return the counts since the last call."""
        counts = Fidelity(+self.kept, +self.approximated, +self.lost)
        for counter in (self.kept, self.approximated, self.lost):
            counter.clear()
        return counts
