"""The REPL on a screen: connects keys, composer, conversation and display, and runs actions one after another."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from prompt_toolkit.formatted_text import StyleAndTextTuples

from moot.cli.approvals.requests import decide
from moot.cli.console.output import Output
from moot.cli.repl.completion import ReplCompleter
from moot.cli.repl.composer import Composer, PromptHistory
from moot.cli.repl.conversation import InteractiveConversation
from moot.cli.repl.drafts import Draft, Drafts
from moot.cli.repl.inbox import watch_inbox
from moot.cli.repl.input import InputHandler
from moot.cli.repl.keys import KeyHandler, bindings, leader_hint, register_sequences, table
from moot.cli.repl.programs import NotificationKind, Notifier, clipboard_image, osc52, run_statusline
from moot.cli.repl.scrollback import RunDisplay, Scrollback, ScrollbackView
from moot.cli.repl.status import Status, current_status, status_line, truncate
from moot.cli.repl.terminal import Terminal, TerminalWriter
from moot.cli.terminal.look import look_of
from moot.cli.terminal.prompts.editor import edit_text
from moot.cli.terminal.prompts.items import Item
from moot.cli.terminal.prompts.pick import pick
from moot.commands import CommandContext
from moot.convert.files.attachments import readable_prompt
from moot.engine import Engine
from moot.errors import MootError
from moot.plugins.registry import attribute
from moot.types.approval import Approval
from moot.types.conversation import Conversation
from moot.types.message import Part
from moot.types.run import OnBusy, Run
from moot.types.shortcuts import chords_of

if TYPE_CHECKING:
    from moot.cli.approvals.decide import Decision

Notify = Callable[[NotificationKind, float], None]
"""Notifies the user of an event that came after this many seconds of waiting."""


class ScreenView(ScrollbackView):
    """The display of a conversation on the screen."""

    def __init__(
        self, engine: Engine, notify: Notify, scrollback: Scrollback, display: RunDisplay, terminal: Terminal, output: Output
    ) -> None:
        super().__init__(scrollback, display)
        self._engine, self._notify, self._terminal, self._output = engine, notify, terminal, output

    def ended(self, run: Run) -> None:
        seconds = self._display.finish(run)
        self._notify("failed" if run.status == "failed" else "done", seconds)
        self._terminal.touch()

    def changed(self) -> None:
        self._terminal.touch()

    async def decide(self, approval: Approval, conversation: Conversation) -> Decision:
        self._notify("waiting", self._display.elapsed)
        composer = self._terminal.composer
        decision = await self._terminal.suspend_for(
            partial(decide, self._engine, approval, conversation, self._output, draft=composer.text)
        )
        if decision.draft != composer.text:
            composer.replace(decision.draft)
        return decision


HINT = "/help · @file · !command · Esc stops"
TICK_SECONDS = 0.125
STATUS_SECONDS = 1.0
"""Minimum time between two runs of a custom status line program."""
_SETTINGS, _BACKGROUND = "moot.commands.settings", "moot.cli.repl.background"
"""Import paths, loaded when a key needs them, so that the first prompt does not wait for agents, tools and lists."""

T = TypeVar("T")
Action = Callable[[], Awaitable[object]]


class ReplScreen:
    """The REPL on a screen, with the interfaces `ReplActions` and `ReplHost`."""

    def __init__(self, context: CommandContext, group: TaskGroup, output: Output) -> None:
        register_sequences()
        self._context, self._group, self._output = context, group, output
        self.detaches = False
        """True if the user has left while runs continue in the background."""
        self._leaving = False
        self._scrollback = Scrollback(look_of(output))
        self._display = RunDisplay(self._scrollback)
        history = PromptHistory(context.engine.settings.home / "state" / "history.jsonl")
        self._composer = Composer(history=history, completer=ReplCompleter(context), directory=context.directory)
        self._chords = chords_of(context.engine.settings.keys)
        self._keys = KeyHandler(self._composer, self, self._chords)
        self._terminal = Terminal(
            TerminalWriter(colour=output.stdout_colour),
            self._composer,
            bindings(self._keys, self._composer, self._chords),
            finished=self._display.take,
            live=self._live,
            notes=self._notes,
            status=self._status,
            hint=self._hint,
            sign=self._scrollback.sign,
            vi=context.engine.settings.ui.get("vi") is True,
        )
        self.touch = self._terminal.touch
        view = ScreenView(context.engine, self._notify, self._scrollback, self._display, self._terminal, output)
        self._conversation = InteractiveConversation(context, group, view)
        self._input = InputHandler(
            context,
            self._conversation,
            self._scrollback,
            self._display,
            self,
            output,
            copy_to_terminal=self._copy_to_terminal,
            images=self._composer.images,
            has_menu=True,
        )
        self._notifier = Notifier(lambda: context.engine.runtime.settings.ui, self._terminal.writer.write_now)
        self._custom_status = ""
        """The output of a custom status line program."""
        self._drafts = Drafts(context.engine.settings.home / "state" / "drafts", context.directory)
        self._saved: tuple[str | None, Draft] = (None, Draft())
        """The saved draft and its conversation."""
        context.keys = "\n".join(f"{keys:34}{description}" for keys, description in table(self._chords))
        self._elsewhere = 0
        """Number of open approvals in other conversations."""
        self._pending = 0
        """Number of actions that are queued or running."""
        self._unsent: list[str] = []
        """Prompts that wait until a running action, such as a shell command, has ended."""
        self._queue, self._queued_actions = anyio.create_memory_object_stream[Action](100)
        self._actions = self._named_actions()

    def _named_actions(self) -> dict[str, Callable[[], object]]:
        """Return the actions of keys other than editing, by their name in the key table."""
        return {
            "exit": self._terminal.leave,
            "leave": self._start_leaving,
            "interrupt": lambda: self._group.start_soon(self._run_action, self._input.stop),  # ahead of all queued actions
            "edit_queued": lambda: self._enqueue(self._input.edit_queued),
            "drop_queued": lambda: self._enqueue(self._conversation.drop_queued),
            "cancel_edit": self._cancel_edit,
            "next_mode": self._next_mode,
            "next_model": lambda: self._enqueue(self._next_model),
            "models": lambda: self._enqueue(partial(self._input.command, "model", "")),
            "conversations": lambda: self._enqueue(partial(self._input.command, "continue", "")),
            "new": lambda: self._enqueue(partial(self._input.command, "new", "")),
            "rewind": lambda: self._enqueue(self._rewind),
            "editor": lambda: self._enqueue(self._edit),
            "expand": self._display.expand,
            "search": lambda: self._enqueue(self._search),
            "paste": lambda: self._enqueue(self._paste),
            "redraw": lambda: self._terminal.region.renderer.erase(),
            "suspend": lambda: self._terminal.region.suspend_to_background(),
        }

    async def run(self, conversation: str | None, prompt: Sequence[Part] = ()) -> None:
        """Send the prompt, then run until the user leaves."""
        for work in (self._terminal.draw, self._tick, self._run_actions, self._update_custom_status):
            self._group.start_soon(work)
        self._group.start_soon(watch_inbox, self._context, self._conversation, self.log, self._set_elsewhere)
        await self._conversation.open(conversation)
        self._restore_draft()
        if prompt:
            self._scrollback.prompted(readable_prompt(prompt))
            self._display.wait_for(self._current().model)
            self._enqueue(partial(self._input.prompt, prompt, ""))
        elif await self._conversation.unanswered():
            self._display.wait_for(self._current().model)
            self._enqueue(self._conversation.answer)
        await self._terminal.run()
        self._save_draft()

    def _start_leaving(self) -> None:
        if not self._leaving:  # otherwise the question is on the screen
            self._leaving = True
            self._group.start_soon(self._run_action, self.leave)

    async def leave(self, *, detaches: bool = False) -> None:
        try:
            if detaches:
                await attribute(f"{_BACKGROUND}:check_detach")(self._context.engine)
                choice = "detach"
            else:
                confirm: Callable[..., Awaitable[str]] = attribute(f"{_BACKGROUND}:confirm_exit")
                choice = await confirm(self._context.engine, self._output, self._terminal.suspend_for)
            if choice != "stay":
                self.detaches = choice == "detach"
                self._terminal.leave()
        finally:
            self._leaving = False

    def handle_signal(self, number: int) -> None:
        """Handle SIGINT like Ctrl+C, and end `run` at other signals."""
        if number == signal.SIGINT:
            self._keys.act("cancel")
            self._terminal.touch()
        else:
            self._terminal.leave()

    def log(self, line: str) -> None:
        """Show a log message or notice."""
        self._scrollback.say(line, "dim")
        self._terminal.touch()

    async def _run_actions(self) -> None:
        async for action in self._queued_actions:
            await self._run_action(action)
            self._pending -= 1

    async def _run_action(self, action: Action) -> None:
        """Run an action; show its error and continue."""
        try:
            await action()
        except MootError as error:
            self._scrollback.failed(error)
        self._terminal.touch()

    def _enqueue(self, action: Action) -> None:
        with suppress(anyio.WouldBlock):  # drop it: 100 actions are queued
            self._queue.send_nowait(action)
            self._pending += 1

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(TICK_SECONDS)
            if self._draft() != self._saved:
                await anyio.to_thread.run_sync(self._save_draft)
            if self._keys.tick() or (self._display.active and self._scrollback.look.motion):
                self._terminal.touch()

    def _current(self) -> Status:
        return current_status(self._context, self._conversation.conversation, queued=self.queued, elsewhere=self._elsewhere)

    def _live(self, height: int) -> Sequence[str]:
        columns = self._terminal.writer.size().columns
        if columns != self._scrollback.look.width:
            self._display.resize(columns)
        return self._display.live(height)

    def _status(self, width: int) -> StyleAndTextTuples:
        if self._custom_status:
            return [("class:status", truncate(self._custom_status, width))]
        return [*status_line(self._current(), width)]

    def _hint(self) -> str:
        """Return a hint for new users, or an empty string after the first prompt of a conversation."""
        return HINT if self._conversation.conversation is None and not self._display.active else ""

    async def _update_custom_status(self) -> None:
        """Run the program of `ui.statusline` whenever the status changes."""
        shown: Status | None = None
        while True:
            argv = self._context.engine.runtime.settings.ui.get("statusline")
            status = self._current()
            if isinstance(argv, list) and argv and status != shown:
                shown = status
                self._custom_status = await run_statusline([str(word) for word in argv], status.to_json())
                self._terminal.touch()
            await anyio.sleep(STATUS_SECONDS)

    def _notify(self, kind: NotificationKind, seconds: float) -> None:
        conversation = self._conversation.conversation
        title = conversation.title if conversation else ""
        focused = self._keys.focused
        self._group.start_soon(partial(self._notifier.notify, kind, title, seconds=seconds, focused=focused))
        self._notifier.progress(False)
        self._notifier.title(title)

    def _set_elsewhere(self, count: int) -> None:
        self._elsewhere = count
        self._terminal.touch()

    def _notes(self) -> Sequence[tuple[str, str]]:
        notes: list[tuple[str, str]] = []
        if unread := self._conversation.unread:
            notes.append(("class:queue", f"Will be sent at the answer's next step · {' '.join(unread[-1].text.split())}"))
        if self._unsent:
            notes.append(("class:queue", f"{len(self._unsent)} not sent yet · {' '.join(self._unsent[-1].split())}"))
        if queued := self._conversation.queued:
            last = " ".join(queued[-1].text.split())
            notes.append(("class:queue", f"{len(queued)} queued · Up to edit, Del to drop · {last}"))
        if self._keys.leading:
            notes.append(("class:note", leader_hint(self._chords)))
        if self._keys.note:
            notes.append(("class:note", self._keys.note))
        return notes

    @property
    def queued(self) -> int:
        return len(self._conversation.queued)

    @property
    def busy(self) -> bool:
        return self._conversation.live is not None

    def do(self, name: str) -> None:
        self._actions[name]()
        self._terminal.touch()

    def send(self, text: str, on_busy: OnBusy) -> None:
        self._terminal.region.vi_state.reset()  # back to Vi's insert mode
        waits = self._pending > 0  # the actions before it may change the conversation
        echoed = not waits and self._input.echo(text, on_busy)
        self._notifier.progress(self._display.active)
        self._unsent += [text] if waits else []

        async def carry_out() -> None:
            if waits:
                self._unsent.remove(text)
            await self._input.line(text, on_busy, echoed=echoed)

        self._enqueue(carry_out)
        self._terminal.touch()

    async def suspend_for(self, work: Callable[[], Awaitable[T]]) -> T:
        return await self._terminal.suspend_for(work)

    def compose(self, *texts: str) -> None:
        self._composer.give_back(texts)

    def _copy_to_terminal(self, text: str) -> bool:
        if sequence := osc52(text):
            self._terminal.writer.write_now(sequence)
        return bool(sequence)

    async def save(self) -> None:
        await anyio.to_thread.run_sync(self._save_draft)

    async def open(self, conversation: str | None) -> None:
        self._save_draft()
        self._cancel_edit()
        await self._conversation.open(conversation)
        self._restore_draft()

    def _draft(self) -> tuple[str | None, Draft]:
        composer = self._composer
        draft = Draft(composer.text, composer.pastes(), self._keys.stash, list(self._input.shell_output))
        return self._context.conversation, draft

    def _save_draft(self) -> None:
        """Save the draft. Delete the draft of a new conversation once it has an ID."""
        before, self._saved = self._saved, self._draft()
        conversation, draft = self._saved
        if before[0] != conversation:
            self._drafts.save(before[0], Draft())
        self._drafts.save(conversation, draft)

    def _restore_draft(self) -> None:
        if self._conversation.interrupted:
            self._scrollback.say("The last answer was interrupted. /retry resumes it.\n", "yellow")
        draft = self._drafts.restore(self._context.conversation)
        self._composer.replace(draft.text, draft.pastes)
        self._keys.stash = draft.stash
        self._input.restore(draft.shell_output)
        self._saved = self._draft()

    async def _edit(self) -> None:
        text = self._composer.full_text()
        edited = await self._terminal.suspend_for(lambda: edit_text(text, output=self._output))
        if edited is not None:
            self._composer.replace(edited.rstrip("\n"))

    async def _paste(self) -> None:
        self._composer.paste_image(*await clipboard_image())

    async def _rewind(self) -> None:
        if self._conversation.conversation is not None:
            await self._input.command("rewind", "")

    async def _search(self) -> None:
        texts = list(dict.fromkeys(reversed(self._composer.history.get_strings())))
        items = [Item(str(number), (" ".join(text.split()),)) for number, text in enumerate(texts)]
        picked = await self._terminal.suspend_for(lambda: pick(items, title="History", output=self._output))
        if picked is not None:
            self._composer.replace(texts[int(picked.item.key)])

    def _cancel_edit(self) -> None:
        self._input.edits = None

    def _next_mode(self) -> None:
        mode = attribute(f"{_SETTINGS}:next_mode")(self._current().mode)
        self._context.overrides.mode = mode
        self._enqueue(lambda: self._context.store_settings({"mode": mode}))

    async def _next_model(self) -> None:
        recent, model = await attribute(f"{_SETTINGS}:recent_models")(self._context), self._current().model
        next_ones = recent[recent.index(model) + 1 :] if model in recent else recent
        if others := [one for one in [*next_ones, *recent] if one != model]:
            await self._input.command("model", others[0])
