"""Routes that list and run slash commands, and create, change and delete those in moot's home."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, cast

from anyio import to_thread
from fastapi import Query, Response
from pydantic import Field

from moot.commands import (
    Choose,
    CommandContext,
    Compose,
    Copy,
    Notice,
    OpenConversation,
    Quit,
    Regenerate,
    Reply,
    RunOverrides,
    Save,
    Send,
    catalogue_of,
)
from moot.commands.catalogue import check_usable
from moot.commands.custom import CustomCommand
from moot.commands.submission import submit
from moot.config.agents.files import split
from moot.config.changes import with_front_matter
from moot.config.commands import FOLDER, own_command_file, read_command, write_command_file, written_fields
from moot.config.home import read_text
from moot.errors import ConfigError, NotFound, Refused, UsageError
from moot.plugins.registry import hint
from moot.server.auth import Operator, Reader, Router, ToolUser
from moot.server.credentials import Caller
from moot.server.idempotency import CurrentAttempt
from moot.server.models import In, Out
from moot.server.resources import IfMatch, check_match, etag_of
from moot.server.state import CurrentServer, Server
from moot.types.agent import Mode
from moot.types.canonical import Json
from moot.types.command import CommandFacts, CommandParameter
from moot.types.model import Detail, Effort
from moot.types.token import LOCAL_USER


class ParameterOut(Out, of=CommandParameter, fields="name description required default choices"):
    """One argument of a command."""


class CommandOut(Out, of=CommandFacts, fields="name help argument category type aliases requires agent examples origin"):
    """A slash command."""

    parameters: list[ParameterOut]
    is_own: bool
    """True if the command is a Markdown file in moot's home, so that it can be changed and deleted."""


class CommandsOut(Out):
    """All usable slash commands, and the reasons why others can't be used."""

    data: list[CommandOut]
    next_cursor: None = None
    problems: dict[str, str]
    """Reasons why commands can't be used, by name: the file is not trusted or not valid."""


class WishesModel(In):
    """Settings for the next prompts; null = use the setting of the conversation, the agent or the configuration."""

    agent: Annotated[str, Field(max_length=200)] | None = None
    model: Annotated[str, Field(max_length=500)] | None = None
    mode: Mode | None = None
    effort: Effort | None = None
    detail: Detail | None = None
    tools: list[str] | None = None
    web_search: bool | None = None


class CommandIn(In):
    """A command to run."""

    argument: Annotated[str, Field(max_length=10_000)] = ""
    conversation: Annotated[str, Field(max_length=128)] | None = None
    """Id of the conversation to run the command in; null = a new conversation, which is stored with its first prompt."""
    directory: Annotated[str, Field(max_length=4096)] = ""
    """Working directory of a new conversation."""
    project: Annotated[str, Field(max_length=128)] = ""
    """Project of a new conversation."""
    file: Annotated[str, Field(max_length=4096)] = ""
    """Path of the file that is open in the client, for commands that work on it."""
    wishes: WishesModel = WishesModel()


class ReplyOut(Out):
    """An instruction to the client, by `kind`.

    `say` = show a text. `choose` = let the user choose a value and run the command again with it (or run `command` if it is set). `go` =
    open another conversation. `compose` = let the user write a text. `copy` = copy a text to the clipboard. `answer` = answer the last
    prompt. `run` = follow the run, which the server has started. `save` = download the conversation in `format`. `leave` = exit.
    """

    kind: Literal["say", "choose", "go", "compose", "copy", "answer", "run", "save", "leave"]
    text: str = ""
    style: str = ""
    title: str = ""
    choices: list[dict[str, str]] = Field(default_factory=list[dict[str, str]])
    command: str = ""
    conversation: str | None = None
    edits: str | None = None
    resume: str | None = None
    run: str | None = None
    format: str = ""


class CommandDone(Out):
    """Result of a command."""

    replies: list[ReplyOut]
    wishes: WishesModel
    """Settings that the client sends with the next command and applies to the next prompt."""


class CommandTextOut(Out):
    """A custom command with its text."""

    name: str
    description: str
    argument: str
    agent: str
    model: str
    prompt: str
    origin: str
    is_own: bool


Line = Annotated[str, Field(max_length=2000)]


class CommandTextIn(In):
    """Fields of a custom command. An empty text removes a field."""

    description: Line | None = None
    argument: Annotated[str, Field(max_length=200)] | None = None
    agent: Line | None = None
    model: Line | None = None
    prompt: Annotated[str, Field(max_length=100_000)] | None = None
    """Text with variables such as `$1`, `$ARGUMENTS` and `$SELECTION`."""

    def values(self) -> dict[str, Json]:
        """Return the given fields as front matter, in which `instructions` is the text below it."""
        given = cast("dict[str, Json]", self.model_dump(include=set(CommandTextIn.model_fields), exclude_none=True))
        return {"instructions" if name == "prompt" else name: value or None for name, value in given.items()}


class NewCommandIn(CommandTextIn):
    """A custom command to create."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """Letters, digits, `-` and `_`. A name such as `git:squash` creates the file in the folder `git`."""


router = Router(prefix="/api/commands", tags=["commands"])


@router.get("")
async def list_commands(
    server: CurrentServer,
    caller: Reader,
    conversation: Annotated[str, Query(max_length=128, description="List also the commands of this conversation's project.")] = "",
    directory: Annotated[str, Query(max_length=4096, description="List also the commands of the project in this folder.")] = "",
    project: Annotated[str, Query(max_length=128, description="List also the commands of this project.")] = "",
) -> CommandsOut:
    """List all slash commands: built-in ones, and those defined in moot's home and in a project."""
    context = await _context(server, caller, _Place(conversation or None, project, directory), RunOverrides())
    catalogue = await catalogue_of(context)
    data = [_shown(server, facts) for facts in catalogue.facts()]
    return CommandsOut(data=data, problems={name: error.advice() for name, error in catalogue.refused.items()})


@router.post("/{name}")
async def run_command(server: CurrentServer, caller: ToolUser, attempt: CurrentAttempt, name: str, body: CommandIn) -> CommandDone:
    """Run a slash command and return what the client should do next.

    If the command produces a prompt, it is submitted to the conversation.
    """
    attempt.check_repeatable()
    overrides = RunOverrides(**body.wishes.model_dump())
    context = await _context(server, caller, _Place(body.conversation, body.project, body.directory), overrides)
    context.file = body.file
    catalogue = await catalogue_of(context)
    if name not in catalogue and name not in catalogue.refused:
        raise NotFound(f"Command {name!r} not found.{hint(name, catalogue.names())}", fix="See GET /api/commands.")
    replies = await catalogue.find(name).run(context, body.argument)
    done = [await _reply(context, reply, attempt.id) for reply in replies]
    return CommandDone(replies=done, wishes=WishesModel.model_validate(overrides, from_attributes=True))


@router.get("/{name}")
async def show_command(
    server: CurrentServer,
    caller: Operator,
    response: Response,
    name: str,
    project: Annotated[str, Query(max_length=128, description="Include the commands of this project.")] = "",
) -> CommandTextOut:
    """Get the text of a custom command. For a file in moot's home, the ETag changes with the file."""
    catalogue = await catalogue_of(await _context(server, caller, _Place(None, project, ""), RunOverrides()))
    found = catalogue.find(name, listing="See GET /api/commands.") if name in catalogue or name in catalogue.refused else None
    if not isinstance(found, CustomCommand):
        raise NotFound(f"Custom command {name!r} not found.{hint(name, catalogue.names())}", fix="See GET /api/commands.")
    facts, definition = catalogue.facts_of(name), found.definition
    fields: dict[str, Json] = {"description": facts.help, "argument": facts.argument, "agent": facts.agent}
    is_own = _is_own(server, facts)
    if is_own:
        text = await to_thread.run_sync(partial(read_text, Path(facts.origin), mark=True))
        fields = written_fields(text, Path(facts.origin))
        response.headers["etag"] = etag_of(text)
    texts = {key: str(fields.get(key, "")) for key in ("description", "argument", "agent")}
    return CommandTextOut(name=facts.name, **texts, model=definition.model, prompt=definition.prompt, origin=facts.origin, is_own=is_own)


@router.post("", status_code=201)
async def create_command(
    server: CurrentServer, caller: Operator, attempt: CurrentAttempt, response: Response, body: NewCommandIn
) -> CommandTextOut:
    """Create a custom command as a Markdown file in moot's home. Errors name the invalid fields."""
    home = server.engine.settings.home
    path = own_command_file(home, body.name)
    catalogue = await catalogue_of(await _context(server, caller, _Place(None, "", ""), RunOverrides()))
    if not (attempt.repeated and path.exists()):
        if body.name in catalogue or body.name in catalogue.refused or path.exists():
            error = ConfigError(f"A command named {body.name!r} already exists.", fix="Choose another name.")
            error.problems = ((f"commands.{body.name}.name", "A command with this name already exists."),)
            raise error
        await _write(server, body.name, path, "", body.values())
    return await show_command(server, caller, response, body.name)


@router.patch("/{name}")
async def change_command(
    server: CurrentServer, caller: Operator, response: Response, name: str, body: CommandTextIn, if_match: IfMatch = None
) -> CommandTextOut:
    """Change a command that is a Markdown file in moot's home. Comments and fields that the request doesn't contain are kept.

    Send the command's ETag as `If-Match` to detect concurrent changes.
    """
    path, before = await _own(server, name)
    check_match(if_match, etag_of(before))
    await _write(server, name, path, before, body.values())
    return await show_command(server, caller, response, name)


@router.delete("/{name}", status_code=204, response_class=Response)
async def delete_command(server: CurrentServer, _: Operator, name: str, if_match: IfMatch = None) -> None:
    """Delete the file of a command in moot's home. Send the command's ETag as `If-Match` to detect concurrent changes."""
    path, before = await _own(server, name)
    check_match(if_match, etag_of(before))
    await to_thread.run_sync(write_command_file, path, before, "")


async def _own(server: Server, name: str) -> tuple[Path, str]:
    """Return the path and the text of a command's file in moot's home. Raise NotFound if there is none."""
    path = own_command_file(server.engine.settings.home, name)
    text = await to_thread.run_sync(partial(read_text, path, mark=True))
    if not text:
        raise NotFound(f"{path.parent} contains no command {name!r}.", fix="Edit the file that defines the command.")
    return path, text


async def _write(server: Server, name: str, path: Path, before: str, values: dict[str, Json]) -> None:
    """Write the command's file with these fields changed. Raise ConfigError, naming the field, if the command would be invalid."""
    after = with_front_matter(before, values, path)
    if not split(after)[1].strip() and not {"prompt", "steps"} & written_fields(after, path).keys():
        error = ConfigError("The command has no text.", file=str(path))
        error.problems = ((f"commands.{name}.prompt", "Enter the text of the command."),)
        raise error
    await check_usable(server.engine.runtime.settings, read_command(name, path, after))
    await to_thread.run_sync(write_command_file, path, before, after)


def _is_own(server: Server, facts: CommandFacts) -> bool:
    return facts.origin.endswith(".md") and Path(facts.origin).is_relative_to(server.engine.settings.home / FOLDER)


def _shown(server: Server, facts: CommandFacts) -> CommandOut:
    parameters = [ParameterOut.of(one) for one in facts.parameters]
    return CommandOut.of(facts, parameters=parameters, is_own=_is_own(server, facts))


@dataclass(frozen=True, slots=True)
class _Place:
    """Conversation or folder in which a command runs."""

    conversation: str | None
    project: str
    directory: str


async def _context(server: Server, caller: Caller, place: _Place, overrides: RunOverrides) -> CommandContext:
    if place.directory and caller.owner_id != LOCAL_USER:
        raise Refused("Only the owner of this machine can choose a folder.", fix="Choose a project.")
    context = CommandContext(server.engine, place.directory, None, overrides, project=place.project, owner=caller.owner_id)
    if place.conversation is not None:
        conversation = await caller.store.conversations.get(place.conversation)
        if conversation.deleted_at is not None:
            raise UsageError("The conversation has been deleted.", fix="Restore it first.")
        context.conversation, context.directory, context.project = conversation.id, conversation.directory, ""
    elif place.project:
        context.directory = (await caller.store.projects.get(place.project)).root_path or place.directory
    return context


_KINDS: dict[type[Reply], str] = {
    Notice: "say",
    Choose: "choose",
    OpenConversation: "go",
    Compose: "compose",
    Copy: "copy",
    Regenerate: "answer",
    Save: "save",
    Quit: "leave",
}


async def _reply(context: CommandContext, reply: Reply, id: str) -> ReplyOut:
    if isinstance(reply, Send):
        submitted = await submit(context, reply, id=id)
        return ReplyOut(kind="run", run=submitted.run.id, conversation=submitted.conversation.id)
    choices = reply.choices if isinstance(reply, Choose) else ()
    choices_json = [{"value": choice.value, "label": choice.label or choice.value, "about": choice.about} for choice in choices]
    return ReplyOut.of(reply, kind=_KINDS[type(reply)], choices=choices_json)
