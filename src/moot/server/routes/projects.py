"""Projects, their files and their git status."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import anyio.to_thread
from fastapi import Query
from pydantic import Field

from moot.features.folders import GitState, candidates, files_below, git_state
from moot.guard.paths import Paths
from moot.server.auth import Chatter, Reader, Router
from moot.server.models import In, ListOut, Out, ShownPath
from moot.server.resources import Cursor, IfMatch, Limit, check_directory, check_match, etag_of, page_out
from moot.server.state import CurrentServer
from moot.types.conversation import Project
from moot.types.ids import new_id

Text = Annotated[str, Field(max_length=100_000)]


class ProjectOut(Out, of=Project, fields="id name description root_path context rules created_at"):
    """A project, which groups conversations."""

    root_path: ShownPath | None
    """Absolute path; null = none."""


class ProjectIn(In):
    """A project to create."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Text = ""
    root_path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Absolute path; requires the `tools` scope."""
    context: Text = ""
    rules: Text = ""


class ProjectChange(In):
    """Fields to change; omitted fields are unchanged."""

    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    description: Text | None = None
    root_path: Annotated[str, Field(max_length=4096)] | None = None
    """Requires the scope `tools`; empty = remove the root."""
    context: Text | None = None
    rules: Text | None = None


class FileOut(Out):
    """A file of a project."""

    path: ShownPath
    """Relative to the project's root; folders end with `/`."""
    type: Literal["file", "folder"]


class GitOut(Out):
    """Git status of a project; null outside a repository."""

    branch: str | None
    """Null if no branch is checked out."""
    commit: str | None
    """Null before the first commit."""


router = Router(prefix="/api/projects", tags=["projects"])


@router.get("")
async def list_projects(
    caller: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    query: Annotated[str, Query(max_length=500, description="Words to find in the name, description or root path.")] = "",
) -> ListOut[ProjectOut]:
    """List projects by name, the default project first."""
    return page_out(await caller.store.projects.list(limit=limit, cursor=cursor, query=query), ProjectOut.of)


@router.post("", status_code=201)
async def create_project(caller: Chatter, body: ProjectIn) -> ProjectOut:
    """Create a project."""
    if body.root_path is not None:
        check_directory(caller, body.root_path)
    project = Project(new_id(), body.name, body.description, body.root_path, body.context, body.rules)
    return ProjectOut.of(await caller.store.projects.create(project))


@router.get("/{project_id}")
async def get_project(caller: Reader, project_id: str) -> ProjectOut:
    """Get a project by id or exact name."""
    return ProjectOut.of(await caller.store.projects.get(project_id))


@router.patch("/{project_id}")
async def change_project(
    server: CurrentServer, caller: Chatter, project_id: str, body: ProjectChange, if_match: IfMatch = None
) -> ProjectOut:
    """Change a project."""
    if body.root_path:
        check_directory(caller, body.root_path)
    async with server.change_lock:
        found = await caller.store.projects.get(project_id)
        check_match(if_match, etag_of(ProjectOut.of(found)))
        return ProjectOut.of(await caller.store.projects.update(found.id, **body.model_dump()))


@router.get("/{project_id}/files")
async def list_files(
    caller: Reader,
    project_id: str,
    q: Annotated[str, Query(max_length=500, description="Partial path to match.")] = "",
    limit: Limit = 50,
) -> ListOut[FileOut]:
    """List files under the project's root that match `q`, best match first, without ignored files. Empty for projects without a root."""
    found = await caller.store.projects.get(project_id)
    if found.root_path is None:
        return ListOut(data=[])
    root = Path(found.root_path)
    paths = await anyio.to_thread.run_sync(lambda: candidates(q, files_below(Paths((root,), root)), limit))
    return ListOut(data=[FileOut(path=path, type="folder" if path.endswith("/") else "file") for path in paths])


@router.get("/{project_id}/git")
async def get_git(caller: Reader, project_id: str) -> GitOut:
    """Get the current branch and commit of the project's root. No program is run: a repository's configuration may name some."""
    found = await caller.store.projects.get(project_id)
    at = GitState() if found.root_path is None else await anyio.to_thread.run_sync(git_state, Path(found.root_path))
    return GitOut.of(at)
