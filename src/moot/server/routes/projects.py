"""Projects, their files and their git status."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import anyio.to_thread
from fastapi import Query
from pydantic import Field

from moot.features.folders import GitState, candidates, files_below, git_state
from moot.guard.paths import Paths
from moot.server.auth import Chatter, Reader, Router
from moot.server.models import In, ListOut, Out, shown_path
from moot.server.resources import Cursor, IfMatch, Limit, check_match, etag_of, listed
from moot.server.routes.conversations import check_directory
from moot.server.state import Here
from moot.types.conversation import Project
from moot.types.ids import new_id

Text = Annotated[str, Field(max_length=100_000)]


class ProjectOut(Out):
    """A folder of conversations."""

    id: str
    name: str
    description: str
    root_path: str | None
    """Absolute; null = none."""
    context: str
    rules: str
    created_at: int


class ProjectIn(In):
    """A project to make."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Text = ""
    root_path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Absolute; needs the scope `tools`."""
    context: Text = ""
    rules: Text = ""


class ProjectChange(In):
    """What is to be changed; what is left out stays."""

    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    description: Text | None = None
    root_path: Annotated[str, Field(max_length=4096)] | None = None
    """Needs the scope `tools`; empty = none any more."""
    context: Text | None = None
    rules: Text | None = None


class FileOut(Out):
    """A file of a project that could be meant."""

    path: str
    """From the project's root; a folder's ends with `/`."""
    type: Literal["file", "folder"]


class GitOut(Out):
    """Where a project stands in its repository; all null outside one."""

    branch: str | None
    """Null while it is on no branch."""
    commit: str | None
    """Null before the first one."""


def project_out(project: Project) -> ProjectOut:
    """A project as it is sent."""
    return ProjectOut(
        id=project.id,
        name=project.name,
        description=project.description,
        root_path=None if project.root_path is None else shown_path(project.root_path),
        context=project.context,
        rules=project.rules,
        created_at=project.created_at,
    )


router = Router(prefix="/api/projects", tags=["projects"])


@router.get("")
async def list_projects(
    caller: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    query: Annotated[str, Query(max_length=500, description="Words in name, description or root.")] = "",
) -> ListOut[ProjectOut]:
    """Lists projects by name, the default one first."""
    return listed(await caller.store.projects.list(limit=limit, cursor=cursor, query=query), project_out)


@router.post("", status_code=201)
async def create_project(caller: Chatter, wanted: ProjectIn) -> ProjectOut:
    """Makes a project."""
    if wanted.root_path is not None:
        check_directory(caller, wanted.root_path)
    made = Project(new_id(), wanted.name, wanted.description, wanted.root_path, wanted.context, wanted.rules)
    return project_out(await caller.store.projects.create(made))


@router.get("/{project_id}")
async def get_project(caller: Reader, project_id: str) -> ProjectOut:
    """Gives a project, by id or exact name."""
    return project_out(await caller.store.projects.get(project_id))


@router.patch("/{project_id}")
async def change_project(here: Here, caller: Chatter, project_id: str, wanted: ProjectChange, if_match: IfMatch = None) -> ProjectOut:
    """Changes a project."""
    if wanted.root_path:
        check_directory(caller, wanted.root_path)
    async with here.changing:
        found = await caller.store.projects.get(project_id)
        check_match(if_match, etag_of(project_out(found)))
        return project_out(await caller.store.projects.update(found.id, **wanted.model_dump()))


@router.get("/{project_id}/files")
async def list_files(
    caller: Reader,
    project_id: str,
    q: Annotated[str, Query(max_length=500, description="What was typed of the path.")] = "",
    limit: Limit = 50,
) -> ListOut[FileOut]:
    """Lists files below the project's root that fit what was typed, best first, without ignored ones; none where there is no root."""
    found = await caller.store.projects.get(project_id)
    if found.root_path is None:
        return ListOut(data=[])
    paths = await anyio.to_thread.run_sync(partial(_fitting, Path(found.root_path), q, limit))
    return ListOut(data=[FileOut(path=shown_path(path), type="folder" if path.endswith("/") else "file") for path in paths])


@router.get("/{project_id}/git")
async def get_git(caller: Reader, project_id: str) -> GitOut:
    """Says which branch and commit the project's root is at. No program is run: a repository's own configuration may name some."""
    found = await caller.store.projects.get(project_id)
    at = GitState() if found.root_path is None else await anyio.to_thread.run_sync(git_state, Path(found.root_path))
    return GitOut(branch=at.branch, commit=at.commit)


def _fitting(root: Path, typed: str, limit: int) -> list[str]:
    return candidates(typed, files_below(Paths((root,), root)), limit)
