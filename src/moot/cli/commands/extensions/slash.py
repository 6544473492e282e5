"""The commands of `moot commands`, which list and run slash commands."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, cast

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.commands.chat.runs import resume
from moot.cli.console.format import print_fields, print_table
from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.context.engine import find_conversation, opened
from moot.cli.context.output import Out
from moot.cli.options import NO_FLAGS, NO_SHOW, Continue, RunFlags, ShowFlags
from moot.cli.run import Request, Typed, perform
from moot.commands import Catalogue, CommandContext, Notice, OpenConversation, Regenerate, Reply, RunOverrides, Save, Send, catalogue_of
from moot.commands.custom import CustomCommand
from moot.commands.status import usage
from moot.commands.submission import store_agent, text_of_reply
from moot.errors import UsageError
from moot.features.exports import save_conversation
from moot.types.canonical import JsonObject, dumps, loads_object
from moot.types.command import CommandFacts
from moot.types.workflow import WorkflowStep

_LISTING = "moot commands list"

Name = Annotated[str, Parameter(metavar="NAME", help="Name of the command, with or without the slash.")]


@asynccontextmanager
async def _opened(output: Output, conversation: str | None = None) -> AsyncGenerator[tuple[CommandContext, Catalogue]]:
    async with opened(output) as engine:
        directory = str(here())
        found = None if conversation is None else await find_conversation(engine, conversation, directory)
        context = CommandContext(engine, directory, None if found is None else found.id)
        context.without_conversation = "Specify a conversation with the option -c."
        yield context, await catalogue_of(context)


async def list_commands(
    *,
    category: Annotated[str, Parameter(metavar="CATEGORY", help="Only commands in this category.")] = "",
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the commands that can be used in this directory."""
    async with _opened(output) as (_, catalogue):
        found = [facts for facts in catalogue.facts() if category in ("", facts.category)]
    problems = {name: error.advice() for name, error in sorted(catalogue.refused.items())}
    if json:
        output.json({"data": [_to_json(facts) for facts in found], "problems": {**problems}})
        return
    print_table(output, ["COMMAND", "CATEGORY", "DESCRIPTION"], [[usage(facts), facts.category, facts.help] for facts in found])
    for name, problem in problems.items():
        output.say(f"moot: /{name} can't be used: {problem}", "yellow")


def _to_json(facts: CommandFacts) -> JsonObject:
    return loads_object(dumps(cast("JsonObject", asdict(facts))))  # converts tuples to lists


async def show_command(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Print a command: its arguments and, for a custom command, its text."""
    async with _opened(output) as (_, catalogue):
        command = catalogue.find(name.removeprefix("/"), listing=_LISTING)
        facts = catalogue.facts_of(name.removeprefix("/"))
    definition = command.definition if isinstance(command, CustomCommand) else None
    if json:
        steps = [loads_object(dumps(cast("JsonObject", asdict(step)))) for step in definition.steps] if definition else []
        texts: JsonObject = {"prompt": definition.prompt, "model": definition.model} if definition else {"prompt": "", "model": ""}
        output.json({**_to_json(facts), **texts, **({"steps": [*steps]} if steps else {})})
        return
    fields = {"command": usage(facts), "description": facts.help, "category": facts.category, "type": facts.type, "from": facts.origin}
    fields |= {"aliases": ", ".join(facts.aliases), "needs": ", ".join(facts.requires), "agent": facts.agent}
    print_fields(output, {name: value for name, value in fields.items() if value}, json=False)
    for note in definition.notes if definition else ():
        output.say(f"moot: {note}", "yellow")
    if definition is not None and definition.prompt:
        output.line(f"\n{output.fit(definition.prompt)}")
    for number, step in enumerate(definition.steps if definition else (), 1):
        output.line(f"\n{output.fit(_step_text(number, step))}")


def _step_text(number: int, step: WorkflowStep) -> str:
    head = f"{number}. {step.name}{f' (agent {step.agent})' if step.agent else ''}"
    check = [f"   check: {step.check.kind} {step.check.text}"] if step.check is not None else []
    retries = [f"   retries: {step.retries}"] if step.retries else []
    return "\n".join([head, *(f"   {line}" for line in step.prompt.strip().split("\n")), *check, *retries])


async def run_command(
    name: Name,
    /,
    *argument: Annotated[
        str, Parameter(metavar="ARGUMENT", help="Arguments for the command. Put quotes around arguments that contain spaces.")
    ],
    continue_: Continue | None = None,
    file: Annotated[Path | None, Parameter(metavar="PATH", help="File that the variable $FILE in the command refers to.")] = None,
    flags: RunFlags = NO_FLAGS,
    shown: ShowFlags = NO_SHOW,
    output: Out,
) -> int:
    """Run a slash command. If it sends a prompt, print the answer."""
    send: Send | None = None
    again: Regenerate | None = None
    async with _opened(output, continue_) as (context, catalogue):
        context.overrides = RunOverrides(agent=flags.agent, model=flags.model, mode=flags.mode, effort=flags.effort, detail=flags.detail)
        context.file, context.words, context.options_win = str(file) if file is not None else "", argument, True
        replies = await catalogue.find(name.removeprefix("/"), listing=_LISTING).run(context, " ".join(argument))
        texts: list[str] = []
        for reply in replies:
            if isinstance(reply, Send):
                send = reply
            elif isinstance(reply, Regenerate):
                again = reply
            else:
                texts.append(await _carried_out(context, reply))
        await store_agent(context)
    if again is not None and continue_ is not None:
        if again.resume is not None:
            return await resume(continue_, shown=shown, output=output)
        return await perform(Request(Typed(), flags, shown, continue_, again=True), output)
    if send is None and shown.form() != "text":
        output.json({"text": "\n".join(filter(None, texts))})
    else:
        for text in filter(None, texts):
            (output.line if send is None else output.say)(output.fit(text))
    if send is None:
        return 0
    flags = replace(flags, agent=send.agent or flags.agent, model=send.model or flags.model, mode=send.mode or flags.mode)
    return await perform(Request(Typed(send.message()), flags, shown, continue_, command=send, chosen=context.unstored), output)


async def _carried_out(context: CommandContext, reply: Reply) -> str:
    """Perform the action of a command's reply without a user interface, and return the text to print."""
    if isinstance(reply, Save):
        store = context.engine.store
        path = await save_conversation(store, await store.conversations.get(reply.conversation), reply.format, Path(context.directory))
        return f"Exported to {path}"
    if isinstance(reply, OpenConversation):
        return reply.conversation or ""
    if (text := text_of_reply(reply)) or isinstance(reply, Notice):
        return text
    raise UsageError("This command works only in an open conversation.", fix="moot chat continue CONVERSATION")
