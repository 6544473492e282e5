"""Texts of chat messages for answers and questions, within a chat service's limits on length and edit rate."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from hashlib import blake2b

import anyio

from moot.types.approval import Approval
from moot.types.channel import ChannelAnswer
from moot.types.run import Run

_FENCE = re.compile(r" {0,3}(`{3,})(.*)")
_CLOSING = "\n```"
_LONGEST_OPENING = 40


def split(text: str, limit: int) -> list[str]:
    """Split Markdown into messages of at most `limit` characters, between lines or words if possible. Return [] for an empty text.

    A code block that is split is closed, and opened again in the next message. If text is appended, only the last message can change.
    """
    pieces: list[str] = []
    opening, rest = "", text
    while rest.strip():
        head = f"{opening}\n" if opening else ""
        room = limit - len(head) - len(_CLOSING)
        cut = len(rest) if len(rest) <= room else _cut(rest[:room])
        piece = head + rest[:cut].rstrip("\n")
        opening = _open_fence(piece)
        pieces.append(piece + _CLOSING if opening else piece)
        rest = rest[cut:].removeprefix("\n")
    return pieces


def _cut(text: str) -> int:
    """Return the index at which to split: after the last line or word that fits if this is in the second half, otherwise at the end."""
    for separator in ("\n", " "):
        if (at := text.rfind(separator)) > len(text) // 2:
            return at
    return len(text)


def _open_fence(text: str) -> str:
    """Return the opening line of the code block that is not closed at the end of the text, or an empty string."""
    opening = ""
    for line in text.split("\n"):
        if (match := _FENCE.match(line)) is None:
            continue
        if not opening:
            opening = f"```{match[2].strip()}"[:_LONGEST_OPENING]
        elif not match[2].strip():
            opening = ""
    return opening


class Pace:
    """Rate limiter for edits: at least `interval` seconds pass between two calls of `turn`."""

    def __init__(
        self, interval: float, *, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    ) -> None:
        self._interval = interval
        self._now = now
        self._sleep = sleep
        self._next = 0.0

    async def turn(self) -> None:
        """Wait until it is time for the next edit."""
        while (left := self._next - self._now()) > 0:
            await self._sleep(left)
        self._next = self._now() + self._interval


def with_ending(text: str, run: Run) -> str:
    """Return the answer of a run that has ended. If the answer is not complete, add the reason."""
    if run.status == "finished":
        return text or "(no text)"
    why = run.error.advice() if run.error is not None else "The answer was stopped."
    return f"{text}\n\n{why}".strip()


def question_text(approval: Approval) -> str:
    """Return the text that asks a person: the exact tool call to approve, or the agent's questions and their options."""
    if not isinstance(approval.questions, list):
        # a fence in the call must not end the code block early
        call = approval.arguments.decode("utf-8", "replace").replace("```", "`\u200b``")
        return f"**{approval.tool}** needs your approval:\n```json\n{call}\n```"
    lines: list[str] = []
    for question in approval.questions:
        if isinstance(question, dict):
            options = question.get("options")
            lines += [str(question.get("text", ""))]
            lines += (
                [f"* {option.get('label', '') if isinstance(option, dict) else option}" for option in options or []]
                if isinstance(options, list)
                else []
            )
    return "\n".join([*lines, "Reply with your answer."])


def digest_of(id: str) -> str:
    """Return a short hash of an id, for the ids of buttons."""
    return blake2b(id.encode(), digest_size=12).hexdigest()


def nonce_of(subject: str, at: object) -> str:
    """Return a nonce for a message. If a message is sent again with the same nonce, Discord returns the first message instead of posting
    it again.
    """
    return digest_of(f"{subject}:{at}")


def last_message(answer: ChannelAnswer) -> int:
    """Return the id of a person's newest message that belongs to an answer: the prompt, or a reply to a question."""
    last = answer.shown.get("last")
    return max(int(answer.prompt.partition(".")[0] or 0), last if isinstance(last, int) else 0)
