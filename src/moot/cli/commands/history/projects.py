"""The commands of `moot projects`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Cursor, Limit, Parameter
from moot.cli.console.format import plural, print_fields, print_table
from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.context.engine import opened
from moot.cli.context.output import Out
from moot.cli.terminal.prompts.plain import confirm
from moot.engine import Engine
from moot.errors import NeedsApproval, NotFound, UsageError
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Project, Projects
from moot.types.ids import new_id

Name = Annotated[str, Parameter(help="Name or id of the project.")]
Root = Annotated[
    str | None,
    Parameter(
        metavar="PATH",
        help="Directory of the project. Conversations started in or below it belong to the project. An empty value removes the setting.",
    ),
]
Description = Annotated[str | None, Parameter(metavar="TEXT", help="Short description.")]
Context = Annotated[str | None, Parameter(metavar="TEXT", help="Background information for every agent in the project.")]
Rules = Annotated[str | None, Parameter(metavar="TEXT", help="Rules for every agent in the project.")]

OfUser = Annotated[
    str | None,
    Parameter(
        metavar="NAME",
        help="Server user who owns the project. Defaults to you. Other users can access only the directories of their own projects.",
    ),
]


async def _projects(engine: Engine, user: str | None) -> Projects:
    if user is None:
        return engine.store.projects
    found = next((each for each in await engine.store.tokens.users() if each.name == user), None)
    if found is None:
        raise NotFound(f"User {user!r} not found.", fix=f"moot tokens create NAME --user {user}")
    return engine.store.of(found.id).projects


async def list_(
    *words: Annotated[str, Parameter(metavar="WORD", help="Only projects whose name, description or root contains these words.")],
    limit: Limit = 50,
    cursor: Cursor = None,
    user: OfUser = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print projects sorted by name, with the default project first."""
    async with opened(output) as engine:
        page = await (await _projects(engine, user)).list(limit=limit, cursor=cursor, query=" ".join(words))
    if json:
        output.json({"data": [_facts(project) for project in page.items], "next_cursor": page.next_cursor})
        return
    print_table(output, ["NAME", "ROOT", "DESCRIPTION"], [[item.name, item.root_path or "-", item.description] for item in page.items])
    if page.next_cursor:
        output.say(f"moot: next page: --cursor {page.next_cursor}", "dim")


async def show(project: Name, /, *, user: OfUser = None, json: AsJson = False, output: Out) -> None:
    """Print the settings of a project."""
    async with opened(output) as engine:
        _print_project(await (await _projects(engine, user)).get(project), json, output)


async def add(
    name: Annotated[str, Parameter(help="Name of the project.")],
    /,
    *,
    root: Root = None,
    description: Description = None,
    context: Context = None,
    rules: Rules = None,
    user: OfUser = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Create a project."""
    if not name.strip():
        raise UsageError("The project name is empty.", fix="moot projects add NAME")
    made = Project(new_id(), name.strip(), description or "", _folder(root) if root else None, context or "", rules or "")
    async with opened(output) as engine:
        _print_project(await (await _projects(engine, user)).create(made), json, output)


async def edit(
    project: Name,
    /,
    *,
    name: Annotated[str | None, Parameter(help="New name.")] = None,
    root: Root = None,
    description: Description = None,
    context: Context = None,
    rules: Rules = None,
    user: OfUser = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Change the given settings of a project."""
    changes = (name, root, description, context, rules)
    if all(value is None for value in changes):
        raise UsageError("No changes were specified.", fix="For example: moot projects edit NAME --rules TEXT")
    if name is not None and not name.strip():
        raise UsageError("The project name is empty.")
    async with opened(output) as engine:
        projects = await _projects(engine, user)
        found = await projects.get(project)
        place = _folder(root) if root else root
        changed = await projects.update(found.id, name=name, description=description, root_path=place, context=context, rules=rules)
        _print_project(changed, json, output)


async def move(
    old: Annotated[Path, Parameter(help="Former path of the folder.", kind="file")],
    new: Annotated[Path, Parameter(help="Current path of the folder.", kind="file")],
    /,
    *,
    dry_run: Annotated[bool, Parameter(help="Only count the conversations, without changing them.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Update the path of a folder that was moved, in all of its conversations and projects. Print the number of conversations."""
    before, after = map(_absolute, (old, new))
    if before == after:
        raise UsageError(f"The former and the current path are both {before!r}.")
    async with opened(output) as engine:
        count = await engine.store.projects.move(before, after, dry_run=dry_run)
    if json:
        output.json({"old": before, "new": after, "conversations": count, "dry_run": dry_run})
    else:
        output.line(f"{plural(count, 'conversation')} {'would move' if dry_run else 'moved'} from {before} to {after}")


async def remove(
    project: Name,
    /,
    *,
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Don't prompt for confirmation.")] = False,
    user: OfUser = None,
    json: AsJson = False,
    output: Out,
) -> int:
    """Remove a project and its tasks. Its conversations move to the default project."""
    async with opened(output) as engine:
        projects = await _projects(engine, user)
        found = await projects.get(project)
        count = await projects.remove(found.id, dry_run=True)
        tasks = await (engine.store.of(found.owner)).tasks.count(found.id)
        lost = f" and its {plural(tasks, 'task')}" if tasks else ""
        moved = plural(count, "conversation")
        if not yes and not await _confirmed(f"Move {moved} to the default project, and remove project {found.name!r}{lost}?", output):
            output.say("moot: the project was not removed", "dim")
            return 1
        count = await projects.remove(found.id)
    if json:
        output.json({"removed": _facts(found), "conversations": count})
        return 0
    output.say(f"moot: removed project {found.name!r}; conversations moved to the default project: {count}")
    return 0


async def _confirmed(question: str, output: Output) -> bool:
    """Ask the user to confirm. Raise NeedsApproval if they cannot be asked."""
    if not (sys.stdin.isatty() and output.stderr_terminal):
        raise NeedsApproval(f"{question} This needs confirmation.", fix="Use --yes.")
    return await confirm(question, output)


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
        "updated_at": project.updated_at,
    }
    return values


def _absolute(path: Path) -> str:
    """Return the absolute path without resolving symbolic links, because the folder may not exist anymore."""
    return os.path.normpath(here() / path.expanduser())
