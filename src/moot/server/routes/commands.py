"""Slash commands: what a person types behind `/`, the same in every face."""

from __future__ import annotations

from moot.commands import Choose, CommandContext, Compose, Notice, OpenConversation, Regenerate, Reply, RunOverrides, find, names
from moot.errors import NotFound, UsageError
from moot.plugins import COMMANDS
from moot.server.auth import Reader, ToolUser
from moot.server.routing import Router
from moot.server.state import Here
from moot.server.wire.base import ListOut
from moot.server.wire.deciding import CommandDone, CommandIn, CommandOut, ReplyOut, WishesModel

router = Router(prefix="/api/commands", tags=["commands"])


@router.get("")
async def list_commands(_: Reader) -> ListOut[CommandOut]:
    """Lists every command."""
    found = [(name, find(name)) for name in names()]
    return ListOut(data=[CommandOut(name=name, help=command.help, argument=command.argument) for name, command in found])


@router.post("/{name}")
async def run_command(here: Here, caller: ToolUser, name: str, wanted: CommandIn) -> CommandDone:
    """Runs a command, and says what the face is to do then."""
    if name not in COMMANDS:
        raise NotFound(COMMANDS.unknown(name), fix="GET /api/commands")
    conversation = None if wanted.conversation is None else await caller.store.conversations.get(wanted.conversation)
    if conversation is not None and conversation.deleted_at is not None:
        raise UsageError("the conversation is deleted", fix="restore it first")
    overrides = RunOverrides(**wanted.wishes.model_dump())
    context = CommandContext(
        here.engine,
        "" if conversation is None else conversation.directory,
        None if conversation is None else conversation.id,
        overrides,
    )
    replies = await find(name).run(context, wanted.argument)
    said = WishesModel(
        agent=overrides.agent,
        model=overrides.model,
        mode=overrides.mode,
        effort=overrides.effort,
        tools=None if overrides.tools is None else list(overrides.tools),
    )
    return CommandDone(replies=[_reply(reply) for reply in replies], wishes=said)


def _reply(reply: Reply) -> ReplyOut:
    match reply:
        case Notice(text, style):
            return ReplyOut(kind="say", text=text, style=style)
        case Choose(title, choices):
            told = [{"value": choice.value, "label": choice.label or choice.value, "about": choice.about} for choice in choices]
            return ReplyOut(kind="choose", title=title, choices=told)
        case OpenConversation(conversation):
            return ReplyOut(kind="go", conversation=conversation)
        case Compose(text, edits):
            return ReplyOut(kind="compose", text=text, edits=edits)
        case Regenerate(resume):
            return ReplyOut(kind="answer", resume=resume)
        case _:
            return ReplyOut(kind="leave")
