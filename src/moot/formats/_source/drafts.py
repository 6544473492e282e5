"""The newest messages of a file that grows, as long as records may still belong to them; of all others what finds them again."""

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
"""Bytes of lines behind which an answer goes on in another message."""
NOWHERE = -1
"""The place of what hangs on nothing."""


class Growing(Protocol):
    """An answer while its records come in."""

    @property
    def waits(self) -> bool:
        """Whether a call has no output yet."""
        ...

    def parts(self, *, over: bool) -> tuple[Part, ...]:
        """The parts as they are now; `over`: nothing more is to come."""
        ...

    def metadata(self) -> JsonObject:
        """What it was made with."""
        ...


A = TypeVar("A", bound=Growing)


@dataclass(slots=True)
class Draft(Generic[A]):
    """A message that may still grow."""

    id: str
    place: int
    parent: str | None
    at: int
    said: tuple[Part, ...] | None
    """A person's words; None = an answer."""
    answer: A
    last: int = 0
    """The newest line of the tree that belongs to it."""
    raws: list[bytes] = field(default_factory=list[bytes])
    size: int = 0
    role: Role = "user"
    """Whose words they are, of a message that is no answer."""

    def grow(self, raw: bytes) -> None:
        """Takes the source's own words for it."""
        self.raws.append(raw)
        self.size += len(raw)

    def is_full(self) -> bool:
        """Whether it is so large that the next model call begins another message."""
        return self.size > _LARGEST and not self.answer.waits


class Drafts(Generic[A]):
    """Messages by their places, which are numbers in the order of their beginnings."""

    def __init__(self, answer: Callable[[int], A]) -> None:
        """`answer` makes an empty one for a prompt of that time."""
        self._new = answer
        self.kept: Counter[str] = Counter()
        self.approximated: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.model = ""
        self._made: list[tuple[str, bool]] = []
        self._parents = set[int]()
        self._held: dict[int, Draft[A]] = {}
        self._answers: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._made)

    def held(self, place: int | None) -> Draft[A] | None:
        """The message at that place, if it may still grow."""
        return self._held.get(place) if place is not None else None

    def answer(self, place: int) -> Draft[A] | None:
        """The answer at that place, if it may still grow."""
        draft = self._held.get(place)
        return draft if draft is not None and draft.said is None else None

    def answer_to(self, place: int) -> Draft[A] | None:
        """The newest answer to the prompt at that place, if it may still grow."""
        is_prompt = place == NOWHERE or not self._made[place][1]
        return self._held.get(self._answers.get(place, NOWHERE)) if is_prompt else None

    def begin(self, id: str, parent: int, at: int, said: tuple[Part, ...] | None, line: int) -> Draft[A]:
        """A new message below that place; `line`: which line of the tree it hangs on."""
        if parent in self._parents or (parent == NOWHERE and self._made):
            above = self._held.get(parent)
            (self.kept if above is None or above.last == line else self.approximated)["branches"] += 1
        self._parents.add(parent)
        place = len(self._made)
        above = self._held.get(parent)
        draft = Draft[A](id, place, self._made[parent][0] if parent != NOWHERE else None, at, said, self._new(above.at if above else at))
        self._made.append((id, said is None))
        self._held[place] = draft
        if said is None:
            self._answers[parent] = place
        return draft

    def finished(self, *, all: bool = False) -> Iterator[ImportedMessage]:
        """Messages that nothing belongs to any more; at the end all that there are."""
        while len(self._held) > (0 if all else _HELD):
            draft = self._held.pop(next(iter(self._held)))
            yield self._message(draft, over=bool(self._held))

    def _message(self, draft: Draft[A], *, over: bool) -> ImportedMessage:
        raw = b"".join(draft.raws)
        parts = draft.answer.parts(over=over) if draft.said is None else draft.said
        role, metadata = (draft.role, {}) if draft.said is not None else ("assistant", draft.answer.metadata())
        message = ImportedMessage(role, parts, draft.id, raw, draft.parent, draft.at, metadata)
        self.kept.update(things_in(message))
        self.model = str(metadata.get("model") or self.model)
        return message

    def fidelity(self) -> Fidelity:
        """What became of what came since it was asked last."""
        told = Fidelity(+self.kept, +self.approximated, +self.lost)
        for counter in (self.kept, self.approximated, self.lost):
            counter.clear()
        return told
