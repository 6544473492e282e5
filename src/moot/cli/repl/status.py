"""The status line, which shows the most important fields that fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from moot.cli.terminal.text import width_of
from moot.commands import CommandContext
from moot.commands.status import current_model
from moot.convert.serialization import describe_cost
from moot.guard.terminal import clean
from moot.types.agent import Mode
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.usage import Usage

_SEPARATOR = " · "
_STYLE, _WARNING = "class:status", "class:note"
_PLACE = 4
"""Rank of the folder."""


@dataclass(frozen=True, slots=True)
class Status:
    """The fields of a status line."""

    model: str = ""
    mode: Mode = "ask"
    agent: str = "default"
    directory: str = ""
    branch: str = ""
    title: str = ""
    conversation: str | None = None
    context: float | None = None
    """Used part of the context window, from 0 to 1."""
    usage: Usage = field(default_factory=Usage)
    cost: int | None = None
    unpriced: int = 0
    queued: int = 0
    elsewhere: int = 0
    """Number of approvals that other conversations wait for."""
    effort: str = ""
    budget: str = ""
    """Budgets that are nearly used up; empty if there are none."""

    def to_json(self) -> JsonObject:
        """Return the input of a custom status line program."""
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
            "waiting_elsewhere": self.elsewhere,
            "budget": self.budget or None,
        }


def current_status(context: CommandContext, conversation: Conversation | None, *, queued: int, elsewhere: int = 0) -> Status:
    """Return the current status. Overrides come first, then the conversation, then the configuration."""
    overrides, settings = context.overrides, context.engine.runtime.settings
    known = conversation or Conversation("")
    return Status(
        model=current_model(context, conversation),
        mode=overrides.mode or known.own_settings.mode or settings.permissions.mode,
        agent=overrides.agent or known.agent,
        directory=context.directory,
        branch=branch_of(context.directory),
        title=known.title,
        conversation=context.conversation,
        context=known.context_usage,
        usage=known.usage,
        cost=known.cost,
        unpriced=known.unpriced_runs,
        queued=queued,
        elsewhere=elsewhere,
        effort=overrides.effort or known.own_settings.effort or "",
        budget=context.engine.runtime.budget_status,
    )


def status_line(status: Status, width: int) -> list[tuple[str, str]]:
    """Return the status line as styled pieces, in at most `width` columns. The least important fields are dropped first.

    A path that is too long is shortened to its last folder. The mode `auto` has the colour of warnings, because it allows nearly
    everything.
    """
    fields = _fields(status)
    for least in range(max(rank for rank, *_ in fields), -1, -1):
        for location in dict.fromkeys((_location(status), _location(status, short=True))):
            shown = [(style, location if rank == _PLACE else text) for rank, style, text in fields if text and rank <= least]
            if width_of(_SEPARATOR.join(text for _, text in shown)) <= width:
                return [piece for field in shown for piece in ((_STYLE, _SEPARATOR), field)][1:]
    return [(_STYLE, truncate(next((text for _, _, text in fields if text), ""), width))]


def _fields(status: Status) -> Sequence[tuple[int, str, str]]:
    """Return the fields in display order, each with its rank and style. Fields with the highest rank are dropped first."""
    used = (status.usage.input or 0) + (status.usage.output or 0)
    return [
        (0, _STYLE, clean(status.agent) if status.agent != "default" else ""),
        (0, _STYLE, clean(status.model) or ("no model" if status.agent == "default" else "")),
        (2, _STYLE, "" if status.context is None else f"ctx {status.context:.0%}"),
        (5, _STYLE, f"{short_count(used)} tokens" if used else ""),
        (3, _STYLE, describe_cost(status.cost, status.unpriced, digits=2)),
        (1, _STYLE, status.budget),
        (1, _WARNING if status.mode == "auto" else _STYLE, status.mode),
        (6, _STYLE, f"effort {status.effort}" if status.effort else ""),
        (_PLACE, _STYLE, _location(status)),
        (1, _STYLE, f"{status.queued} queued" if status.queued else ""),
        (1, _WARNING, f"{status.elsewhere} waiting elsewhere" if status.elsewhere else ""),
    ]


def short_count(number: int) -> str:
    """Return a short form of a number, such as 1.2k for 1234."""
    if number < 1_000:
        return str(number)
    return f"{number / 1_000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def _location(status: Status, *, short: bool = False) -> str:
    home = str(Path.home())
    directory = status.directory
    shown = "~" + directory[len(home) :] if directory == home or directory.startswith(home + "/") else directory
    if short and shown.count("/") > 1:
        shown = f"…/{shown.rpartition('/')[2]}"
    return clean(f"{shown} ({status.branch})" if status.branch else shown)


def truncate(text: str, width: int) -> str:
    """Return the start of the text in at most `width` columns."""
    while text and width_of(text) > width:
        text = text[:-1]
    return text


def branch_of(directory: str) -> str:
    """Return the Git branch of a folder; empty outside of a repository. Reads two small files and starts no program."""
    for folder in (Path(directory), *Path(directory).parents):
        git = folder / ".git"
        try:
            if git.is_file():  # a worktree: the file contains the path of the folder
                git = git.parent / git.read_text(encoding="utf-8", errors="replace").removeprefix("gitdir: ").strip()
            with (git / "HEAD").open(encoding="utf-8", errors="replace") as file:
                head = file.read(500).strip()
        except OSError:
            continue
        return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else head[:8]
    return ""
