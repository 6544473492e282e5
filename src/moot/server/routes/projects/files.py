"""Routes for the files and the Git repository in a project's folder."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from anyio import to_thread
from fastapi import Header, Query, Response
from pydantic import Field

from moot.errors import Refused, UsageError
from moot.features.projects.files import FILE_BYTES, FileContent, Files, FolderEntry
from moot.features.projects.git import ChangedFile, Git, GitStatus
from moot.server.auth import Chatter, Router, ToolUser
from moot.server.credentials import Caller
from moot.server.models import In, Out, ShownPath
from moot.server.problems import Problem
from moot.server.resources import IfMatch, check_match
from moot.server.state import CurrentServer, Server

ENTRIES = 500
PATHS = 1000

router = Router(prefix="/api/projects/{project_id}", tags=["projects"])

PathIn: TypeAlias = Annotated[str, Query(max_length=4096, description="Path relative to the project's folder, or an absolute path in it.")]
IfNoneMatch: TypeAlias = Annotated[Literal["*"] | None, Header(alias="if-none-match")]
EntryLimit: TypeAlias = Annotated[int, Query(ge=1, le=2000, description="Maximum number of entries.")]


class FolderEntryOut(Out, of=FolderEntry, fields="name path type ignored"):
    """A file or folder."""

    name: ShownPath
    path: ShownPath
    """Path relative to the project's folder."""
    type: Literal["file", "directory", "link", "other"]
    """A link has the type of its target, or `link` if the target is missing or outside the project's folder."""


class FolderOut(Out):
    """The entries of a folder, folders first."""

    path: ShownPath
    """Path relative to the project's folder; empty for the project's folder itself."""
    entries: list[FolderEntryOut]
    rest: int
    """Number of entries that were left out."""


class ProjectFileOut(Out, of=FileContent, fields="path size kind sha256 text encoding protected"):
    """The content of a file."""

    path: ShownPath
    """Path relative to the project's folder, with links resolved."""


class ProjectFileIn(In):
    """The new content of a text file."""

    text: Annotated[str, Field(max_length=FILE_BYTES)]


class ChangedFileOut(Out, of=ChangedFile, fields="path change before"):
    """A changed file."""

    path: ShownPath
    """Path relative to the project's folder. An untracked folder ends with `/`."""
    change: Literal["added", "modified", "deleted", "renamed", "copied", "type", "conflict", "untracked"]
    """`type` = a file was replaced with a link, or the other way around."""
    before: ShownPath | None
    """Earlier path of a renamed or copied file, relative to the project's folder."""


class GitStatusOut(
    Out, of=GitStatus, fields="branch commit upstream ahead behind staged unstaged untracked staged_count unstaged_count untracked_count"
):
    """The changes below the project's folder. The lists have at most 1,000 files each; the counts are complete."""

    upstream: str | None
    """The upstream branch, such as `origin/main`."""
    staged: list[ChangedFileOut]
    unstaged: list[ChangedFileOut]
    untracked: list[ChangedFileOut]


class RepositoryOut(Out):
    """State of the Git repository in the project's folder."""

    status: GitStatusOut | None
    """Null outside a repository."""


class DiffOut(Out):
    """The diff of a file."""

    diff: str
    """The diff in the unified format of `git diff`; empty if there is no difference."""
    cut: bool
    """True if the diff was truncated."""


class PathsIn(In):
    """Files to stage or unstage."""

    paths: Annotated[list[Annotated[str, Field(min_length=1, max_length=4096)]], Field(default_factory=list, max_length=PATHS)]
    """Paths relative to the project's folder; empty = all files in it."""


class CommitIn(In):
    """A commit of the staged changes."""

    message: Annotated[str, Field(min_length=1, max_length=20_000)]


class CommitOut(Out):
    """A new commit."""

    commit: str


async def _root(caller: Caller, project: str) -> Path:
    """Return the folder of the caller's project. Raise NotFound if the project does not exist, UsageError if it has no folder."""
    found = await caller.store.projects.get(project)
    if found.root_path is None:
        raise UsageError(f"The project {found.name!r} has no folder.", fix=f"moot projects edit {found.id} --root PATH")
    return Path(found.root_path)


async def _files(server: Server, caller: Caller, project: str) -> Files:
    return Files(await _root(caller, project), server.engine.settings.home)


async def _git(caller: Caller, project: str) -> Git:
    """Return access to Git in a project's folder. Raise Refused for other users, because Git runs with the rights of the server's user."""
    root = await _root(caller, project)
    if not caller.is_home_owner:
        raise Refused("Only the user who runs the server can use Git here.", fix="Use Git in a conversation of the project.")
    return Git(root)


@router.get("/tree")
async def list_folder(server: CurrentServer, caller: Chatter, project_id: str, path: PathIn = "", limit: EntryLimit = ENTRIES) -> FolderOut:
    """List the files and folders in a folder of the project, folders first. Files that Git ignores are marked."""
    files = await _files(server, caller, project_id)
    return FolderOut.of(await to_thread.run_sync(files.folder, path, limit, abandon_on_cancel=True))


@router.get("/file")
async def get_file(server: CurrentServer, caller: Chatter, response: Response, project_id: str, path: PathIn) -> ProjectFileOut:
    """Get a file of the project. The text of files over 1 MiB and of binary files is left out.

    The ETag is the SHA-256 of the content. Send it as `If-Match` with `PUT`.
    """
    files = await _files(server, caller, project_id)
    return _tagged(response, await to_thread.run_sync(files.read, path, abandon_on_cancel=True))


@router.put("/file")
async def put_file(
    server: CurrentServer,
    caller: ToolUser,
    response: Response,
    project_id: str,
    path: PathIn,
    body: ProjectFileIn,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> ProjectFileOut:
    """Save a text file of the project. Its encoding and mode are kept.

    Send the file's ETag as `If-Match`, so that changes by others since you read it are not overwritten; `*` overwrites them.
    `If-None-Match: *` creates a file. Protected files, such as those in `.git` and `.moot`, can't be written.
    """
    files = await _files(server, caller, project_id)
    if if_match is None and if_none_match is None:
        fix = "Send the ETag of the file as `If-Match`, or `If-None-Match: *` for a new file."
        raise Problem(428, "Saving a file requires the header If-Match or If-None-Match.", fix=fix)

    def check(current: str | None) -> None:
        if if_none_match is not None and current is not None:
            raise Problem(412, f"{path!r} already exists.", fix="Open the existing file, or use another name.")
        if if_match is not None and current is None:
            raise Problem(412, f"{path!r} was deleted after you read it.", fix="Save it again with `If-None-Match: *` to create it.")
        if current is not None:
            check_match(if_match, f'"{current}"')

    async with server.change_lock:
        return _tagged(response, await to_thread.run_sync(partial(files.write, path, body.text, check=check)))


def _tagged(response: Response, content: FileContent) -> ProjectFileOut:
    if content.sha256 is not None:
        response.headers["etag"] = f'"{content.sha256}"'
    return ProjectFileOut.of(content)


@router.get("/git/status")
async def get_git_status(caller: Chatter, project_id: str) -> RepositoryOut:
    """Get the branch and the changed files below the project's folder.

    Only the user who runs the server can use this and the other Git operations. Reading never runs programs that the repository configures.
    """
    status = await (await _git(caller, project_id)).status()
    return RepositoryOut(status=None if status is None else GitStatusOut.of(status))


@router.get("/git/diff")
async def get_git_diff(
    caller: Chatter,
    project_id: str,
    path: Annotated[str, Query(min_length=1, max_length=4096, description="Path relative to the project's folder.")],
    staged: Annotated[bool, Query(description="True = staged changes; false = changes that are not staged.")] = False,
) -> DiffOut:
    """Get the diff of a file that Git tracks."""
    text, cut = await (await _git(caller, project_id)).diff(path, staged=staged)
    return DiffOut(diff=text, cut=cut)


@router.post("/git/stage", status_code=204)
async def stage_files(caller: ToolUser, project_id: str, body: PathsIn) -> None:
    """Stage the changes to files, including deletions, as `git add` does. This runs filters that the repository configures."""
    await (await _git(caller, project_id)).stage(body.paths)


@router.post("/git/unstage", status_code=204)
async def unstage_files(caller: ToolUser, project_id: str, body: PathsIn) -> None:
    """Remove the changes to files from the next commit. The files keep their content."""
    await (await _git(caller, project_id)).unstage(body.paths)


@router.post("/git/commit", status_code=201)
async def commit_staged(caller: ToolUser, project_id: str, body: CommitIn) -> CommitOut:
    """Commit the staged changes, as `git commit` does: hooks run, and the commit is signed if Git is configured to sign commits."""
    return CommitOut(commit=await (await _git(caller, project_id)).commit(body.message))
