"""The seam of projects: folders of conversations with a root directory and instructions for every run in them."""

from __future__ import annotations

from typing import Protocol

from moot.types.conversation import Project
from moot.types.page import Page


class Projects(Protocol):
    """Projects. `default` always exists; each owner has an own one."""

    async def get(self, reference: str) -> Project:
        """Find by id or exact name. Raise NotFound."""
        ...

    async def at(self, root_path: str | None) -> Project:
        """Return the project with that root, or the default project if there is none."""
        ...

    async def list(self, *, limit: int = 50, cursor: str | None = None, query: str = "") -> Page[Project]:
        """List the projects whose name, description or root contains each word of the query: the default project, then by name.

        Raise UsageError for an invalid cursor.
        """
        ...

    async def create(self, project: Project) -> Project:
        """Store a project and return it with its creation time. Raise Busy if its id or root exists."""
        ...

    async def update(
        self,
        id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        root_path: str | None = None,
        context: str | None = None,
        rules: str | None = None,
    ) -> Project:
        """Set the given fields; an empty root removes it. Raise NotFound, or Busy if another project has that root."""
        ...
