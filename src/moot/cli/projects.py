"""`moot projects`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from moot.cli.arguments.parameters import Parameter
from moot.cli.opening import opened
from moot.cli.options import AsJson, Cursor, Limit, Out
from moot.cli.tables import print_table
from moot.errors import UsageError
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Project
from moot.types.ids import new_id

Name = Annotated[str, Parameter(help="Its name or id.")]
Root = Annotated[str | None, Parameter(help="The folder that it is about; conversations begun below it are its own. Empty takes it away.")]
Description = Annotated[str | None, Parameter(help="What it is, in a few words.")]
Context = Annotated[str | None, Parameter(help="What every agent is told of it.")]
Rules = Annotated[str | None, Parameter(help="What every agent is held to in it.")]


async def list_(
    *words: Annotated[str, Parameter(help="Only those in whose name, description or root they occur.")],
    limit: Limit = 50,
    cursor: Cursor = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Projects by name, the default one first; with words those that they occur in."""
    async with opened(output) as engine:
        page = await engine.store.projects.list(limit=limit, cursor=cursor, query=" ".join(words))
    if json:
        output.json({"data": [_facts(project) for project in page.items], "next_cursor": page.next_cursor})
        return
    print_table(output, ["NAME", "ROOT", "WHAT"], [[item.name, item.root_path or "-", item.description] for item in page.items])
    if page.next_cursor:
        output.say(f"moot: more: --cursor {page.next_cursor}", "dim")


async def show(project: Name, /, *, json: AsJson = False, output: Out) -> None:
    """All of a project."""
    async with opened(output) as engine:
        _tell(await engine.store.projects.get(project), json, output)


async def add(
    name: Annotated[str, Parameter(help="What it is called.")],
    /,
    *,
    root: Root = None,
    description: Description = None,
    context: Context = None,
    rules: Rules = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Makes a project."""
    if not name.strip():
        raise UsageError("a project needs a name", fix="moot projects add NAME")
    made = Project(new_id(), name.strip(), description or "", _folder(root) if root else None, context or "", rules or "")
    async with opened(output) as engine:
        _tell(await engine.store.projects.create(made), json, output)


async def edit(
    project: Name,
    /,
    *,
    name: Annotated[str | None, Parameter(help="What it is called from now on.")] = None,
    root: Root = None,
    description: Description = None,
    context: Context = None,
    rules: Rules = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Changes what is given; the rest stays."""
    given = (name, root, description, context, rules)
    if all(value is None for value in given):
        raise UsageError("nothing to change was given", fix="moot projects edit NAME --rules TEXT, for instance")
    if name is not None and not name.strip():
        raise UsageError("a project needs a name")
    async with opened(output) as engine:
        found = await engine.store.projects.get(project)
        place = _folder(root) if root else root
        changed = await engine.store.projects.update(
            found.id, name=name, description=description, root_path=place, context=context, rules=rules
        )
        _tell(changed, json, output)


def _folder(typed: str) -> str:
    path = Path(typed).expanduser().absolute()
    if not path.is_dir():
        raise UsageError(f"{typed!r} is no folder", fix="name one that is there")
    return str(path)


def _tell(project: Project, json: bool, output: Out) -> None:
    facts = _facts(project)
    if json:
        output.json(facts)
        return
    for key, value in facts.items():
        output.line(f"{key}: {value if isinstance(value, str) else output.to_json(value)}")


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
