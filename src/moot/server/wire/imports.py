"""Imports: what to bring in, what is found, how far it is."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from moot.runtime.importing import Brought
from moot.server.following import Following
from moot.server.importing import ImportJob
from moot.server.wire.base import In, Out, shown_path

_SHOWN = 500
"""Conversations in one answer."""


class ImportIn(In):
    """What is to be brought in of the server's machine."""

    all: bool = False
    """What the agents on it keep."""
    path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """A file or a folder, absolute."""
    format: Annotated[str, Field(max_length=100)] = ""
    """What it is, or which format alone is meant; empty = that is found out."""
    since: Annotated[int, Field(ge=0)] = 0
    """ms; conversations that have not gone on since are passed over."""
    dry_run: bool = False
    """Say what would come, and store nothing."""


class MachineOut(Out):
    """What one program keeps on the server's machine."""

    format: str
    path: str
    """A folder in which all of it lies."""
    sources: int
    bytes: int
    conversations: int
    """That are here already."""


class FidelityOut(Out):
    """What became of the things in conversations."""

    kept: dict[str, int]
    approximated: dict[str, int]
    lost: dict[str, int]


class BroughtOut(Out):
    """What became of one conversation."""

    outcome: Literal["added", "grown", "known", "would be added", "would grow", "empty"]
    format: str
    path: str
    title: str
    conversation: str | None
    """Its id here."""
    messages: int
    """In the source."""
    added: int
    grown: int
    fidelity: FidelityOut
    problems: int
    """Records that could not be read."""
    notes: list[str]


class FailedOut(Out):
    """A source that could not be read."""

    path: str
    problem: str


class WatchOut(Out):
    """What of the agents on the server's machine comes in while they write it."""

    wanted: bool
    """What `imports.watch` says."""
    since: int | None
    """null = nothing is followed."""
    sources: int
    messages: int
    """That came, or went on, since."""
    last_at: int | None
    problem: str
    """Why nothing is followed though it is wanted."""


class UnclaimedOut(Out):
    """Files below a folder that no format knows."""

    count: int
    some: list[str]


class ImportOut(Out):
    """An import, as it stands."""

    id: str
    state: Literal["queued", "running", "finished", "failed"]
    error: str
    """Why it failed; empty when it did not."""
    asked_at: int
    ended_at: int | None
    sources: int
    sources_done: int
    unchanged: int
    """Sources that stand as they were when they were last read."""
    bytes: int
    bytes_done: int
    messages: int
    added: int
    """New messages."""
    grown: int
    problems: int
    conversations: dict[str, int]
    """Outcome → how many."""
    brought: list[BroughtOut]
    """At most 500, the newest."""
    failed: list[FailedOut]
    unclaimed: UnclaimedOut


def watch_out(following: Following) -> WatchOut:
    return WatchOut(
        wanted=following.engine.runtime.settings.imports.watch,
        since=following.since or None,
        sources=following.sources,
        messages=following.messages,
        last_at=following.last_at or None,
        problem=following.problem,
    )


def import_out(job: ImportJob, *, conversations: bool = True) -> ImportOut:
    """The import; without single conversations where many imports are listed."""
    report = job.report
    return ImportOut(
        id=job.id,
        state=job.state,
        error=job.error,
        asked_at=job.asked_at,
        ended_at=job.ended_at or None,
        sources=report.sources,
        sources_done=report.done,
        unchanged=report.unchanged,
        bytes=report.bytes,
        bytes_done=report.bytes_done,
        messages=report.messages,
        added=report.taken.added + report.taken.rewritten,
        grown=report.taken.grown,
        problems=report.problems,
        conversations=dict(report.conversations),
        brought=[_brought(one) for one in report.brought[-_SHOWN:]] if conversations else [],
        failed=[FailedOut(path=shown_path(one.path), problem=one.problem) for one in report.failed[-_SHOWN:]] if conversations else [],
        unclaimed=UnclaimedOut(count=report.unclaimed, some=[shown_path(path) for path in report.strangers]),
    )


def _brought(one: Brought) -> BroughtOut:
    fidelity = one.fidelity
    return BroughtOut(
        outcome=one.outcome,
        format=one.format,
        path=shown_path(one.path),
        title=one.title,
        conversation=one.conversation.id if one.conversation is not None and not one.outcome.startswith("would") else None,
        messages=one.messages,
        added=one.taken.added,
        grown=one.taken.grown,
        fidelity=FidelityOut(kept=dict(fidelity.kept), approximated=dict(fidelity.approximated), lost=dict(fidelity.lost)),
        problems=one.problems,
        notes=list(one.notes),
    )
