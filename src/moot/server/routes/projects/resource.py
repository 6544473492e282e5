"""Projects, their files and their git status."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import anyio.to_thread
from fastapi import BackgroundTasks, Query
from pydantic import Field

from moot.engine.submissions import default_directory
from moot.errors import NotFound, Refused
from moot.features.projects.git import GitState, git_state
from moot.guard.paths import Paths
from moot.server.auth import Chatter, Reader, Router
from moot.server.credentials import Caller
from moot.server.idempotency import CurrentAttempt
from moot.server.models import In, ListOut, Out, ShownPath
from moot.server.resources import Cursor, IfMatch, Limit, check_directory, check_match, etag_of, page_out
from moot.server.state import CurrentServer, Server
from moot.types.conversation import Project, Projects
from moot.types.ids import new_id

Text = Annotated[str, Field(max_length=100_000)]


class ProjectOut(Out, of=Project, fields="id name description root_path context rules created_at updated_at"):
    """A project, which groups conversations."""

    root_path: ShownPath | None
    """Absolute path of the project's folder; null = none."""


class ProjectIn(In):
    """A project to create."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Text = ""
    root_path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Absolute path of a folder; requires the scope `tools`. Only the user who runs the server can set it."""
    context: Text = ""
    rules: Text = ""


class ProjectChange(In):
    """Fields to change; omitted fields are unchanged."""

    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    description: Text | None = None
    root_path: Annotated[str, Field(max_length=4096)] | None = None
    """Absolute path of a folder; empty = remove it. Requires the scope `tools`. Only the user who runs the server can set it."""
    context: Text | None = None
    rules: Text | None = None


class ProjectRemoved(Out):
    """A removed project."""

    removed: ProjectOut
    conversations: int
    """Number of conversations that moved to the default project, not counting deleted ones."""


class ListedFileOut(Out):
    """A file that a prompt can mention."""

    path: ShownPath
    """Path relative to the searched folder. Paths of folders end with `/`."""
    type: Literal["file", "folder"]


class GitOut(Out):
    """Git status of a project's folder. All fields are null outside a repository."""

    branch: str | None
    """Null if no branch is checked out."""
    commit: str | None
    """Null before the first commit."""


router = Router(prefix="/api/projects", tags=["projects"])


OfUser: TypeAlias = Annotated[
    str | None, Query(alias="user", max_length=100, description="Name of the user whose projects to use; requires the scope `machine`.")
]


async def _projects(server: Server, caller: Caller, user: str | None) -> Projects:
    """Return the projects of the caller or of another user. Raise Refused if the scope is missing, NotFound for an unknown user."""
    if user is None:
        return caller.store.projects
    if not caller.may("machine"):
        raise Refused("Projects of other users require the 'machine' scope.", fix="Omit `user`.")
    found = next((each for each in await server.engine.store.tokens.users() if each.name == user), None)
    if found is None:
        raise NotFound(f"User {user!r} not found.", fix=f"moot tokens create NAME --user {user}")
    return server.engine.store.of(found.id).projects


async def _check_root(caller: Caller, root: str) -> None:
    """Raise Refused unless the caller runs the server. Other users must not choose the folders that they can access."""
    if not caller.is_home_owner:
        raise Refused(
            "Only the administrator of this machine can set the folder of a project.",
            fix="Omit `root_path`, and ask the administrator to set it.",
        )
    await check_directory(caller, root)


@router.get("")
async def list_projects(
    server: CurrentServer,
    caller: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    query: Annotated[str, Query(max_length=500, description="Words to find in the name, description or root path.")] = "",
    user: OfUser = None,
) -> ListOut[ProjectOut]:
    """List projects by name, the default project first."""
    projects = await _projects(server, caller, user)
    return page_out(await projects.list(limit=limit, cursor=cursor, query=query), ProjectOut.of)


@router.post("", status_code=201)
async def create_project(
    server: CurrentServer, caller: Chatter, attempt: CurrentAttempt, body: ProjectIn, user: OfUser = None
) -> ProjectOut:
    """Create a project. With `user` and `root_path`, another user gets access to a folder on the server's machine."""
    projects = await _projects(server, caller, user)
    if attempt.repeated:
        with suppress(NotFound):
            return ProjectOut.of(await projects.get(attempt.id))
    if body.root_path is not None:
        await _check_root(caller, body.root_path)
    project = Project(attempt.id or new_id(), body.name, body.description, body.root_path, body.context, body.rules)
    return ProjectOut.of(await projects.create(project))


@router.get("/{project_id}")
async def get_project(server: CurrentServer, caller: Reader, project_id: str, user: OfUser = None) -> ProjectOut:
    """Get a project by id or exact name."""
    return ProjectOut.of(await (await _projects(server, caller, user)).get(project_id))


@router.patch("/{project_id}")
async def change_project(
    server: CurrentServer, caller: Chatter, project_id: str, body: ProjectChange, if_match: IfMatch = None, user: OfUser = None
) -> ProjectOut:
    """Change a project."""
    projects = await _projects(server, caller, user)
    if body.root_path:
        await _check_root(caller, body.root_path)
    async with server.change_lock:
        found = await projects.get(project_id)
        check_match(if_match, etag_of(ProjectOut.of(found)))
        return ProjectOut.of(await projects.update(found.id, **body.model_dump()))


@router.delete("/{project_id}")
async def remove_project(
    server: CurrentServer, caller: Chatter, project_id: str, if_match: IfMatch = None, user: OfUser = None
) -> ProjectRemoved:
    """Remove a project. Its conversations move to the default project, which can't be removed itself."""
    projects = await _projects(server, caller, user)
    async with server.change_lock:
        found = await projects.get(project_id)
        check_match(if_match, etag_of(ProjectOut.of(found)))
        return ProjectRemoved(removed=ProjectOut.of(found), conversations=await projects.remove(found.id))


Match: TypeAlias = Annotated[str, Query(max_length=500, description="Partial path to match.")]


@router.get("/{project_id}/files")
async def list_files(
    server: CurrentServer, caller: Reader, background: BackgroundTasks, project_id: str, q: Match = "", limit: Limit = 50
) -> ListOut[ListedFileOut]:
    """List the files that match `q` in the project's folder, best match first. Files ignored by Git are left out.

    A project without a folder uses the server's working directory. This requires the scope `tools`, and only the user who runs the server
    has access to it. For others, the list is empty.
    """
    found = await caller.store.projects.get(project_id)
    default = default_directory(caller.owner_id) if caller.may("tools") else ""
    return await files_of(server, background, found.root_path or default, q, limit)


async def files_of(server: Server, background: BackgroundTasks, folder: str, q: str, limit: int) -> ListOut[ListedFileOut]:
    """Return the files in a folder that match `q`, best match first, without files ignored by Git. Empty if `folder` is empty.

    An old index of a large folder is used for this response and refreshed after it.
    """
    if not folder:
        return ListOut(data=[])
    root = Path(folder)
    paths = Paths((root,), root)

    def find() -> tuple[list[str], bool]:
        index, is_old = server.files.find(paths, folder)
        return index.matches(q, limit), is_old

    found, is_old = await anyio.to_thread.run_sync(find)
    if is_old:
        background.add_task(server.files.refresh, paths, folder)
    return ListOut(data=[ListedFileOut(path=path, type="folder" if path.endswith("/") else "file") for path in found])


@router.get("/{project_id}/git")
async def get_git(caller: Reader, project_id: str) -> GitOut:
    """Get the current branch and commit of the project's folder. Git is not run, because a repository can configure programs to run."""
    found = await caller.store.projects.get(project_id)
    at = GitState() if found.root_path is None else await anyio.to_thread.run_sync(git_state, Path(found.root_path))
    return GitOut.of(at)
