"""Undo and redo of a prompt: its messages, the files that it changed, or both. Nothing is deleted, so everything can be redone.

Files that someone else has changed since the prompt are kept and reported. Each file is replaced atomically, and only if it is in the
expected state, so an interrupted undo can simply be repeated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from anyio import to_thread

from moot.agents.checkpoints import close_folders
from moot.convert.files.attachments import typed_text
from moot.errors import Busy, UsageError
from moot.guard.roots import allowed_folders
from moot.runtime.runtime import Runtime
from moot.runtime.setup import confined_conversation, has_folder
from moot.store.content import checkpoints as stored
from moot.store.database.connection import Connection, checkpoints_path
from moot.tools.snapshots import FileChanged, read_file, remove_empty_folders, restore
from moot.types.canonical import Json, JsonObject
from moot.types.checkpoint import NOTHING, FileChange, FilePlace, FileState, SeenFile, Undone
from moot.types.conversation import Conversation
from moot.types.crash import point
from moot.types.run import OPEN
from moot.types.tree import Node

UndoPart: TypeAlias = Literal["talk", "files", "both"]
PARTS: tuple[UndoPart, ...] = ("both", "talk", "files")
TITLE = 60
_AT_ONCE = 8
"""Maximum number of files to write at the same time."""
LISTED = 200
"""Maximum number of files to list in a description."""
_NOT_STORED = "its content is no longer stored"

T = TypeVar("T")


class FileEffect(NamedTuple):
    path: str
    change: Literal["restore", "create", "delete"]


class KeptFile(NamedTuple):
    """A file that an undo or redo does not change."""

    path: str
    reason: str
    forced: bool
    """True if the file would be replaced with `overwrite`."""


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """The effect of an undo or redo, either planned or already applied."""

    action: Literal["undo", "redo"]
    part: UndoPart
    prompt: str
    """Id of the user's message."""
    text: str
    """The prompt."""
    messages: int = 0
    """Number of messages to hide or to show again."""
    files: tuple[FileEffect, ...] = ()
    kept: tuple[KeptFile, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    """Paths that are not covered, each with the reason."""
    done: bool = False

    def to_json(self) -> JsonObject:
        """Return the plan as JSON, with the first few files of each list and the total numbers."""
        return {
            "action": self.action,
            "part": self.part,
            "done": self.done,
            "prompt": {"id": self.prompt, "text": self.text},
            "messages": self.messages,
            "files": list[Json]({"path": path, "change": change} for path, change in self.files[:LISTED]),
            "file_count": len(self.files),
            "kept": list[Json]({"path": path, "reason": reason, "can_overwrite": forced} for path, reason, forced in self.kept[:LISTED]),
            "kept_count": len(self.kept),
            "left_out": list[Json]({"path": path, "reason": reason} for path, reason in self.left_out[:LISTED]),
        }

    @property
    def title(self) -> str:
        """The prompt, shortened to a single line."""
        line = " ".join(self.text.split())
        return line if len(line) <= TITLE else f"{line[: TITLE - 1]}…"

    def counts(self) -> str:
        """Return the counts as one phrase, such as `hide 2 messages, restore 3 files`."""
        verb = "hide" if self.action == "undo" else "show"
        counted = [(verb, self.messages, "message")] if self.messages else []
        for change in ("restore", "create", "delete"):
            counted.append((change, sum(effect.change == change for effect in self.files), "file"))
        return (
            ", ".join(f"{verb} {number:,} {noun}{'' if number == 1 else 's'}" for verb, number, noun in counted if number)
            or "change nothing"
        )

    def notes(self) -> list[str]:
        """Return lines about files that are kept and about paths that are not covered."""
        kept = [f"{path} is kept: {reason}" for path, reason, _ in self.kept[:LISTED]]
        kept += [f"{len(self.kept) - LISTED:,} more files are kept"] if len(self.kept) > LISTED else []
        return [*kept, *(f"{path} is not covered: {reason}" for path, reason in self.left_out[:LISTED])]


class _Step(NamedTuple):
    place: FilePlace
    target: FileState
    present: SeenFile


@dataclass(frozen=True, slots=True)
class _Target:
    """The prompt that is undone or redone."""

    plan: UndoPlan
    runs: tuple[str, ...]
    head: str | None
    """The last message of the current branch afterwards, if messages are affected."""
    newest: str | None
    undos: tuple[Undone, ...] = ()
    """For a redo: the undos that are redone, partly or completely."""


class Undo:
    """Undo and redo for one conversation. Raise UsageError if there is nothing to undo or redo, Busy if a run has not ended yet."""

    def __init__(self, runtime: Runtime, conversation: Conversation) -> None:
        self._runtime = runtime
        self._conversation = conversation
        self._store = runtime.store
        self._path = checkpoints_path(runtime.settings.database)

    async def undo(self, part: UndoPart = "both", *, back_to: str = "", overwrite: bool = False, dry_run: bool = False) -> UndoPlan:
        """Undo the last prompt; with `dry_run`, only return what would happen.

        `back_to` is the id of an earlier prompt of the current branch: it and everything that followed it are undone at once. With
        `overwrite`, files that were changed since the prompt are replaced too. Redo restores them.
        """
        nodes = await self._nodes()
        if back_to:
            target = await self._earlier_prompt(nodes, back_to, part)
        else:
            undone = [one for one in await self._work(partial(stored.undos, conversation=self._conversation.id)) if _is_current(one, nodes)]
            target = await self._last_prompt(nodes, undone, part)
        return await self._carry_out(target, overwrite=overwrite, dry_run=dry_run)

    async def redo(self, part: UndoPart | None = None, *, overwrite: bool = False, dry_run: bool = False) -> UndoPlan:
        """Redo the last undo, or a part of it, if no prompt has been sent since then."""
        nodes = await self._nodes()
        known = await self._work(partial(stored.undos, conversation=self._conversation.id))
        undone = [one for one in known if _is_current(one, nodes)]
        found = next((one for one in undone if part is None or (one.talk and part != "files") or (one.files and part != "talk")), None)
        if found is None:
            raise UsageError("There is nothing to redo.", fix="A new prompt makes earlier undos permanent." if known and not undone else "")
        talk, files = found.talk and part != "files", found.files and part != "talk"
        if talk and self._conversation.head != found.head_after:
            raise UsageError(
                "The conversation has been switched to another branch since the undo, so the messages can't be shown again.",
                fix="Find the messages with `moot chat tree`.",
            )
        messages = _distance(nodes, found.head_before, found.head_after) if talk else 0
        plan = UndoPlan("redo", _part(talk, files), found.prompt, await self._text(found.prompt), messages)
        target = _Target(plan, found.runs, found.head_before, _newest(nodes), (found,))
        return await self._carry_out(target, overwrite=overwrite, dry_run=dry_run)

    async def _nodes(self) -> list[Node]:
        id = self._conversation.id
        if await self._store.records.runs(conversation=id, statuses=OPEN, limit=1):
            raise Busy("The conversation has an unfinished run.", fix=f"Wait until it ends, or stop it: moot chat stop {id[:13]}")
        self._conversation = await confined_conversation(self._store, id)
        return await self._store.tree.nodes(id)

    async def _last_prompt(self, nodes: Sequence[Node], undone: Sequence[Undone], part: UndoPart) -> _Target:
        shown = [node for node in reversed(nodes) if node.shown and node.role == "user" and not node.deleted]
        if part != "files":
            if not shown:
                raise UsageError("There is nothing to undo: the current branch has no prompt.")
            prompt = shown[0].id
        else:
            hidden = [one.prompt for one in reversed(undone) if one.talk]
            candidates = [*hidden, *(node.id for node in shown)]
            known = {run: id for id in candidates for run in _runs_of(nodes, id)}
            found = await self._work(partial(stored.load, runs=list(known)))
            changed = {known[one.run] for one in found if not one.is_undone and (one.changes or one.is_open)}
            prompt = next((id for id in candidates if id in changed), "")
            if not prompt:
                raise UsageError("There is nothing to undo: no prompt of this conversation has changed files.")
        node = next(node for node in nodes if node.id == prompt)
        messages = 0 if part == "files" else _distance(nodes, self._conversation.head, node.parent)
        plan = UndoPlan("undo", part, prompt, await self._text(prompt), messages)
        return _Target(plan, _runs_of(nodes, prompt), node.parent, _newest(nodes))

    async def _earlier_prompt(self, nodes: Sequence[Node], prompt: str, part: UndoPart) -> _Target:
        node = next((node for node in nodes if node.id == prompt and node.shown and node.role == "user" and not node.deleted), None)
        if node is None:
            raise UsageError("That prompt is not on the current branch.", fix="Use /rewind to list the prompts.")
        below = {prompt}
        for one in nodes:  # parents come before their children
            if one.parent in below:
                below.add(one.id)
        runs = [one.run for one in nodes if one.id in below and one.run is not None]
        # what was undone before is left out, so that a redo doesn't bring it back
        found = await self._work(partial(stored.load, runs=runs))
        changed = tuple(one.run for one in found if not one.is_undone and (one.changes or one.is_open))
        if part == "files" and not changed:
            raise UsageError("There is nothing to undo: no files have changed since that prompt.")
        messages = 0 if part == "files" else _distance(nodes, self._conversation.head, node.parent)
        return _Target(UndoPlan("undo", part, prompt, await self._text(prompt), messages), changed, node.parent, _newest(nodes))

    async def _carry_out(self, target: _Target, *, overwrite: bool, dry_run: bool) -> UndoPlan:
        plan = target.plan
        steps: list[_Step] = []
        if plan.part != "talk" and target.runs:
            roots = self._roots()
            plan, steps = await self._work(partial(_planned, target, roots, self._runtime.now(), overwrite, dry_run, self._shown))
        if dry_run:
            return plan
        talk = plan.part != "files"
        files = plan.part != "talk"
        undone = Undone(
            self._conversation.id,
            plan.prompt,
            target.runs,
            self._conversation.head,
            target.head,
            target.newest,
            talk=talk and plan.action == "undo",
            files=files and plan.action == "undo" and bool(steps),
        )
        if plan.action == "redo":
            (before,) = target.undos
            undone = replace(before, talk=before.talk and not talk, files=before.files and not files)
        failed = await self._work(partial(_applied, replace(target, plan=plan), steps, undone))
        point("undo.files")
        if talk:
            await self._rewind(target.head)
        done = tuple(effect for effect, step in zip(plan.files, steps, strict=True) if step.place not in failed)
        kept = (*plan.kept, *(KeptFile(self._shown(place), reason, False) for place, reason in failed.items()))
        return replace(plan, files=done, kept=kept, done=True)

    async def _rewind(self, head: str | None) -> None:
        await self._store.tree.rewind(self._conversation.id, head, expect=self._conversation.head)
        point("undo.talk")
        self._runtime.hub.touch(self._conversation.id)

    async def _text(self, message: str) -> str:
        return typed_text((await self._store.conversations.message(message)).parts)

    async def _work(self, work: Callable[[Connection], T]) -> T:
        def opened() -> T:
            with stored.opened(self._path) as connection:
                return work(connection)

        return await to_thread.run_sync(opened)

    def _roots(self) -> list[str]:
        """Return the real paths of the folders that the conversation's owner may use."""
        if not has_folder(self._conversation):
            return []
        directory = Path(self._conversation.directory or ".").absolute()
        return [os.path.realpath(folder) for folder in allowed_folders(self._conversation, directory)]

    def _shown(self, place: FilePlace) -> str:
        """Return the path to show for a file, which is relative if the file is inside the conversation's folder."""
        path, directory = os.fsdecode(place.absolute), os.path.realpath(self._conversation.directory or ".")
        return path.removeprefix(f"{directory}/")


def _is_current(undone: Undone, nodes: Sequence[Node]) -> bool:
    return undone.newest == _newest(nodes)


def _newest(nodes: Sequence[Node]) -> str | None:
    return nodes[-1].id if nodes else None


def _runs_of(nodes: Sequence[Node], prompt: str) -> tuple[str, ...]:
    """Return the runs that answered a prompt, oldest first."""
    return tuple(node.run for node in nodes if node.parent == prompt and node.run is not None)


def _distance(nodes: Sequence[Node], newer: str | None, older: str | None) -> int:
    """Return the number of messages from one message back to an earlier one, without counting the earlier one."""
    parents, count = {node.id: node.parent for node in nodes}, 0
    while newer is not None and newer != older:
        newer, count = parents.get(newer), count + 1
    return count


def _part(talk: bool, files: bool) -> UndoPart:
    return "both" if talk and files else "talk" if talk else "files"


class _Planner:
    """Compares files with the recorded changes, and collects the steps to take."""

    def __init__(self, connection: Connection, roots: Iterable[str], shown: Callable[[FilePlace], str], *, overwrite: bool) -> None:
        self._connection = connection
        self._roots = [os.fsencode(root) for root in roots]
        self._shown = shown
        self._overwrite = overwrite
        self.steps: list[_Step] = []
        self.kept: list[KeptFile] = []
        self.overwritten: list[FilePlace] = []

    def add(self, place: FilePlace, wanted: FileState, expected: FileState | None, *, mixed: bool) -> None:
        if not any(place.root == root or place.root.startswith(root.rstrip(b"/") + b"/") for root in self._roots):
            self._keep(place, "it is outside the folders that the conversation may use")
            return
        try:
            present = read_file(place)
        except OSError as error:
            self._keep(place, f"it can't be read: {error.strerror}")
            return
        if present.state == wanted:
            return
        reason, can_overwrite = _obstacle(self._connection, wanted, expected, present)
        if mixed and not reason:
            reason = "it was also changed by someone else while the prompt was at work"
        if reason and not (self._overwrite and can_overwrite):
            self._keep(place, reason, can_overwrite)
            return
        self.steps.append(_Step(place, wanted, present))
        if reason:
            self.overwritten.append(place)

    def _keep(self, place: FilePlace, reason: str, can_overwrite: bool = False) -> None:
        self.kept.append(KeptFile(self._shown(place), reason, can_overwrite))


def _planned(
    target: _Target,
    roots: Iterable[str],
    now: int,
    overwrite: bool,
    dry_run: bool,
    shown: Callable[[FilePlace], str],
    connection: Connection,
) -> tuple[UndoPlan, list[_Step]]:
    """Return the plan and its steps, deletions first. Content that will be overwritten is stored, so that a redo can restore it."""
    undo = target.plan.action == "undo"
    for one in stored.load(connection, target.runs):
        for run in stored.open_runs(connection, one.no):  # moot was stopped before their end
            close_folders(connection, run, now, interrupted=True)
    checkpoints = [one for one in stored.load(connection, target.runs) if one.is_undone != undo]
    changes: dict[FilePlace, FileChange] = {}
    latest: dict[FilePlace, int] = {}
    for one in checkpoints:
        for change in one.changes:
            earlier, latest[change.place] = changes.get(change.place), one.no
            changes[change.place] = change if earlier is None else earlier.followed_by(change)
    planner = _Planner(connection, roots, shown, overwrite=overwrite)
    for place, before, after, mixed in sorted(changes.values()):
        wanted, expected = (before, after) if undo else (after, before)
        if wanted is not None and wanted != expected:
            planner.add(place, wanted, expected, mixed=mixed and undo)
    for place in planner.overwritten if not dry_run else ():
        stored.settle(connection, latest[place], place, read_file(place, partial(stored.put, connection)).state, now)
    steps = sorted(planner.steps, key=lambda step: step.target != NOTHING)
    left_out = tuple(dict.fromkeys(item for one in checkpoints for item in one.left_out)) if undo else ()
    effects = tuple(FileEffect(shown(step.place), _effect(step)) for step in steps)
    return replace(target.plan, files=effects, kept=tuple(planner.kept), left_out=left_out), steps


def _obstacle(connection: Connection, wanted: FileState, expected: FileState | None, present: SeenFile) -> tuple[str, bool]:
    """Return the reason to keep a file, and whether `overwrite` may replace the file anyway.
    The reason is empty if the file can be replaced.
    """
    if wanted.kind in ("folder", "other"):
        return "it was a folder or special file", False
    if wanted != NOTHING and stored.get(connection, wanted.digest) is None:
        return _NOT_STORED, False
    # the run deleted the path, and now it is a folder: it can be replaced if it becomes empty when the undo deletes its files
    if present.state == expected or (expected == NOTHING and present.state.kind == "folder"):
        return "", True
    if present.state.kind in ("folder", "other"):
        return "it is now a folder, a large file or a special file", False
    return ("the run was interrupted, so it is unknown who changed it" if expected is None else "it was changed since"), True


def _effect(step: _Step) -> Literal["restore", "create", "delete"]:
    return "delete" if step.target == NOTHING else "create" if step.present.state == NOTHING else "restore"


def _applied(target: _Target, steps: Sequence[_Step], undone: Undone, connection: Connection) -> dict[FilePlace, str]:
    """Execute the steps and record the undo. Return the files that could not be replaced, each with the reason."""
    failed: dict[FilePlace, str] = {}
    deletions = [step for step in steps if step.target == NOTHING]
    for step in deletions:
        if reason := _replaced(step, b""):
            failed[step.place] = reason
    remove_empty_folders(step.place for step in deletions if step.place not in failed)  # a file may take the place of a folder
    writes = steps[len(deletions) :]
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # the disk takes most of the time, and can sync several files at once
        for first in range(0, len(writes), _AT_ONCE):
            some = writes[first : first + _AT_ONCE]
            contents = [stored.get(connection, step.target.digest) for step in some]
            reasons = zip(some, pool.map(_replaced, some, contents), strict=True)
            failed |= {step.place: reason for step, reason in reasons if reason}
    undo = target.plan.action == "undo"
    if target.plan.part != "talk" and (
        steps or not target.plan.kept or not undo
    ):  # if all files were kept, the undo can be repeated with `overwrite`
        stored.mark(connection, target.runs, undone=undo)
    if not undo:
        stored.redone(connection, undone)
    elif undone.talk or undone.files:
        stored.push(connection, undone)
    return failed


def _replaced(step: _Step, data: bytes | None) -> str:
    """Execute a step. Return the reason if that was not possible, otherwise an empty string."""
    if data is None:
        return _NOT_STORED
    try:
        restore(step.place, step.target, data, step.present)
    except FileChanged:
        return "it was changed in the meantime"
    except OSError as error:
        return f"it can't be replaced: {error.strerror}"
    return ""
