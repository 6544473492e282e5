"""The messages on the screen, which follow the conversation's current branch, and prompts that are waiting to be answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from moot.convert.files.attachments import typed_text
from moot.types.canonical import Json
from moot.types.chunk import Chunk
from moot.types.message import Message, Part, text_of
from moot.types.store import InboxItem
from moot.types.tree import summaries_of

_QUOTED = 60
"""Maximum number of characters of a prompt quoted in a notice."""


@dataclass(frozen=True, slots=True)
class QueuedPrompt:
    """A prompt that waits until the active run ends, or until its next step."""

    run: str
    text: str
    message: str = ""
    """ID of the message that will answer it."""
    extra: tuple[Part, ...] = ()
    """Parts that were typed separately, such as the output of shell commands."""


def taken_text(piece: Chunk) -> str | None:
    """Return the text of the message that a run has read or a hook has blocked; None if the chunk reports neither."""
    if piece["type"] == "steering-message":
        return text_of(parts_of(piece.get("parts")))
    data = piece.get("data") if piece["type"] == "data-note" else None
    unsent = data.get("unsent") if isinstance(data, dict) else None
    return unsent if isinstance(unsent, str) else None


def parts_of(value: Json) -> list[Part]:
    """Return the parts in a JSON list."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def withdrawn(run: str, item: InboxItem) -> QueuedPrompt:
    """Return a message from a run's inbox as a prompt that was not sent."""
    return QueuedPrompt(run, typed_text(parts_of(item.body.get("parts") if isinstance(item.body, dict) else None)))


class MessageView(Protocol):
    """The part of a conversation's display that prints messages."""

    def message(self, message: Message) -> None: ...

    def notice(self, text: str) -> None: ...


class ShownBranch:
    """The ids of the messages on the screen, in order."""

    def __init__(self, view: MessageView) -> None:
        self._view = view
        self.ids: list[str] = []
        self._summaries: set[str] = set()
        """Ids of the summaries on the screen."""

    @property
    def last(self) -> str | None:
        """Return the last message on the screen."""
        return self.ids[-1] if self.ids else None

    def cut(self) -> None:
        """Mark the last message on the screen as incomplete, because another conversation is shown next."""
        if self.ids:
            self.ids[-1] = ""

    def show(self, branch: Sequence[Message], *, echoed: bool = False) -> None:
        """Print the messages of the branch that are not on the screen yet.

        If the screen shows another branch, print a notice, then print this branch from the last prompt that both have in common.
        `echoed` is True if the last prompt is already on the screen.
        """
        ids = [message.id for message in branch]
        shown = [*self.ids, ids[-1]] if echoed and ids else self.ids
        if shown != ids[: len(shown)]:
            shown = self._back(branch)
        self.ids = ids
        for message in branch[len(shown) :]:
            self._view.message(message)
            self._summaries.update(str(part.get("id")) for part in summaries_of(message))
        for message in branch[: len(shown)]:  # summaries written after their message was printed
            if fresh := tuple(part for part in summaries_of(message) if part.get("id") not in self._summaries):
                self._view.message(Message("", "system", fresh))
                self._summaries.update(str(part.get("id")) for part in fresh)

    def _back(self, branch: Sequence[Message]) -> list[str]:
        """Print a notice that names the prompt where the branch continues. Return the ids of the messages before it."""
        common = next((at for at, (id, message) in enumerate(zip(self.ids, branch, strict=False)) if id != message.id), None)
        common = min(len(self.ids), len(branch)) if common is None else common
        prompt = next((at for at in reversed(range(common)) if branch[at].role == "user" and text_of(branch[at].parts)), None)
        if prompt is None:
            self._view.notice("Back to the start of the conversation")
            return []
        first_line = text_of(branch[prompt].parts).strip().split("\n", 1)[0]
        quoted = first_line if len(first_line) <= _QUOTED else f"{first_line[: _QUOTED - 1]}…"
        self._view.notice(f"Back to “{quoted}”")
        return [message.id for message in branch[:prompt]]
