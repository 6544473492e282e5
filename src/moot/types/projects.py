"""The seam of projects: folders of conversations, with a place on the disk and what every run in them is told."""

from __future__ import annotations

from typing import Protocol

from moot.types.conversation import Project
from moot.types.page import Page


class Projects(Protocol):
    """`default` is always there: in the view of one owner it is that owner's own."""

    async def get(self, reference: str) -> Project:
        """By id or exact name. Raises NotFound."""
        ...

    async def at(self, root_path: str | None) -> Project:
        """The project with that root; the default one when there is none."""
        ...

    async def list(self, *, limit: int = 50, cursor: str | None = None, query: str = "") -> Page[Project]:
        """By name, the default one first; those in whose name, description or root each word of the query occurs.

        Raises UsageError for a cursor that is none of ours.
        """
        ...

    async def create(self, project: Project) -> Project:
        """With its time. Raises Busy when its id or root is taken."""
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
        """Sets what is given; an empty root takes it away. Raises NotFound, and Busy for a root that is another project's."""
        ...
