"""The commands of `moot projects`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Cursor, Limit, Parameter
from moot.cli.console.format import print_fields, print_table
from moot.cli.context.engine import opened
from moot.cli.options import Out
from moot.errors import UsageError
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Project
from moot.types.ids import new_id

Name = Annotated[str, Parameter(help="Name or id of the project.")]
Root = Annotated[
    str | None,
    Parameter(metavar="PATH", help="Directory of the project. New conversations below it belong to the project. Empty removes it."),
]
Description = Annotated[str | None, Parameter(metavar="TEXT", help="Short description.")]
Context = Annotated[str | None, Parameter(metavar="TEXT", help="Background given to every agent in the project.")]
Rules = Annotated[str | None, Parameter(metavar="TEXT", help="Rules for every agent in the project.")]


async def list_(
    *words: Annotated[str, Parameter(metavar="WORD", help="Only projects whose name, description or root contains these words.")],
    limit: Limit = 50,
    cursor: Cursor = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print projects by name, the default project first."""
    async with opened(output) as engine:
        page = await engine.store.projects.list(limit=limit, cursor=cursor, query=" ".join(words))
    if json:
        output.json({"data": [_facts(project) for project in page.items], "next_cursor": page.next_cursor})
        return
    print_table(output, ["NAME", "ROOT", "DESCRIPTION"], [[item.name, item.root_path or "-", item.description] for item in page.items])
    if page.next_cursor:
        output.say(f"moot: next page: --cursor {page.next_cursor}", "dim")


async def show(project: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Print a project."""
    async with opened(output) as engine:
        _print_project(await engine.store.projects.get(project), json, output)


async def add(
    name: Annotated[str, Parameter(help="Name of the project.")],
    /,
    *,
    root: Root = None,
    description: Description = None,
    context: Context = None,
    rules: Rules = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Create a project."""
    if not name.strip():
        raise UsageError("The project name is empty.", fix="moot projects add NAME")
    made = Project(new_id(), name.strip(), description or "", _folder(root) if root else None, context or "", rules or "")
    async with opened(output) as engine:
        _print_project(await engine.store.projects.create(made), json, output)


async def edit(
    project: Name,
    /,
    *,
    name: Annotated[str | None, Parameter(help="New name.")] = None,
    root: Root = None,
    description: Description = None,
    context: Context = None,
    rules: Rules = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Change the given settings of a project."""
    changes = (name, root, description, context, rules)
    if all(value is None for value in changes):
        raise UsageError("No change was given.", fix="For example: moot projects edit NAME --rules TEXT")
    if name is not None and not name.strip():
        raise UsageError("The project name is empty.")
    async with opened(output) as engine:
        found = await engine.store.projects.get(project)
        place = _folder(root) if root else root
        changed = await engine.store.projects.update(
            found.id, name=name, description=description, root_path=place, context=context, rules=rules
        )
        _print_project(changed, json, output)


def _folder(typed: str) -> str:
    path = Path(typed).expanduser().absolute()
    if not path.is_dir():
        raise UsageError(f"{typed!r} is not a directory.", fix="Use an existing directory.")
    return str(path)


def _print_project(project: Project, json: bool, output: Out) -> None:
    print_fields(output, _facts(project), json=json)


def _facts(project: Project) -> JsonObject:
    values: dict[str, Json] = {
        "id": project.id,
        "name": project.name,
        "description": project.description,
        "root_path": project.root_path,
        "context": project.context,
        "rules": project.rules,
        "created_at": project.created_at,
    }
    return values
