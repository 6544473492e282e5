"""Custom commands: fill a command's template with the arguments, and send the result or put it into the composer."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from moot.commands.command import BaseCommand, Choice, CommandContext, Compose, Notice, Reply, Send
from moot.config.agents.project import repository_root
from moot.convert.files.attachments import local_file
from moot.errors import UsageError
from moot.features.prompts.references import Place, read_references
from moot.guard.hidden import spelled_out
from moot.runtime.runtime import Runtime
from moot.types.agent import McpServer
from moot.types.canonical import Json, JsonObject
from moot.types.command import CommandDefinition, CommandFacts, CommandParameter, argument_names
from moot.types.conversation import Conversation
from moot.types.hooks import HOOKS
from moot.types.mcp import McpPrompt
from moot.types.run import References
from moot.types.templates import fill_line, variables_in
from moot.types.workflow import Workflow, uses_arguments

_PLACEHOLDER = re.compile(r"\$(\w+)")
_TOKEN = re.compile(r"!`([^`\n]+)`|\$(\w+)")
MAX_LINES = 20
"""Maximum number of shell command lines in a custom command."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """A command's text with the arguments filled in, and the shell lines to run before the text is sent."""

    text: str
    lines: tuple[str, ...] = ()


def expand(definition: CommandDefinition, template: str, argument: str, *, file: str = "", words: Sequence[str] | None = None) -> Expanded:
    """Fill in a template of the command. Raise UsageError if an argument is missing or a shell line can't be quoted safely.

    `file` is the path of the open file. `words` are the words of the argument if it has already been split. If the template has no
    placeholder for the arguments, they are appended as a last paragraph.
    """
    values = _values(definition, argument, file, words)
    lines: list[str] = []

    def filled(found: re.Match[str]) -> str:
        if found[1] is None:
            return values.get(found[2], found[0])
        lines.append(_shell_line(definition.facts.name, found[1], values))
        return f"`{lines[-1]}`"

    text = _TOKEN.sub(filled, template)
    takes = any(name in values and name != "FILE" for name in _PLACEHOLDER.findall(template))
    if len(lines) > MAX_LINES:
        raise UsageError(f"The command /{definition.facts.name} has more than {MAX_LINES} shell lines.")
    if argument and not takes:
        text = f"{text}\n\n{argument}"
    if lines:
        text = f"{text}\n\n(The output of each shell line that is quoted above was sent before this message.)"
    return Expanded(text, tuple(lines))


def _values(definition: CommandDefinition, argument: str, file: str, words: Sequence[str] | None) -> dict[str, str]:
    words = _words(argument) if words is None else [*words]
    values = {"ARGUMENTS": argument, "FILE": file, **{str(at): "" for at in range(1, 10)}}
    values |= {str(at): word for at, word in enumerate(words[:9], 1)}
    parameters = definition.facts.parameters
    for at, parameter in enumerate(parameters):
        given = words[at : at + 1] if at + 1 < len(parameters) else [" ".join(words[at:])] if words[at:] else []
        values[parameter.name] = _value(definition, parameter, given[0] if given else "")
    return values


def _value(definition: CommandDefinition, parameter: CommandParameter, given: str) -> str:
    facts = definition.facts
    if not given and parameter.required:
        raise UsageError(f"The argument {parameter.name!r} is missing.", fix=f"Usage: /{facts.name} {facts.argument}")
    if given and parameter.choices and given not in parameter.choices:
        raise UsageError(f"Invalid {parameter.name} {given!r}.", fix=f"Choose one of: {', '.join(parameter.choices)}.")
    return given or parameter.default


def _words(argument: str) -> list[str]:
    try:
        return shlex.split(argument)
    except ValueError:  # such as an apostrophe in ordinary text
        return argument.split()


def _shell_line(name: str, template: str, values: Mapping[str, str]) -> str:
    """Return a shell line with its placeholders replaced and quoted. Shell variables are kept."""
    if unsafe := next(variables_in(template), None):
        raise UsageError(f"The shell line {template!r} of /{name} can't contain {{{{{unsafe}}}}}.")
    used = {found for found in _PLACEHOLDER.findall(template) if found in values}
    marked = _PLACEHOLDER.sub(lambda found: f"{{{{p{found[1]}}}}}" if found[1] in used else found[0], template)
    try:
        line = fill_line(marked, {f"p{one}": values[one] for one in used}) if used else template
    except ValueError as error:
        raise UsageError(f"The shell line {template!r} of /{name} can't be used: {error}") from error
    if unsafe := next(variables_in(line), None):  # text in an argument that a hook would replace as one of its variables
        raise UsageError(f"An argument of /{name} can't contain {{{{{unsafe}}}}}, because a shell line uses it.")
    return line


def hooks_of(lines: Sequence[str], calls: Sequence[JsonObject] = (), command: str = "") -> JsonObject:
    """Return run settings so that a command's shell lines, followed by `calls`, are run before the first model call. The conversation's
    permissions apply. `calls` are those of `References`.
    """
    hooks: list[Json] = [*({"tool": "shell", "arguments": {"command": line}, "command": command} for line in lines), *calls]
    return {HOOKS: {"before_run": hooks}} if hooks else {}


@dataclass(frozen=True, slots=True)
class Situation:
    """Folder, conversation and open file of the caller."""

    runtime: Runtime
    """The runtime of the process that runs the command."""
    folder: str = ""
    """Working directory; empty = none."""
    conversation: Conversation | None = None
    """None if no message has been sent yet."""
    file: str = ""
    """Path of the open file; empty = none."""
    attended: bool = True
    """True if a person is sending the prompt right now."""
    agent: str = ""
    """Name of the agent that the prompt is sent to; empty = the conversation's agent."""
    mode: str = ""
    """Mode of the prompt; empty = the conversation's mode."""
    words: tuple[str, ...] | None = None
    """The words of the argument if it has already been split."""
    replaced: tuple[bool, bool] = (False, False)
    """Two flags: whether the caller's agent replaces the command's, and whether the caller's model replaces the command's."""


class CustomCommand(BaseCommand):
    """A command from a file, the configuration or an MCP server."""

    def __init__(self, definition: CommandDefinition) -> None:
        self.definition = definition
        facts = definition.facts
        self.help, self.argument, self.category, self.type = facts.help, facts.argument, facts.category, facts.type
        self.aliases, self.parameters, self.requires = facts.aliases, facts.parameters, facts.requires
        self.agent, self.examples, self.origin = facts.agent, facts.examples, facts.origin

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        if not self.parameters:
            return ()
        first, *others = self.parameters
        needs_more = any(one.required for one in others)
        return [Choice(value, about=first.description, needs_more=needs_more) for value in first.choices]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        current = await context.current()
        folder, runtime = (current.directory if current is not None else "") or context.directory, context.engine.runtime
        agent, model = context.overrides.agent, context.overrides.model
        replaced = (agent is not None, model is not None) if context.options_win else (False, False)
        situation = Situation(runtime, folder, current, context.file, context.attended, agent or "", words=context.words, replaced=replaced)
        return await self.replies(situation, argument)

    async def replies(self, situation: Situation, argument: str) -> Sequence[Reply]:
        """Return the replies that send or insert the text. Raise UsageError if the command can't be used here or an argument is missing."""
        definition, name = self.definition, self.definition.facts.name
        _check_requirements(definition, situation)
        if self.type == "workflow":
            return [self._workflow(situation, argument)]
        expanded = expand(definition, definition.prompt, argument, file=situation.file, words=situation.words)
        if self.type == "insert":
            if expanded.lines:
                raise UsageError(f"/{name} can't run shell lines, because it only inserts text.")
            return [Compose(expanded.text)]
        agent, model = self._choice(situation)
        found = await _referenced(situation, expanded.text, agent or situation.agent)
        notes = [Notice(note, "yellow") for note in found.notes]
        hooks = hooks_of(expanded.lines, found.calls, name)
        return [*notes, Send(found.text, found.parts, agent, model, None, hooks)]

    def _choice(self, situation: Situation) -> tuple[str | None, str | None]:
        """Return the agent and the model that the command chooses for its prompt."""
        agent, model = situation.replaced
        return None if agent else self.agent or None, None if model else self.definition.model or None

    def _workflow(self, situation: Situation, argument: str) -> Send:
        """Return the prompt that starts a workflow.
        If no step has a placeholder for the argument, the argument is passed to the first step.
        """
        name, steps = self.definition.facts.name, self.definition.steps
        if argument and not uses_arguments(steps, [each for each in argument_names(self.parameters) if each != "FILE"]):
            steps = (replace(steps[0], prompt=f"{steps[0].prompt}\n\n$ARGUMENTS"), *steps[1:])
        values = _values(self.definition, argument, situation.file, situation.words)
        typed = f"/{name} {argument if situation.words is None else shlex.join(situation.words)}".strip()
        settings = Workflow(name, steps, values, situation.attended).to_settings()
        return Send(typed, (), *self._choice(situation), None, settings)


async def _referenced(situation: Situation, text: str, agent: str) -> References:
    """Return the content that a text refers to with `@`."""
    return await read_references(
        text, Place(situation.runtime, situation.folder, situation.conversation, agent, situation.attended, situation.mode)
    )


def _check_requirements(definition: CommandDefinition, situation: Situation) -> None:
    name, requires = definition.facts.name, definition.facts.requires
    if "conversation" in requires and situation.conversation is None:
        raise UsageError(f"/{name} needs a conversation with messages.", fix="Send a message first.")
    if not situation.folder and ("folder" in requires or "repository" in requires):
        raise UsageError(f"/{name} needs a conversation with a folder.")
    if "repository" in requires and not repository_root(situation.folder):
        raise UsageError(f"/{name} needs a Git repository, but {situation.folder} is not in one.")
    if "file" in requires and not situation.file:
        raise UsageError(f"/{name} needs an open file.", fix="Open one on the page, or specify it with --file.")


class McpPromptCommand(CustomCommand):
    """A prompt of an MCP server."""

    def __init__(self, server: McpServer, prompt: McpPrompt) -> None:
        self._server, self._prompt = server, prompt
        argument = " ".join(f"<{one.name}>" if one.required else f"[{one.name}]" for one in prompt.parameters)
        about = " ".join(spelled_out(prompt.description).split()) or f"The prompt {prompt.name!r} of the MCP server {server.name!r}"
        facts = CommandFacts(
            mcp_command_name(server, prompt), about, argument, "mcp", parameters=prompt.parameters, origin=f"MCP server {server.name}"
        )
        super().__init__(CommandDefinition(facts))

    async def replies(self, situation: Situation, argument: str) -> Sequence[Reply]:
        if situation.runtime.mcp is None:
            raise UsageError(f"The MCP server {self._server.name!r} is not available in this process.")
        values = _values(self.definition, argument, "", situation.words)
        arguments = {one.name: values[one.name] for one in self.parameters if values[one.name]}
        found = await situation.runtime.mcp.prompt(self._server, self._prompt.name, arguments, situation.folder)
        files = tuple(local_file(file.data, file.name, file.media_type) for file in found.files)
        return [Send(found.text, files)]


def mcp_command_name(server: McpServer, prompt: McpPrompt) -> str:
    """Return the name of the command for a prompt: `SERVER:PROMPT`."""
    return f"{server.name}:{re.sub(r'[^A-Za-z0-9_-]+', '-', prompt.name).strip('-') or 'prompt'}"
