"""Routes to undo and redo the prompts of a conversation, and to list the files that they changed."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query

from moot.engine.changes import FileDiff, Obstacle, changes_of
from moot.engine.undo import Undo, UndoPart, UndoPlan
from moot.errors import Refused
from moot.server.auth import Chatter, Reader, Router
from moot.server.credentials import Caller
from moot.server.idempotency import CurrentAttempt
from moot.server.models import In, Out
from moot.server.resources import conversation_of
from moot.server.state import CurrentServer
from moot.types.conversation import Conversation


class UndoIn(In):
    """An undo of the last prompt."""

    part: UndoPart = "both"
    """`talk` = only the messages. `files` = only the files that the prompt changed."""
    overwrite: bool = False
    """Also replace files that have been changed since then. By default, they are kept."""
    dry_run: bool = False
    """Only return what would happen."""


class RedoIn(In):
    """A redo of the last undo."""

    part: UndoPart | None = None
    """null = the parts that were undone last."""
    overwrite: bool = False
    """Also replace files that have been changed since then. By default, they are kept."""
    dry_run: bool = False
    """Only return what would happen."""


class UndonePromptOut(Out):
    """The prompt that is undone or redone."""

    id: str
    text: str


class FileEffectOut(Out):
    """A file that is restored, created or deleted."""

    path: str
    """Path of the file, relative to the conversation's folder if the file is in it."""
    change: Literal["restore", "create", "delete"]


class KeptFileOut(Out):
    """A file that is kept as it is."""

    path: str
    reason: str
    can_overwrite: bool
    """True if `overwrite` replaces the file."""


class LeftOutOut(Out):
    """A file or folder whose changes are not recorded."""

    path: str
    reason: str


class UndoOut(Out):
    """The effect of an undo or redo. Lists contain at most the first 200 files."""

    action: Literal["undo", "redo"]
    part: UndoPart
    done: bool
    prompt: UndonePromptOut
    messages: int
    """Number of messages that are hidden or shown again."""
    files: list[FileEffectOut]
    file_count: int
    kept: list[KeptFileOut]
    kept_count: int
    left_out: list[LeftOutOut]


class FileDiffOut(Out, of=FileDiff, fields="path change diff added removed obstacle mixed"):
    """A file that was changed, compared before and after the runs."""

    path: str
    """Path of the file, relative to the conversation's folder if the file is in it."""
    change: Literal["created", "modified", "deleted"]
    diff: str | None
    """Hunks of a unified diff. Empty if only the permissions or line endings have changed, null if there is no diff."""
    obstacle: Obstacle | None
    """Why there is no diff."""
    mixed: bool
    """True if someone else changed the file in between."""


class ChangesOut(Out):
    """The files that runs and their sub-agents changed, sorted by path. `files` contains at most the first 200."""

    files: list[FileDiffOut]
    file_count: int
    left_out: list[LeftOutOut]
    undone: bool
    """True if some of the runs changed files and were undone. Their changes are not included."""
    partial: bool
    """True if changes by commands are still to be determined, because a run is active or was interrupted."""


router = Router(prefix="/api/conversations/{conversation_id}", tags=["conversations"])


@router.post("/undo")
async def undo_prompt(server: CurrentServer, caller: Chatter, attempt: CurrentAttempt, conversation_id: str, body: UndoIn) -> UndoOut:
    """Undo the last prompt: its messages and the files that it changed. Repeat the call to undo earlier prompts."""
    undo = Undo(server.engine.runtime, await _conversation(caller, attempt, conversation_id, body))
    return _out(await undo.undo(body.part, overwrite=body.overwrite, dry_run=body.dry_run))


@router.post("/redo")
async def redo_prompt(server: CurrentServer, caller: Chatter, attempt: CurrentAttempt, conversation_id: str, body: RedoIn) -> UndoOut:
    """Redo the last undo. This is possible until the next prompt is sent."""
    undo = Undo(server.engine.runtime, await _conversation(caller, attempt, conversation_id, body))
    return _out(await undo.redo(body.part, overwrite=body.overwrite, dry_run=body.dry_run))


@router.get("/changes")
async def list_changes(
    server: CurrentServer,
    caller: Reader,
    conversation_id: str,
    message: Annotated[
        str | None, Query(max_length=200, description="Only files changed by the run that wrote this message. Default: the current branch.")
    ] = None,
) -> ChangesOut:
    """List the files that a run changed, or that all runs of the current branch changed, with diffs."""
    found = await conversation_of(caller, conversation_id)
    if not caller.may("tools"):
        raise Refused("Changes to files can only be read with the 'tools' scope.")
    changes = await changes_of(server.engine.runtime, found, message)
    return ChangesOut(
        files=[FileDiffOut.of(file) for file in changes.files],
        file_count=changes.count,
        left_out=[LeftOutOut(path=path, reason=reason) for path, reason in changes.left_out],
        undone=changes.undone,
        partial=changes.partial,
    )


async def _conversation(caller: Caller, attempt: CurrentAttempt, id: str, body: UndoIn | RedoIn) -> Conversation:
    if body.part != "talk" and not caller.may("tools"):
        raise Refused("Files can only be changed with the 'tools' scope.", fix='Send {"part": "talk"} to undo or redo only the messages.')
    if not body.dry_run:
        attempt.check_repeatable()
    return await conversation_of(caller, id)


def _out(plan: UndoPlan) -> UndoOut:
    return UndoOut.model_validate(plan.to_json())
