"""The status line: what fits of what matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prompt_toolkit.utils import get_cwidth

from moot.commands import Situation
from moot.guard.terminal import clean
from moot.types.agent import Mode
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.usage import Usage

__all__ = ["Standing", "branch_of", "fitted", "short", "standing_of", "status_line"]

_NANO = 1e9
_BETWEEN = " · "


@dataclass(frozen=True, slots=True)
class Standing:
    """What a status line may say."""

    model: str = ""
    mode: Mode = "ask"
    agent: str = "default"
    directory: str = ""
    branch: str = ""
    title: str = ""
    conversation: str | None = None
    context: float | None = None
    """0 to 1."""
    usage: Usage = field(default_factory=Usage)
    cost: int | None = None
    unpriced: int = 0
    queued: int = 0
    effort: str = ""

    def to_json(self) -> JsonObject:
        """For a command of the person's own that draws it."""
        return {
            "model": self.model,
            "mode": self.mode,
            "agent": self.agent,
            "effort": self.effort or None,
            "directory": self.directory,
            "branch": self.branch or None,
            "conversation": self.conversation,
            "title": self.title,
            "context": self.context,
            "usage": self.usage.to_json(),
            "cost": self.cost,
            "unpriced_runs": self.unpriced,
            "queued": self.queued,
        }


def standing_of(situation: Situation, conversation: Conversation | None, *, queued: int) -> Standing:
    """Where things stand now: wishes first, then the conversation, then the configuration."""
    wishes, settings = situation.wishes, situation.engine.runtime.settings
    said = conversation or Conversation("")
    return Standing(
        model=wishes.model or said.next_model or settings.models.main,
        mode=wishes.mode or settings.permissions.mode,
        agent=wishes.agent or said.agent,
        directory=situation.directory,
        branch=branch_of(situation.directory),
        title=said.title,
        conversation=situation.conversation,
        context=said.context_usage,
        usage=said.usage,
        cost=said.cost,
        unpriced=said.unpriced_runs,
        queued=queued,
        effort=wishes.effort or "",
    )


def status_line(standing: Standing, width: int) -> str:
    """One line, never wider; the fields that matter least go first."""
    fields = _fields(standing)
    for least in range(max(rank for rank, _ in fields), -1, -1):
        line = _BETWEEN.join(text for rank, text in fields if text and rank <= least)
        if get_cwidth(line) <= width:
            return line
    return fitted(next((text for _, text in fields if text), ""), width)


def _fields(standing: Standing) -> Sequence[tuple[int, str]]:
    """In the order in which they stand, each with how soon it goes: the highest first."""
    used = (standing.usage.input or 0) + (standing.usage.output or 0)
    return [
        (0, clean(standing.model) or "no model yet"),
        (2, "" if standing.context is None else f"ctx {standing.context:.0%}"),
        (5, f"{short(used)} tokens" if used else ""),
        (3, _money(standing.cost, standing.unpriced)),
        (1, standing.mode),
        (6, f"effort {standing.effort}" if standing.effort else ""),
        (4, _place(standing)),
        (1, f"{standing.queued} queued" if standing.queued else ""),
    ]


def short(number: int) -> str:
    """1234 → 1.2k."""
    if number < 1_000:
        return str(number)
    return f"{number / 1_000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def _money(cost: int | None, unpriced: int) -> str:
    if cost is None:
        return ""
    return f"${cost / _NANO:.2f}{' + ?' if unpriced else ''}"


def _place(standing: Standing) -> str:
    home = str(Path.home())
    directory = standing.directory
    shown = "~" + directory[len(home) :] if directory == home or directory.startswith(home + "/") else directory
    return clean(f"{shown} ({standing.branch})" if standing.branch else shown)


def fitted(text: str, width: int) -> str:
    """What of a text fits so many columns."""
    while text and get_cwidth(text) > width:
        text = text[:-1]
    return text


def branch_of(directory: str) -> str:
    """The git branch that a folder is on; empty when there is none. Reads two small files and starts nothing."""
    for folder in (Path(directory), *Path(directory).parents):
        try:
            head = _head(folder / ".git")
        except OSError:
            continue
        return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else head[:8]
    return ""


def _head(git: Path) -> str:
    if git.is_file():  # a worktree: the file says where the folder is
        git = git.parent / git.read_text(encoding="utf-8", errors="replace").removeprefix("gitdir: ").strip()
    with (git / "HEAD").open(encoding="utf-8", errors="replace") as file:
        return file.read(500).strip()
