"""The REPL at a terminal: keys and lines become deeds, what happens becomes a screen."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import anyio
from anyio.abc import TaskGroup

from moot.cli.asking import answer_to
from moot.cli.output import Output
from moot.cli.picking.items import Column, Item
from moot.cli.picking.picking import pick
from moot.cli.repl.completing import Completions
from moot.cli.repl.composer import Composer
from moot.cli.repl.history import TypedHistory
from moot.cli.repl.keys import bindings, know_more_keys, table
from moot.cli.repl.looks import Look
from moot.cli.repl.paper import Paper
from moot.cli.repl.pen import Pen
from moot.cli.repl.status import Standing, branch_of, status_line
from moot.cli.repl.talk import Talk
from moot.cli.repl.terminal import Terminal
from moot.commands import Answer as Again
from moot.commands import Choose, Compose, Go, Leave, Reply, Say, Situation, find, parse
from moot.commands.mode import next_mode
from moot.commands.models import recent_models
from moot.errors import MootError
from moot.types.approval import Answer, Approval
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.part import text_part
from moot.types.run import OnBusy, Run

__all__ = ["Desk"]

LEAVING = 2.0
"""Seconds within which a second Ctrl+C leaves."""
TICK = 0.125
GOODBYES = frozenset({"q", "exit", "quit"})


class Desk:
    """Implements `talk.Face` and `keys.Acts`."""

    def __init__(self, situation: Situation, group: TaskGroup, output: Output) -> None:
        know_more_keys()
        self.leading = False
        self._situation, self._group, self._output = situation, group, output
        self._pen = Pen(colour=output.stdout_colour)
        self._paper = Paper(Look(self._pen.size().columns, output.stdout_colour))
        self._talk = Talk(situation, group, self)
        home = situation.engine.settings.home
        self._composer = Composer(history=TypedHistory(home / "state" / "history.jsonl"), completer=Completions(situation))
        self._terminal = Terminal(
            self._pen,
            self._composer,
            bindings(self, self._composer),
            finished=self._paper.take,
            live=self._live,
            notes=self._notes,
            status=self._status,
            sign="› " if self._paper.look.unicode else "> ",
        )
        situation.keys = "\n".join(f"{shown:32}{words}" for shown, words in table())
        self._deeds, self._todo = anyio.create_memory_object_stream[Callable[[], Awaitable[None]]](100)
        self._stash = ""
        self._pressed_at = 0.0
        """When Ctrl+C said that another one leaves; 0 = it did not."""
        self._note = ""
        self._focused: bool | None = None
        self._branch = branch_of(situation.directory)

    # ── running ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self, conversation: str | None, first: Sequence[Callable[[], Awaitable[None]]] = ()) -> None:
        """Until the person leaves."""
        for work in (self._terminal.draw, self._tick, self._work):
            self._group.start_soon(work)
        await self._talk.open(conversation)
        for deed in first:
            self._do(deed)
        await self._terminal.run()

    async def _work(self) -> None:
        """Does one thing after the other; what fails is said, and the REPL goes on."""
        async for deed in self._todo:
            try:
                await deed()
            except MootError as error:
                self._paper.failed(error)
            self._terminal.touch()

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(TICK if self._paper.look.motion else 1.0)
            if self._paper.moves and self._paper.look.motion:
                self._terminal.touch()
            if self._pressed_at and time.monotonic() - self._pressed_at > LEAVING:
                self._pressed_at, self._note = 0.0, ""
                self._terminal.touch()

    def _do(self, deed: Callable[[], Awaitable[None]]) -> None:
        with suppress(anyio.WouldBlock):  # a hundred things wait already
            self._deeds.send_nowait(deed)

    # ── what is on the screen ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _live(self, height: int) -> Sequence[str]:
        columns = self._pen.size().columns
        if columns != self._paper.look.width:
            self._paper.resize(columns)
        return self._paper.live(height)

    def _notes(self) -> Sequence[tuple[str, str]]:
        notes: list[tuple[str, str]] = []
        if queued := self._talk.queued:
            last = " ".join(queued[-1].text.split())
            notes.append(("class:queue", f"{len(queued)} queued · Up to edit, Del to drop · {last}"))
        if self.leading:
            notes.append(("class:note", "Ctrl+X: e editor · s steer · n new · m model · l conversations"))
        if self._note:
            notes.append(("class:note", self._note))
        return notes

    def _status(self, width: int) -> str:
        return status_line(self.standing(), width)

    def standing(self) -> Standing:
        """What the status line is made of."""
        situation, wishes = self._situation, self._situation.wishes
        settings = situation.engine.runtime.settings
        conversation = self._talk.conversation
        return Standing(
            model=wishes.model or (conversation.model if conversation else "") or settings.models.main or "no model yet",
            mode=wishes.mode or settings.permissions.mode,
            agent=wishes.agent or (conversation.agent if conversation else "default"),
            directory=situation.directory,
            branch=self._branch,
            title=conversation.title if conversation else "",
            conversation=situation.conversation,
            context=conversation.context_usage if conversation else None,
            **({"usage": conversation.usage} if conversation else {}),
            cost=conversation.cost if conversation else None,
            unpriced=conversation.unpriced_runs if conversation else 0,
            queued=len(self._talk.queued),
            effort=wishes.effort or "",
        )

    # ── what happens (talk.Face) ──────────────────────────────────────────────────────────────────────────────────────────────────

    def prompted(self, text: str) -> None:
        self._paper.prompted(text)
        self._terminal.touch()

    def message(self, message: Message) -> None:
        self._paper.message(message)

    def began(self, run: str) -> None:
        self._paper.began()
        self._terminal.touch()

    def event(self, event: Event) -> None:
        self._paper.event(event)
        self._terminal.touch()

    def ended(self, run: Run) -> None:
        self._paper.ended(run)
        self._branch = branch_of(self._situation.directory)
        self._terminal.touch()

    def failed(self, error: MootError) -> None:
        self._paper.failed(error)
        self._terminal.touch()

    def changed(self) -> None:
        self._terminal.touch()

    async def decide(self, approval: Approval, conversation: Conversation) -> Answer | None:
        return await self._terminal.aside(lambda: answer_to(approval, conversation.directory, self._output))

    # ── keys (keys.Acts) ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def touched(self) -> None:
        pass

    def focus(self, has: bool) -> None:
        self._focused = has

    def act(self, name: str) -> None:
        getattr(self, f"_on_{name}")()

    def _on_enter(self) -> None:
        composer = self._composer
        state = composer.complete_state
        if state is not None and state.current_completion is not None:
            composer.apply_completion(state.current_completion)
        elif composer.document.current_line_before_cursor.endswith("\\") and composer.document.is_cursor_at_the_end_of_line:
            composer.delete_before_cursor()
            composer.newline(copy_margin=False)
        else:
            self._send("queue")

    def _on_steer(self) -> None:
        self._send("steer")

    def _on_newline(self) -> None:
        self._composer.newline(copy_margin=False)

    def _on_stop(self) -> None:
        if self._composer.complete_state is not None:
            self._composer.cancel_completion()
        else:
            self._group.start_soon(self._interrupt)

    def _on_cancel(self) -> None:
        if self._composer.text:
            self._stash = self._composer.whole()
            self._composer.put("")
            self._note = "put aside; Up brings it back"
        elif time.monotonic() - self._pressed_at < LEAVING:
            self.leave()
        else:
            live = self._talk.live is not None
            self._pressed_at = time.monotonic()
            self._note = "stopping; Ctrl+C again leaves" if live else "Ctrl+C again leaves"
            self._group.start_soon(self._interrupt)

    def _on_end(self) -> None:
        if self._composer.text:
            self._composer.delete()
        else:
            self.leave()

    def _on_up(self) -> None:
        composer = self._composer
        if composer.complete_state is None and not composer.text and self._talk.queued:
            self._do(self._take_back)
        elif composer.complete_state is None and not composer.text and self._stash:
            composer.put(self._stash)
            self._stash, self._note = "", ""
        else:
            composer.auto_up()

    def _on_down(self) -> None:
        self._composer.auto_down()

    def _on_delete(self) -> None:
        if self._composer.text:
            self._composer.delete()
        elif self._talk.queued:
            self._do(self._drop)

    def _on_complete(self) -> None:
        if self._composer.complete_state is not None:
            self._composer.complete_next()
        else:
            self._composer.start_completion(select_first=False, insert_common_part=True)

    def _on_mode(self) -> None:
        self._situation.wishes.mode = next_mode(self.standing().mode)  # type: ignore[arg-type]

    def _on_model(self) -> None:
        self._do(self._next_model)

    def _on_models(self) -> None:
        self._do(lambda: self._command("model", ""))

    def _on_conversations(self) -> None:
        self._do(lambda: self._command("continue", ""))

    def _on_new(self) -> None:
        self._do(lambda: self._command("new", ""))

    def _on_redraw(self) -> None:
        self._terminal.region.renderer.erase()

    def _on_suspend(self) -> None:
        self._terminal.region.suspend_to_background()

    # ── deeds ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def leave(self) -> None:
        """Ends `run`."""
        self._terminal.leave()

    def _send(self, on_busy: OnBusy) -> None:
        text = self._composer.whole()
        if not text.strip():
            self._composer.put("")
            return
        self._composer.take()
        line = text.strip()
        typed = parse(line)
        if line in GOODBYES:
            self.leave()
        elif typed is not None:
            self._paper.say(f"› {line}", "dim")
            self._do(lambda: self._command(*typed))
        else:
            self._prompt(text, on_busy)
        self._terminal.touch()

    def _prompt(self, text: str, on_busy: OnBusy) -> None:
        if self._talk.live is None and not self._talk.queued:
            self._paper.prompted(text)
            self._paper.waits(self.standing().model)
        self._do(lambda: self._submit(text, on_busy))

    async def _submit(self, text: str, on_busy: OnBusy) -> None:
        try:
            await self._talk.send((text_part(text),), text, on_busy)
        except MootError:
            self._paper.gave_up()
            if not self._composer.text:
                self._composer.put(text)
            raise

    async def _interrupt(self) -> None:
        try:
            await self._talk.interrupt()
        except MootError as error:
            self.failed(error)

    async def _take_back(self) -> None:
        if text := await self._talk.drop():
            self._composer.put(text)

    async def _drop(self) -> None:
        await self._talk.drop()

    async def _next_model(self) -> None:
        recent = await recent_models(self._situation)
        model = self.standing().model
        if others := [one for one in recent if one != model]:
            later = recent[recent.index(model) + 1 :] if model in recent else recent
            self._situation.wishes.model = (later or others)[0]

    async def _command(self, name: str, argument: str) -> None:
        for reply in await find(name).run(self._situation, argument):
            await self._reply(name, reply)

    async def _reply(self, name: str, reply: Reply) -> None:
        match reply:
            case Say(text, style):
                self._paper.say(f"{text}\n", style)
            case Choose():
                await self._choose(name, reply)
            case Go(conversation):
                await self._talk.open(conversation)
                self._paper.say("a new conversation" if conversation is None else "", "dim")
            case Compose(text):
                self._composer.put(text)
            case Again(resume):
                self._paper.waits(self.standing().model)
                await self._talk.answer(resume)
            case Leave():
                self.leave()

    async def _choose(self, name: str, reply: Choose) -> None:
        items = [Item(one.value, (one.label or one.value, one.about)) for one in reply.choices]
        columns = (Column(width=24, grows=True), Column(width=40, rank=1))
        picked = await self._terminal.aside(lambda: pick(items, title=reply.title, output=self._output, columns=columns))
        if picked is not None:
            await self._command(name, picked.item.key)
