"""Projects, their files and their place in a repository."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from moot.server.wire.base import In, Out, shown_path
from moot.types.conversation import Project

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
