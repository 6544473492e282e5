"""The slash command `/git`: show the state of the project's Git repository, stage changes and commit them."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from moot.commands.command import BaseCommand, Choice, CommandContext, Notice, Reply
from moot.errors import UsageError
from moot.features.projects.git import ChangedFile, Git, GitCommit, GitStatus
from moot.guard.hidden import spelled_out
from moot.plugins.registry import hint
from moot.types.command import Requirement
from moot.types.token import LOCAL_USER

_COMMITS, _LOGGED = 5, 20
"""Number of commits that `/git` and `/git log` show."""
_FILES = 20
"""Maximum number of changed files of each kind to show."""
_DIFF_LINES = 1000


class GitCommand(BaseCommand):
    help = "Show the changes and recent commits of the repository, stage changes, or commit them"
    argument = "[diff [PATH]|log|stage PATH …|unstage PATH …|commit MESSAGE]"
    category = "project"
    requires: tuple[Requirement, ...] = ("repository",)
    examples = ("/git", "/git diff src/app.py", "/git stage .", "/git commit Fix the total of empty orders")

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return [
            Choice("diff", about="show the changes"),
            Choice("log", about="show recent commits"),
            Choice("stage", about="stage changes to files; . = all", needs_more=True),
            Choice("unstage", about="unstage changes to files; . = all", needs_more=True),
            Choice("commit", about="commit what is staged, with this message", needs_more=True),
        ]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        if context.owner != LOCAL_USER:  # Git runs with the settings and permissions of the server's user
            raise UsageError("Only the person who runs moot can use /git.", fix="Ask the agent to use Git.")
        if not (folder := await context.folder()):
            raise UsageError("/git needs a conversation with a folder.")
        repository = Git(Path(folder))
        if (status := await repository.status()) is None:
            raise UsageError(f"/git needs a Git repository, but {folder} is not in one.")
        verb, _, rest = argument.partition(" ")
        if context.words and context.words[0] == verb and verb != "commit":
            rest = shlex.join(context.words[1:])
        if not verb:
            return [Notice(spelled_out(await _overview(repository, status)))]
        if verb not in _ACTIONS:
            raise UsageError(f"Unknown action {verb!r}.{hint(verb, list(_ACTIONS))}", fix=f"Usage: /git {self.argument}")
        return [Notice(spelled_out(await _ACTIONS[verb](repository, status, rest.strip())))]


async def _overview(repository: Git, status: GitStatus) -> str:
    lines = [_head(status)]
    for title, files, count in (
        ("Staged", status.staged, status.staged_count),
        ("Not staged", status.unstaged, status.unstaged_count),
        ("Untracked", status.untracked, status.untracked_count),
    ):
        lines += [f"{title}:", *map(_file_line, files[:_FILES])] if files else []
        lines += [f"  and {count - _FILES:,} more"] if count > _FILES else []
    if status.staged_count or status.unstaged_count:
        added, removed = await repository.changed_lines(status.commit)
        lines.append(f"Lines since the last commit: {added:,} added, {removed:,} removed.")
    elif not status.untracked_count:
        lines.append("There are no changes.")
    if status.commit is not None:
        lines += ["Recent commits:", *(f"  {_commit_line(commit)}" for commit in await repository.log(_COMMITS))]
    return "\n".join(lines)


def _head(status: GitStatus) -> str:
    where = f"On branch {status.branch}" if status.branch is not None else f"No branch is checked out, at {(status.commit or '')[:10]}"
    if status.upstream is None:
        return f"{where}."
    apart = [f"{count} {word}" for count, word in ((status.ahead, "ahead"), (status.behind, "behind")) if count]
    return f"{where}, {' and '.join(apart)} of {status.upstream}." if apart else f"{where}, up to date with {status.upstream}."


def _file_line(file: ChangedFile) -> str:
    if file.change == "untracked":
        return f"  {file.path}"
    return f"  {file.change:<10}{f'{file.before} → ' if file.before else ''}{file.path}"


def _commit_line(commit: GitCommit) -> str:
    return f"{commit.hash[:10]}  {datetime.fromtimestamp(commit.time, UTC).astimezone():%Y-%m-%d}  {commit.subject}"


async def _diff(repository: Git, status: GitStatus, path: str) -> str:
    words = _paths(path)
    if len(words) > 1:
        raise UsageError("Only one path can be shown at a time.", fix="Use '/git diff PATH'.")
    parts: list[str] = []
    for title, staged in (("Staged", True), ("Not staged", False)):
        text, cut = await repository.diff(words[0] if words else ".", staged=staged)
        parts += [f"{title}:\n{_shortened(text, cut)}"] if text else []
    if parts or not words:
        return "\n".join(parts) or "There are no changes in tracked files."
    if not await repository.contains(words[0]):
        raise UsageError(f"{words[0]!r} is neither a file nor a folder in the project.", fix="Use /git to list the changed files.")
    if any(_covers(file.path, words[0]) for file in status.untracked):
        return f"{words[0]} is not tracked, so there is no diff. To track it, use /git stage {shlex.quote(words[0])}."
    return f"There are no changes in tracked files of {words[0]}."


def _covers(untracked: str, path: str) -> bool:
    """Return True if a path is an untracked file or is in an untracked folder. Names of untracked folders end with `/`."""
    return path.rstrip("/") == untracked.rstrip("/") or (untracked.endswith("/") and path.startswith(untracked))


def _shortened(text: str, cut: bool) -> str:
    lines = text.rstrip("\n").split("\n")
    if not cut and len(lines) <= _DIFF_LINES:
        return "\n".join(lines)
    return "\n".join([*lines[:_DIFF_LINES], "The rest of the diff is left out. To see all of it, run 'git diff' in a terminal."])


async def _log(repository: Git, status: GitStatus, rest: str) -> str:
    if rest:
        raise UsageError(f"/git log takes no argument, got {rest!r}.")
    commits = await repository.log(_LOGGED) if status.commit is not None else []
    return "\n".join(f"{_commit_line(commit)}  ({commit.author})" for commit in commits) or "There are no commits yet."


async def _stage(repository: Git, status: GitStatus, rest: str) -> str:
    await repository.stage(_required(_paths(rest), "stage"))
    return await _staged(repository)


async def _unstage(repository: Git, status: GitStatus, rest: str) -> str:
    await repository.unstage(_required(_paths(rest), "unstage"))
    return await _staged(repository)


async def _staged(repository: Git) -> str:
    status = await repository.status()
    if status is None or not status.staged:
        return "Nothing is staged."
    more = [f"  and {status.staged_count - _FILES:,} more"] if status.staged_count > _FILES else []
    return "\n".join(["Staged:", *map(_file_line, status.staged[:_FILES]), *more])


async def _commit(repository: Git, status: GitStatus, message: str) -> str:
    if not message:
        raise UsageError(
            "The commit message is missing.", fix="Use '/git commit MESSAGE', or '/commit' to let the agent write the message."
        )
    if not status.staged:
        raise UsageError("Nothing is staged.", fix="Use '/git stage PATH', or '/git stage .' for all changes.")
    commit = await repository.commit(message)
    return f"Committed {commit[:10]}: {message.splitlines()[0]}"


def _paths(text: str) -> list[str]:
    """Return the paths in a text. A path with spaces must be in quotes."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"Cannot read the paths {text!r}: {error}.", fix="Close all quotes.") from error


def _required(paths: list[str], verb: str) -> list[str]:
    if not paths:
        raise UsageError(f"/git {verb} needs at least one path.", fix=f"Use '/git {verb} .' for all changes.")
    return paths


_ACTIONS: Mapping[str, Callable[[Git, GitStatus, str], Awaitable[str]]] = {
    "diff": _diff,
    "log": _log,
    "stage": _stage,
    "unstage": _unstage,
    "commit": _commit,
}
