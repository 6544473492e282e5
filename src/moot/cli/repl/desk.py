"""The REPL on a screen: the pieces put together, keys and lines done one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from moot.cli.editor import edit_text
from moot.cli.output import Output
from moot.cli.picking.items import Item
from moot.cli.picking.picking import pick
from moot.cli.repl.answering import Answering
from moot.cli.repl.clipboard import sequence
from moot.cli.repl.completing import Completions
from moot.cli.repl.composer import Composer
from moot.cli.repl.doing import Doing
from moot.cli.repl.drafts import Draft, Drafts
from moot.cli.repl.hands import Hands
from moot.cli.repl.history import TypedHistory
from moot.cli.repl.keys import bindings, know_more_keys, table
from moot.cli.repl.notices import Notices, Occasion, drawn_by
from moot.cli.repl.paper import Paper
from moot.cli.repl.pen import Pen
from moot.cli.repl.shown import Shown
from moot.cli.repl.status import Standing, fitted, standing_of, status_line
from moot.cli.repl.talk import Talk
from moot.cli.repl.terminal import Terminal
from moot.cli.screen import look_of
from moot.commands import Situation
from moot.commands.mode import next_mode
from moot.commands.models import recent_models
from moot.errors import MootError
from moot.types.part import Part, text_of
from moot.types.run import OnBusy

__all__ = ["Desk"]

TICK = 0.125
STATUS_REST = 1.0
"""Seconds between two status lines that a program draws."""

T = TypeVar("T")
Deed = Callable[[], Awaitable[None]]


class Desk:
    """Implements `hands.Deeds` and `doing.Host`."""

    def __init__(self, situation: Situation, group: TaskGroup, output: Output) -> None:
        know_more_keys()
        self._situation, self._group, self._output = situation, group, output
        pen = Pen(colour=output.stdout_colour)
        self._paper = Paper(look_of(output))
        self._answering = Answering(self._paper)
        history = TypedHistory(situation.engine.settings.home / "state" / "history.jsonl")
        self._composer = Composer(history=history, completer=Completions(situation))
        self._hands = Hands(self._composer, self)
        self._terminal = Terminal(
            pen,
            self._composer,
            bindings(self._hands, self._composer),
            finished=self._answering.take,
            live=self._live,
            notes=self._notes,
            status=self._status,
            sign=self._paper.sign,
        )
        self.touch = self._terminal.touch
        self._talk = Talk(situation, group, Shown(situation.engine, self._tell, self._paper, self._answering, self._terminal, output))
        self._doing = Doing(situation, self._talk, self._paper, self._answering, self, output, clip=self._clip)
        self._notices = Notices(lambda: situation.engine.runtime.settings.ui, self._write)
        self._drawn = ""
        """The status line as a program of the person's own draws it."""
        self._drafts = Drafts(situation.engine.settings.home / "state" / "drafts", situation.directory)
        self._kept: tuple[str | None, Draft] = (None, Draft())
        """What is on the disk, and for which conversation."""
        situation.keys = "\n".join(f"{shown:34}{words}" for shown, words in table())
        self._deeds, self._todo = anyio.create_memory_object_stream[Deed](100)
        self._by_name: dict[str, Callable[[], None]] = {
            "leave": self.leave,
            "interrupt": self._stop,
            "take_back": lambda: self._later(self._take_back),
            "drop": lambda: self._later(self._drop),
            "forget_edit": self._forget_edit,
            "mode": self._next_mode,
            "model": lambda: self._later(self._next_model),
            "models": lambda: self._later(partial(self._doing.command, "model", "")),
            "conversations": lambda: self._later(partial(self._doing.command, "continue", "")),
            "new": lambda: self._later(partial(self._doing.command, "new", "")),
            "editor": lambda: self._later(self._edit),
            "unfold": self._answering.unfold,
            "search": lambda: self._later(self._search),
            "redraw": lambda: self._terminal.region.renderer.erase(),
            "suspend": lambda: self._terminal.region.suspend_to_background(),
        }

    # ── running ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self, conversation: str | None, prompt: Sequence[Part] = ()) -> None:
        """Until the person leaves; the prompt is sent first."""
        for work in (self._terminal.draw, self._tick, self._work, self._let_draw):
            self._group.start_soon(work)
        await self._talk.open(conversation)
        self._take_up()
        if prompt:
            self._paper.prompted(text_of(tuple(prompt)))
            self._answering.waits(self._standing().model)
            self._later(partial(self._doing.prompt, prompt, ""))
        elif await self._talk.unanswered():
            self._answering.waits(self._standing().model)
            self._later(self._talk.answer)
        await self._terminal.run()
        self._keep()

    def leave(self) -> None:
        """Ends `run`."""
        self._terminal.leave()

    def interrupted(self) -> None:
        """Somebody sent the signal that Ctrl+C stands for."""
        self._hands.act("cancel")
        self._terminal.touch()

    def log(self, line: str) -> None:
        """A line that some room logged."""
        self._paper.say(line, "dim")
        self._terminal.touch()

    async def _work(self) -> None:
        async for deed in self._todo:
            await self._now(deed)

    async def _now(self, deed: Deed) -> None:
        """Does it; what fails is said, and the REPL goes on."""
        try:
            await deed()
        except MootError as error:
            self._paper.failed(error)
        self._terminal.touch()

    def _later(self, deed: Deed) -> None:
        with suppress(anyio.WouldBlock):  # a hundred things wait already
            self._deeds.send_nowait(deed)

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(TICK)
            if self._draft() != self._kept:
                await anyio.to_thread.run_sync(self._keep)
            if self._hands.tick() or (self._answering.moves and self._paper.look.motion):
                self._terminal.touch()

    # ── what is on the screen ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _standing(self) -> Standing:
        return standing_of(self._situation, self._talk.conversation, queued=self.queued)

    def _live(self, height: int) -> Sequence[str]:
        columns = self._terminal.pen.size().columns
        if columns != self._paper.look.width:
            self._answering.resize(columns)
        return self._answering.live(height)

    def _status(self, width: int) -> str:
        return fitted(self._drawn, width) if self._drawn else status_line(self._standing(), width)

    async def _let_draw(self) -> None:
        """Has `ui.statusline` draw the status line whenever there is something new to say."""
        told: Standing | None = None
        while True:
            argv = self._situation.engine.runtime.settings.ui.get("statusline")
            standing = self._standing()
            if isinstance(argv, list) and argv and standing != told:
                told = standing
                self._drawn = await drawn_by([str(word) for word in argv], standing.to_json())
                self._terminal.touch()
            await anyio.sleep(STATUS_REST)

    def _write(self, sequence: str) -> None:
        self._terminal.pen.write_raw(sequence)
        self._terminal.pen.flush()

    def _tell(self, occasion: Occasion, seconds: float) -> None:
        conversation = self._talk.conversation
        title = conversation.title if conversation else ""
        focused = self._hands.focused
        self._group.start_soon(partial(self._notices.tell, occasion, title, seconds=seconds, focused=focused))
        self._notices.progress(False)
        self._notices.title(title)

    def _notes(self) -> Sequence[tuple[str, str]]:
        notes: list[tuple[str, str]] = []
        if queued := self._talk.queued:
            last = " ".join(queued[-1].text.split())
            notes.append(("class:queue", f"{len(queued)} queued · Up to edit, Del to drop · {last}"))
        if self._hands.leading:
            notes.append(("class:note", "Ctrl+X: e editor · s steer · n new · m model · l conversations"))
        if self._hands.note:
            notes.append(("class:note", self._hands.note))
        return notes

    # ── for the keys (hands.Deeds) and for what is done (doing.Host) ──────────────────────────────────────────────────────────────

    @property
    def queued(self) -> int:
        """As `Deeds.queued`."""
        return len(self._talk.queued)

    @property
    def answering(self) -> bool:
        """As `Deeds.answering`."""
        return self._talk.live is not None

    def do(self, name: str) -> None:
        """As `Deeds.do`."""
        self._by_name[name]()
        self._terminal.touch()  # some only say something

    def send(self, text: str, on_busy: OnBusy) -> None:
        """As `Deeds.send`."""
        echoed = self._doing.echo(text, on_busy)
        self._notices.progress(self._answering.moves)
        self._later(partial(self._doing.line, text, on_busy, echoed=echoed))
        self._terminal.touch()

    async def aside(self, work: Callable[[], Awaitable[T]]) -> T:
        """As `Host.aside`."""
        return await self._terminal.aside(work)

    def compose(self, text: str) -> None:
        """As `Host.compose`."""
        if not self._composer.text:
            self._composer.put(text)

    def _clip(self, text: str) -> bool:
        if taken := sequence(text):
            self._write(taken)
        return bool(taken)

    async def keep(self) -> None:
        """As `Host.keep`."""
        await anyio.to_thread.run_sync(self._keep)

    async def go(self, conversation: str | None) -> None:
        """As `Host.go`."""
        self._keep()
        self._forget_edit()
        await self._talk.open(conversation)
        self._take_up()

    def _draft(self) -> tuple[str | None, Draft]:
        composer = self._composer
        draft = Draft(composer.text, composer.pastes(), self._hands.stash, list(self._doing.heard))
        return self._situation.conversation, draft

    def _keep(self) -> None:
        """Writes the draft, and takes away that of a conversation which has begun since."""
        before, self._kept = self._kept, self._draft()
        conversation, draft = self._kept
        if before[0] != conversation:
            self._drafts.keep(before[0], Draft())
        self._drafts.keep(conversation, draft)

    def _take_up(self) -> None:
        if self._talk.interrupted:
            self._paper.say("the last answer was broken off; /retry takes it up again\n", "yellow")
        draft = self._drafts.take_up(self._situation.conversation)
        self._composer.put(draft.text, draft.pastes)
        self._hands.stash = draft.stash
        self._doing.take_up(draft.heard)
        self._kept = self._draft()

    # ── deeds of the keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _stop(self) -> None:
        self._group.start_soon(self._now, self._doing.stop)  # at once, whatever else is still to be done

    async def _take_back(self) -> None:
        if text := await self._talk.drop():
            self._composer.put(text)

    async def _drop(self) -> None:
        await self._talk.drop()

    async def _edit(self) -> None:
        text = self._composer.whole()
        edited = await self._terminal.aside(lambda: edit_text(text, output=self._output))
        if edited is not None:
            self._composer.put(edited.rstrip("\n"))

    async def _search(self) -> None:
        texts = list(dict.fromkeys(reversed(self._composer.history.get_strings())))
        items = [Item(str(number), (" ".join(text.split()),)) for number, text in enumerate(texts)]
        picked = await self._terminal.aside(lambda: pick(items, title="Typed before", output=self._output))
        if picked is not None:
            self._composer.put(texts[int(picked.item.key)])

    def _forget_edit(self) -> None:
        self._doing.edits = None

    def _next_mode(self) -> None:
        self._situation.wishes.mode = next_mode(self._standing().mode)

    async def _next_model(self) -> None:
        recent, model = await recent_models(self._situation), self._standing().model
        later = recent[recent.index(model) + 1 :] if model in recent else recent
        if others := [one for one in [*later, *recent] if one != model]:
            await self._doing.command("model", others[0])
