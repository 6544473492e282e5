"""Routes that list and run slash commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Query
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
from moot.commands.submission import submit
from moot.errors import NotFound, Refused, UsageError
from moot.plugins.registry import hint
from moot.server.auth import Reader, Router, ToolUser
from moot.server.credentials import Caller
from moot.server.idempotency import CurrentAttempt
from moot.server.models import In, Out
from moot.server.state import CurrentServer, Server
from moot.types.agent import Mode
from moot.types.command import CommandFacts, CommandParameter
from moot.types.model import Effort
from moot.types.token import LOCAL_USER


class ParameterOut(Out, of=CommandParameter, fields="name description required default choices"):
    """One argument of a command."""


class CommandOut(Out, of=CommandFacts, fields="name help argument category type aliases requires agent examples origin"):
    """A slash command."""

    parameters: list[ParameterOut]


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
    tools: list[str] | None = None


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
    data = [CommandOut.of(facts, parameters=[ParameterOut.of(one) for one in facts.parameters]) for facts in catalogue.facts()]
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
