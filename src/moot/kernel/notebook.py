"""A notebook as a conversation: its cells are prompts and commands."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

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
    prompt_of,
)
from moot.engine import Engine
from moot.errors import Cancelled, MootError
from moot.features.exports import save_conversation, with_files
from moot.features.prompts.references import Place, attach_references
from moot.formats.notebook.outputs import markdown_bundle, record_of, text_bundle
from moot.guard.roots import with_folders
from moot.guard.terminal import clean
from moot.kernel.display import AnswerDisplay, Frontend
from moot.kernel.link import CELL, ConversationLink, cell_of
from moot.kernel.questions import Questions
from moot.library.live import LiveRun, RunSource
from moot.library.options import Asked
from moot.runtime.approvals.typed_answers import parse_number
from moot.types.approval import Answer
from moot.types.ids import new_id
from moot.types.message import text_part
from moot.types.run import Prompt, Run, Submitted

KEYS = """\
Notebook
  %NAME …                        In the first lines of a cell: the same as /NAME. The rest of the cell is the prompt.
  @file                          Attach a file, folder, page or resource.
  Run a cell again               Send its prompt again, on a new branch.
  Interrupt the kernel           Stop the answer."""

_MAGIC = re.compile(r"%([A-Za-z?][\w:-]*)(?:[ \t]+(.*))?")


def split_cell(code: str) -> tuple[list[tuple[str, str]], str]:
    """Return the commands in a cell, each with its name and argument, and the prompt after them."""
    commands: list[tuple[str, str]] = []
    rest = code.strip()
    while match := _MAGIC.match(rest):
        line, _, rest = rest.partition("\n")
        if (match := _MAGIC.fullmatch(line.rstrip())) is None:
            return commands, f"{line}\n{rest}".strip()
        commands.append((match[1], (match[2] or "").strip()))
        rest = rest.strip()
    if (typed := parse(rest)) is not None and rest != "?":
        return [*commands, typed], ""
    return commands, rest


class Notebook:
    """The conversation of one notebook. Cells are run one after another."""

    def __init__(self, engine: Engine, group: TaskGroup, frontend: Frontend, path: Path | None) -> None:
        """`path` is that of the notebook; None = unknown."""
        self.context = CommandContext(engine, str(Path.cwd()), keys=KEYS, without_conversation="Run a cell with a prompt first.")
        self.context.further_folders = []
        self._engine, self._group, self._frontend = engine, group, frontend
        self._link = ConversationLink(engine.store, engine.settings.home / "state", path)
        self._is_open = False
        self._edits: str | None = None
        """Id of the message that the next prompt replaces."""

    async def open(self) -> None:
        """Find the notebook's conversation, before the first cell and before completions."""
        if not self._is_open:
            found = await self._link.find()
            self.context.conversation = found.id if found is not None else None
            self._is_open = True

    async def run(self, code: str, cell: str) -> None:
        """Run a cell. Raise MootError if it fails, Cancelled if the answer was stopped. `cell` is the id of the cell; empty = unknown."""
        if self._engine.configuration is not None:
            await self._engine.configuration.refresh()
        await self.open()
        commands, prompt = split_cell(code)
        for name, argument in commands:
            await self._command(name, argument, cell)
        if prompt:
            await self._prompt(prompt, cell)

    async def _command(self, name: str, argument: str, cell: str) -> None:
        command = (await catalogue_of(self.context)).find(name, listing="%help lists all commands.")
        for reply in await command.run(self.context, argument):
            await self._reply(name, reply, cell)

    async def _reply(self, name: str, reply: Reply, cell: str) -> None:
        match reply:
            case Notice(text):
                self._frontend.show(text_bundle(clean(text)))
            case Choose():
                await self._choose(reply.command or name, reply, cell)
            case OpenConversation(conversation):
                await self._switch(conversation)
            case Compose(text, edits):
                self._edits = edits
                self._frontend.suggest(text)
            case Send():
                settings = {**reply.settings, "attended": True}
                await self._send(Prompt(reply.message(), settings=settings), replace(reply, settings=settings), cell)
            case Save(conversation, format):
                store = self._engine.store
                found = await store.conversations.get(conversation)
                path = await save_conversation(store, found, format, Path(self.context.directory))
                self._frontend.show(text_bundle(f"Exported to {clean(str(path))}"))
            case Copy(text):
                self._frontend.show(markdown_bundle(text))
            case Regenerate(resume):
                await self._regenerate(resume)
            case Quit():
                self._frontend.show(text_bundle("To leave, shut down the kernel or close the notebook."))

    async def _choose(self, name: str, reply: Choose, cell: str) -> None:
        shown = [f"{one.label or one.value} · {one.about}" if one.about else one.label or one.value for one in reply.choices]
        lines = [f"{number}. {line}" for number, line in enumerate(shown, 1)]
        self._frontend.show(text_bundle(clean("\n".join([reply.title, *lines]))))
        typed = (await self._frontend.ask(f"Choose 1 to {len(lines)}, or nothing: ") or "") if lines else ""
        if number := parse_number(typed, len(lines)):
            await self._command(name, reply.choices[number - 1].value, cell)

    async def _switch(self, conversation: str | None) -> None:
        found = await self._engine.store.conversations.get(conversation) if conversation is not None else None
        self.context.conversation = found.id if found is not None else None
        self._link.save(self.context.conversation)
        continues = f"This notebook now continues “{clean(found.title) or 'untitled'}”." if found is not None else ""
        words = continues or "The next prompt starts a new conversation."
        self._frontend.show(text_bundle(words))

    async def _prompt(self, text: str, cell: str) -> None:
        context, conversation = self.context, await self.context.current()
        folders = with_folders((), context.directory, context.further_folders or ())
        place = Place(context.engine.runtime, context.directory, conversation, context.overrides.agent or "", allowed_uris=folders)
        prompt, notes = await attach_references(Prompt((text_part(text),)), place)
        for note in notes:
            self._frontend.show(text_bundle(clean(note)))
        await self._send(prompt, Send("", settings={**prompt.settings, "attended": True}), cell)

    async def _send(self, prompt: Prompt, send: Send, cell: str) -> None:
        context = self.context
        prompt = prompt_of(context, send, prompt)
        client = f"{CELL}{cell}:{new_id()}" if cell else None
        edits, self._edits = self._edits or await self._earlier(cell), None
        prompt = replace(prompt, client_id=client, edits=edits, on_busy="interrupt" if edits else "queue")
        if context.conversation is None:
            prompt = replace(prompt, allowed_uris=with_folders((), context.directory, context.further_folders or ()))

        async def start() -> Submitted:
            submitted = await self._engine.runs.submit(prompt)
            context.take_folders()
            if context.conversation != submitted.conversation.id:
                context.conversation = submitted.conversation.id
                self._link.save(context.conversation)
            await context.store_settings({})
            return submitted

        await self._follow(start)

    async def _regenerate(self, resume: str | None) -> None:
        conversation = await self.context.require_current()

        async def start() -> Submitted:
            if resume is None:
                return await self._engine.runs.submit(prompt_of(self.context, Send(""), Prompt(())))
            run = await self._engine.store.records.run(resume)
            message = await self._engine.store.conversations.message(run.message)
            return Submitted(conversation, await self._engine.runs.resume(run.id), max(message.first_seq - 1, 0))

        await self._follow(start)

    async def _earlier(self, cell: str) -> str | None:
        """Return the prompt on the shown branch that was written in this cell, or None if there is none."""
        if not cell or self.context.conversation is None:
            return None
        branch = await self._engine.store.conversations.branch(self.context.conversation)
        for message in reversed(branch):
            if message.role == "user" and await cell_of(self._engine.store, message) == cell:
                return message.id
        return None

    async def _follow(self, start: Callable[[], Awaitable[Submitted]]) -> None:
        """Show a run until it ends. Raise MootError if it failed or can't continue here. If this is cancelled, the run is cancelled."""
        display = AnswerDisplay(self._frontend)
        questions = Questions(self._engine, self._frontend, display.refresh)

        async def on_approval(asked: Asked) -> Answer:
            return await questions.approve(asked.approval)

        live = LiveRun[None](self._engine, self._group, RunSource(start, None, on_approval, questions.reply))
        await live.start()
        run, failure, is_over = live.run, None, False
        display.start(run.message)
        questions.run = run.id
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(display.update)
                try:
                    async for event in live:
                        display.event(event)
                    is_over = True
                except MootError as error:  # raised below, because the group would wrap it
                    failure, is_over = error, True
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                if not is_over:
                    await self._engine.runs.cancel(run.id)
                    await self._engine.runs.wait(run.id)
                await live.aclose()
                await self._finish(display, run)
        if failure is not None:
            raise Cancelled("Stopped. The output so far is kept.") if isinstance(failure, Cancelled) else failure

    async def _finish(self, display: AnswerDisplay, run: Run) -> None:
        """Show the answer as it is stored, with the record from which it can be imported."""
        store = self._engine.store
        answer = await with_files(store, await store.conversations.message(run.message))
        prompt = [await with_files(store, await store.conversations.message(answer.parent))] if answer.parent is not None else []
        conversation = await store.conversations.get(run.conversation)
        display.show(answer.parts, record_of(conversation, [*prompt, answer]))
