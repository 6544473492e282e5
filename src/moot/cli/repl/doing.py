"""What a line that was typed comes to: a prompt, a command, a shell line, a goodbye. The same whatever the terminal can do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import anyio.to_thread

from moot.agents.known.finding import agent_called
from moot.cli.output import Output
from moot.cli.picking.items import Column, Item
from moot.cli.picking.picking import pick
from moot.cli.repl.answering import Answering
from moot.cli.repl.clipboard import copied
from moot.cli.repl.mentions import Mentioned, mentioned, paths_of
from moot.cli.repl.paper import Paper
from moot.cli.repl.reloading import Reloading
from moot.cli.repl.shelling import Ran, ShellLine
from moot.cli.repl.status import standing_of
from moot.cli.repl.talk import Talk
from moot.cli.weights import provide_weights, wants_weights
from moot.commands import Answer, Choose, Compose, Copy, Go, Leave, Reply, Say, Situation, find, parse
from moot.errors import MootError, UsageError
from moot.types.part import Part, text_part
from moot.types.run import OnBusy

__all__ = ["Doing", "Host"]

T = TypeVar("T")

GOODBYES = frozenset({"q", "exit", "quit"})


class Host(Protocol):
    """The terminal, as far as deeds need it."""

    async def aside(self, work: Callable[[], Awaitable[T]]) -> T:
        """Runs what needs the whole terminal."""
        ...

    def compose(self, text: str) -> None:
        """Puts a text before the person to be edited, unless they write one already."""
        ...

    def touch(self) -> None:
        """There is something new to be seen."""
        ...

    async def keep(self) -> None:
        """Has what is not sent yet on the disk before it returns."""
        ...

    def leave(self) -> None: ...

    async def go(self, conversation: str | None) -> None:
        """Another conversation; None = a new one."""
        ...


class Doing:
    """Carries out lines, one after the other; what fails is raised as MootError."""

    def __init__(
        self,
        situation: Situation,
        talk: Talk,
        paper: Paper,
        answering: Answering,
        host: Host,
        output: Output,
        *,
        clip: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`clip` has the terminal put a text into the clipboard; it says False when that is too much, or no terminal for it."""
        self._clip = clip
        self._situation, self._talk, self._host, self._output = situation, talk, host, output
        self._paper, self._answering = paper, answering
        self._reloading = Reloading(situation.engine, situation.directory, output, paper)
        self._shell: ShellLine | None = None
        self.heard: list[Part] = []
        """What shell lines said, for the model with the next prompt."""
        self.edits: str | None = None
        """The message that the next prompt takes the place of."""

    def echo(self, text: str, on_busy: OnBusy = "queue") -> bool:
        """Shows at once what was typed, unless it stands behind something first; whether it did."""
        line = text.strip()
        if line in GOODBYES:
            return False
        if line.startswith("!") or parse(line) is not None:
            self._paper.say(f"{self._paper.sign}{line}", "dim")
            return True
        if self._answering.moves or on_busy == "steer":
            return False
        self._paper.prompted(text)
        self._answering.waits(self._model())
        return True

    async def line(self, text: str, on_busy: OnBusy = "queue", *, echoed: bool = False) -> None:
        """Does what the line says; `echoed` is what `echo` said."""
        await self._reloading.look()
        line = text.strip()
        typed = parse(line)
        if line in GOODBYES:
            self._host.leave()
        elif line.startswith("!") and line.strip("! \n"):
            await self._run_shell(line)
        elif typed is not None:
            await self.command(*typed)
        else:
            await self.prompt((), text, on_busy, echoed=echoed)

    async def prompt(self, parts: Sequence[Part], text: str, on_busy: OnBusy = "queue", *, echoed: bool = True) -> None:
        """Sends a prompt: the parts, what shell lines said, the files that it names, the text."""
        try:
            named = await self._named(text)
            for note in named.notes:
                self._paper.say(f"moot: {note}\n", "yellow")
            await self._provide()
            whole = (*self.heard, *named.parts, *parts, *((text_part(text),) if text else ()))
            edits, self.edits = self.edits, None
            steered = await self._talk.send(whole, text, on_busy, echoed=echoed, edits=edits)
            self.heard.clear()
            if steered:
                self._paper.say(f"said to the answer that is coming: {text}", "dim")
        except MootError:
            if echoed:
                self._answering.waits(None)
            self._host.compose(text)
            raise

    async def command(self, name: str, argument: str) -> None:
        """Runs a slash command and does what it answers."""
        for reply in await find(name).run(self._situation, argument):
            await self._reply(name, reply)

    async def stop(self) -> None:
        """Stops the shell line that runs, else the answer."""
        if self._shell is not None:
            await self._shell.stop()
        else:
            await self._talk.interrupt()

    async def _named(self, text: str) -> Mentioned:
        if "@" not in text:
            return Mentioned()
        conversation = self._talk.conversation
        paths = paths_of(self._situation.directory, conversation.allowed_uris if conversation else ())
        return await anyio.to_thread.run_sync(partial(mentioned, text, paths))

    async def _provide(self) -> None:
        """Sees to it that an embedded model's weights are here; the person is asked first."""
        providers = self._situation.engine.providers
        if (wanted := self._wanted()) and await wants_weights(providers, wanted):
            await self._host.aside(partial(provide_weights, providers, wanted, self._output, consent=False))

    def _wanted(self) -> str:
        """The model of the next prompt; empty when its agent brings its own."""
        settings, conversation = self._situation.engine.runtime.settings, self._talk.conversation
        wishes = self._situation.wishes
        agent = wishes.agent or (conversation.agent if conversation else "default")
        model = wishes.model or (conversation.next_model if conversation and not wishes.agent else "")
        found = agent_called(settings, agent)
        if found is None or found.agent_type != "moot":
            return ""
        return model or found.model

    def _model(self) -> str:
        return standing_of(self._situation, self._talk.conversation, queued=0).model

    async def _reply(self, name: str, reply: Reply) -> None:
        match reply:
            case Say(text, style):
                self._paper.say(f"{text}\n", style)
            case Choose():
                await self._choose(name, reply)
            case Go(conversation):
                await self._host.go(conversation)
            case Compose(text, edits):
                self._host.compose(text)
                self.edits = edits
                if edits is not None:
                    self._paper.say("Enter sends it on a branch of its own; Ctrl+C leaves everything as it is\n", "dim")
            case Copy(text):
                await self._copy(text)
            case Answer(resume):
                self._answering.waits(self._model())
                await self._talk.answer(resume)
            case Leave():
                self._host.leave()

    async def _copy(self, text: str) -> None:
        """By the terminal and by a program: which of the two reaches the person's clipboard only they can see."""
        ways = [way for way in ("the terminal" if self._clip(text) else "", await copied(text)) if way]
        if not ways:
            raise UsageError("no clipboard was found: this terminal is not asked, and there is no wl-copy, xclip, xsel or pbcopy")
        self._paper.say(f"{len(text):,} characters to the clipboard, by {' and '.join(ways)}\n", "dim")

    async def _choose(self, name: str, reply: Choose) -> None:
        items = [Item(one.value, (one.label or one.value, one.about)) for one in reply.choices]
        columns = (Column(width=24, grows=True), Column(width=40, rank=1))
        picked = await self._host.aside(lambda: pick(items, title=reply.title, output=self._output, columns=columns))
        if picked is not None:
            await self.command(name, picked.item.key)

    async def _run_shell(self, line: str) -> None:
        private = line.startswith("!!")
        command = line.lstrip("!").strip()

        def say(text: str) -> None:
            self._paper.say(text)
            self._host.touch()

        self._shell = ShellLine(command, self._situation.directory, say)
        try:
            ran = await self._shell.run()
        finally:
            self._shell = None
        if not private:
            self.heard.append(ran.part())
            await self._host.keep()
        self._tell(ran, private=private)

    def take_up(self, heard: Sequence[Part]) -> None:
        """What shell lines said before, in a terminal that is gone: it goes along with the next prompt of this one."""
        self.heard = list(heard)
        if heard:
            lines = "a shell line" if len(heard) == 1 else f"{len(heard)} shell lines"
            self._paper.say(f"what {lines} said before goes along with your next prompt\n", "dim")

    def _tell(self, ran: Ran, *, private: bool) -> None:
        ended = "" if ran.code == 0 else f"exit code {ran.code} · " if ran.code > 0 else "stopped · "
        self._paper.say(f"{ended}{'kept from the model' if private else 'the model sees it with your next prompt'}\n", "dim")
