"""Handling of typed lines: prompts, slash commands, shell commands and exit words. Independent of the terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from moot.agents.known import agent_named
from moot.cli.console.output import Output
from moot.cli.context.configuration import apply
from moot.cli.models import provide_weights, wants_weights
from moot.cli.repl.branch import QueuedPrompt
from moot.cli.repl.conversation import InteractiveConversation
from moot.cli.repl.programs import ShellCommand, copy_with_program
from moot.cli.repl.scrollback import RunDisplay, Scrollback
from moot.cli.repl.status import current_status
from moot.cli.terminal.prompts.items import Column, Item
from moot.cli.terminal.prompts.pick import pick
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
    Save,
    Send,
    catalogue_of,
    parse,
)
from moot.config.loader import Loaded
from moot.errors import ConfigError, MootError, UsageError
from moot.features.exports import save_conversation
from moot.features.prompts.references import Place, attach_references
from moot.guard.roots import with_folders
from moot.types.message import Part, text_part
from moot.types.run import OnBusy, Prompt

T = TypeVar("T")

EXIT_WORDS = frozenset({"q", "exit", "quit"})


class ReplHost(Protocol):
    """The terminal operations that the input handler needs."""

    async def suspend_for(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run work that needs the terminal for itself."""
        ...

    def compose(self, *texts: str) -> None:
        """Insert texts before the text in the composer."""

    def touch(self) -> None:
        """Request a redraw."""

    async def save(self) -> None:
        """Save unsent text to disk."""

    async def leave(self, *, detaches: bool = False) -> None:
        """Leave the conversation, unless an answer is running and the user decides to stay.

        With `detaches`, let the answer continue in the background without asking. Raise UsageError if that is not possible.
        """

    async def open(self, conversation: str | None) -> None:
        """Switch to another conversation; None starts a new one."""


def _is_command(line: str) -> bool:
    """Return True for a slash command or a shell command."""
    return line.startswith("!") or parse(line) is not None


class InputHandler:
    """Handles typed lines, one at a time. Errors are raised as MootError."""

    def __init__(
        self,
        context: CommandContext,
        conversation: InteractiveConversation,
        scrollback: Scrollback,
        display: RunDisplay,
        host: ReplHost,
        output: Output,
        *,
        copy_to_terminal: Callable[[str], bool] = lambda _: False,
        images: Callable[[str], Sequence[Part]] = lambda _: (),
        has_menu: bool = False,
    ) -> None:
        """`copy_to_terminal` copies a text through the terminal and returns False if that is not possible. `images` returns the pasted
        images in a text. With `has_menu`, the beginning of a command's name selects the first command of the menu, even if Enter was
        pressed before the menu appeared.
        """
        self._images = images
        self._copy_to_terminal, self._has_menu = copy_to_terminal, has_menu
        self._context, self._conversation, self._host, self._output = context, conversation, host, output
        self._scrollback, self._display = scrollback, display
        self._configuration = context.engine.configuration
        if self._configuration is not None:
            self._configuration.on_change = self._configuration_changed
        self._shell: ShellCommand | None = None
        self.shell_output: list[Part] = []
        """Output of shell commands, sent to the model with the next prompt."""
        self.edits: str | None = None
        """ID of the message that the next prompt replaces."""
        self._typed = ""
        """The command that is being carried out, as typed."""

    def echo(self, text: str, on_busy: OnBusy = "queue") -> bool:
        """Show a command, or a prompt whose answer can start now, before it is carried out. Return True if it was shown."""
        line = text.strip()
        if line in EXIT_WORDS:
            return False
        if _is_command(line):
            self._scrollback.say(f"{self._scrollback.sign}{line}", "dim")
            return True
        if self._display.active or self._conversation.queued or on_busy == "steer" or self.edits is not None:
            return False
        self._scrollback.prompted(text)
        self._display.wait_for(self._model())
        return True

    async def line(self, text: str, on_busy: OnBusy = "queue", *, echoed: bool = False) -> None:
        """Process a typed line: a prompt, a command or an exit word. `echoed` is the result of `echo`."""
        if self._configuration is not None:
            await self._configuration.refresh()
        line = text.strip()
        typed = parse(line)
        if not echoed and _is_command(line):
            self.echo(text)
        if line in EXIT_WORDS:
            await self._host.leave()
        elif line.startswith("!") and line.strip("! \n"):
            await self._run_shell(line)
        elif typed is not None:
            self._typed = line
            await self.command(*typed)
        else:
            await self.prompt((), text, on_busy, echoed=echoed)

    async def prompt(self, parts: Sequence[Part], text: str, on_busy: OnBusy = "queue", *, echoed: bool = True) -> None:
        """Send a prompt: shell output, the parts and the text. Attach the content that the last text refers to."""
        try:
            context, conversation = self._context, self._conversation.conversation
            folders = with_folders((), context.directory, context.further_folders or ())
            agent = context.overrides.agent or ""
            place = Place(context.engine.runtime, context.directory, conversation, agent, allowed_uris=folders)
            typed = Prompt((*parts, *self._images(text), *((text_part(text),) if text else ())), on_busy=on_busy)
            prompt, notes = await attach_references(typed, place)
            for note in notes:
                self._scrollback.say(f"{note}\n", "yellow")
            await self._provide_weights(self._next_model())
            edits, self.edits = self.edits, None
            extra = tuple(self.shell_output)
            send = Send("", settings=prompt.settings)
            message = (*extra, *prompt.parts)
            await self._conversation.send(message, text, prompt.on_busy, echoed=echoed, edits=edits, extra=extra, command=send)
            self.shell_output.clear()
        except MootError:
            if echoed:
                self._display.wait_for(None)
            self._host.compose(text)
            raise

    async def command(self, name: str, argument: str) -> None:
        """Run a slash command and carry out its replies."""
        catalogue = await catalogue_of(self._context)
        if self._has_menu and not argument and name not in catalogue and name not in catalogue.refused:
            name = next((one.name for one in catalogue.starting_with(name)), name)
        command = catalogue.find(name)
        for reply in await command.run(self._context, argument):
            await self._reply(name, reply)

    async def stop(self) -> None:
        """Stop the running shell command, otherwise the answer. Prompts that were not sent return to the composer."""
        if self._shell is not None:
            await self._shell.stop()
        else:
            await self.give_back(await self._conversation.interrupt())

    async def edit_queued(self) -> None:
        """Return the last queued prompt to the composer."""
        if (prompt := await self._conversation.drop_queued()) is not None:
            await self.give_back([prompt])

    async def give_back(self, prompts: Sequence[QueuedPrompt]) -> None:
        """Return prompts to the composer, and shell output to the next prompt."""
        if prompts:
            self.shell_output[:0] = [part for prompt in prompts for part in prompt.extra]
            self._host.compose(*(prompt.text for prompt in prompts))
            await self._host.save()

    def _configuration_changed(self, change: Loaded | ConfigError) -> None:
        if isinstance(change, Loaded):
            apply(change, self._output)
            self._scrollback.say("Configuration reloaded.", "dim")
        else:
            self._scrollback.failed(change)
            self._scrollback.say("The previous configuration stays active.", "yellow")
        self._host.touch()

    def _next_model(self, named: str | None = None) -> str:
        """Return the model of the next prompt; empty if an outside agent chooses it. `named` is the agent that a command specifies."""
        settings, conversation = self._context.engine.runtime.settings, self._conversation.conversation
        overrides = self._context.overrides
        agent = named or overrides.agent or (conversation.agent if conversation else "default")
        model = "" if named else overrides.model or (conversation.next_model if conversation and not overrides.agent else "")
        found = agent_named(settings, agent)
        if found is None or found.agent_type != "moot":
            return ""
        return model or found.model

    def _model(self) -> str:
        return current_status(self._context, self._conversation.conversation, queued=0).model

    async def _reply(self, name: str, reply: Reply) -> None:
        match reply:
            case Notice(text, style):
                self._scrollback.say(f"{text}\n", style)
            case Choose():
                await self._choose(reply.command or name, reply)
            case OpenConversation(conversation):
                await self._host.open(conversation)
            case Compose(text, edits):
                self._host.compose(text)
                self.edits = edits
                if edits is not None:
                    self._scrollback.say("Enter sends it as a new branch; Ctrl+C cancels.\n", "dim")
            case Send() | Save() | Copy():
                await self._carry_out(reply)
            case Regenerate(resume):
                self._display.wait_for(self._model())
                await self._conversation.answer(resume)
            case Quit(detaches):
                await self._host.leave(detaches=detaches)

    async def _carry_out(self, reply: Send | Save | Copy) -> None:
        if isinstance(reply, Send):
            await self._send(reply)
        elif isinstance(reply, Save):
            await self._save(reply.conversation, reply.format)
        else:
            await self._copy(reply.text)

    async def _send(self, send: Send) -> None:
        await self._provide_weights(send.model or self._next_model(send.agent))
        parts, extra = (*self.shell_output, *self._images(send.text), *send.message()), tuple(self.shell_output)
        self._display.wait_for(self._model())
        try:
            is_shown = send.text == self._typed and self._conversation.live is None
            await self._conversation.send(parts, send.text, echoed=is_shown, extra=extra, command=send)
        except MootError:
            self._display.wait_for(None)
            raise
        self.shell_output.clear()

    async def _provide_weights(self, model: str) -> None:
        """Download the model's weights if they are missing."""
        providers = self._context.engine.providers
        if model and await wants_weights(providers, model):
            await self._host.suspend_for(partial(provide_weights, providers, model, self._output, consent=False))

    async def _save(self, conversation: str, format: str) -> None:
        store = self._context.engine.store
        path = await save_conversation(store, await store.conversations.get(conversation), format, Path(self._context.directory))
        self._scrollback.say(f"Exported to {path}\n", "dim")

    async def _copy(self, text: str) -> None:
        """Copy a text through the terminal and with a program, because moot cannot know which of them reaches the user's clipboard."""
        ways = [way for way in ("the terminal" if self._copy_to_terminal(text) else "", await copy_with_program(text)) if way]
        if not ways:
            raise UsageError("No clipboard found.", fix="Install wl-copy, xclip, xsel or pbcopy.")
        self._scrollback.say(f"Copied {len(text):,} characters, using {' and '.join(ways)}.\n", "dim")

    async def _choose(self, name: str, reply: Choose) -> None:
        items = [Item(one.value, (one.label or one.value, one.about)) for one in reply.choices]
        columns = (Column(width=24, grows=True), Column(width=40, rank=1))
        picked = await self._host.suspend_for(lambda: pick(items, title=reply.title, output=self._output, columns=columns))
        if picked is not None:
            await self.command(name, picked.item.key)

    async def _run_shell(self, line: str) -> None:
        private = line.startswith("!!")
        command = line.lstrip("!").strip()

        def say(text: str) -> None:
            self._scrollback.say(text)
            self._host.touch()

        self._shell = ShellCommand(command, self._context.directory, say)
        try:
            result = await self._shell.run()
        finally:
            self._shell = None
        if not private:
            self.shell_output.append(result.part())
            await self._host.save()
        status = "" if result.code == 0 else f"exit code {result.code} · " if result.code > 0 else "stopped · "
        self._scrollback.say(f"{status}{'not sent to the model' if private else 'sent to the model with your next prompt'}\n", "dim")

    def restore(self, shell_output: Sequence[Part]) -> None:
        """Restore shell output from a closed terminal; it is sent with the next prompt."""
        self.shell_output = list(shell_output)
        if shell_output:
            commands = "a shell command" if len(shell_output) == 1 else f"{len(shell_output)} shell commands"
            self._scrollback.say(f"The output of {commands} will be sent with your next prompt.\n", "dim")
