"""The command `moot replay`."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import Annotated

import anyio

from moot.cli.arguments.parameters import Parameter
from moot.cli.messages import print_messages
from moot.cli.opening import opened_at
from moot.cli.options import Out, Which
from moot.cli.output import Output
from moot.cli.rerunning import run_again, run_with
from moot.cli.screen.show import ShowScreen
from moot.cli.showing import OnScreen, Show, ShowEvents, ShowText
from moot.convert.unfold import unfold
from moot.engine import Engine
from moot.errors import UsageError
from moot.runtime.replaying import INSTANT, beats
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.part import is_tool
from moot.types.run import Run

INTERRUPTED = 130


async def replay(
    conversation: Which,
    /,
    *,
    speed: Annotated[
        float | None, Parameter(above=0, help="Playback speed. Defaults to 1 on a terminal; in a pipe there are no pauses.")
    ] = None,
    instant: Annotated[bool, Parameter(help="No pauses.")] = False,
    from_: Annotated[int, Parameter(name="--from", minimum=1, help="First event to play, by its sequence number.")] = 1,
    jsonl: Annotated[bool, Parameter(name="--jsonl", help="Print each event as a line of JSON.")] = False,
    rerun: Annotated[
        bool,
        Parameter(name="--rerun", help="Run the conversation again offline against its recording and report differences (exit code 1)."),
    ] = False,
    model: Annotated[
        str | None,
        Parameter(name=("--model", "-m"), kind="model", help="With --rerun: send the prompts to this model and compare the answers."),
    ] = None,
    json: Annotated[bool, Parameter(name="--json", help="With --rerun: print one JSON document to stdout.")] = False,
    output: Out,
) -> int:
    """Replay the conversation with its original timing. Long pauses are shortened. Ctrl+C stops it."""
    if rerun:
        async with opened_at(conversation, output) as (engine, found):
            return await (
                run_again(engine, found, output, json=json) if model is None else run_with(engine, found, model, output, json=json)
            )
    if model is not None or json:
        raise UsageError("--model and --json require --rerun.", fix="moot replay ID --rerun")
    if instant and speed is not None:
        raise UsageError("--instant and --speed cannot be used together.")
    drawn = output.stdout_terminal and not jsonl
    pace = INSTANT if instant or (speed is None and not drawn) else (speed or 1.0)
    async with opened_at(conversation, output) as (engine, found):
        branch = await engine.store.conversations.branch(found.id)
        last = branch[-1].last_seq if branch else 0
        if from_ > max(last, 1):
            raise UsageError(f"No event {from_}: the last one is {last}.", fix="Run 'moot chat show ID --raw' to see the numbers.")
        player = _Player(engine, found, output, pace, drawn=drawn, jsonl=jsonl)
        return INTERRUPTED if await _interrupted(player, branch, from_) else 0


async def _interrupted(player: _Player, branch: Sequence[Message], begin: int) -> bool:
    """Play until the end or Ctrl+C. Return whether it was Ctrl+C."""
    stopped = False
    async with anyio.create_task_group() as group:

        async def handle_interrupt() -> None:
            nonlocal stopped
            with anyio.open_signal_receiver(signal.SIGINT) as signals:
                async for _ in signals:
                    stopped = True
                    group.cancel_scope.cancel()
                    return

        group.start_soon(handle_interrupt)
        await player.play(branch, begin)
        group.cancel_scope.cancel()
    return stopped


class _Player:
    """Playback of the messages of a branch."""

    def __init__(self, engine: Engine, conversation: Conversation, output: Output, speed: float, *, drawn: bool, jsonl: bool) -> None:
        self._engine = engine
        self._conversation = conversation
        self._output = output
        self._speed = speed
        self._drawn = drawn
        self._jsonl = jsonl
        self._calls = 0
        self._at = 0
        """Original time of the last event in microseconds."""
        self._shown_at = 0.0

    async def play(self, branch: Sequence[Message], begin: int) -> None:
        """Play the messages from the event `begin` on."""
        for message in branch:
            if message.last_seq >= begin:
                await self._message(message, begin)
            self._calls += sum(is_tool(part) for part in message.parts)

    async def _message(self, message: Message, begin: int) -> None:
        if self._jsonl:
            await self._lines(message, begin)
        elif message.run is None:
            print_messages([message], self._output)
        else:
            run = await self._engine.store.records.run(message.run)
            await self._run(run, message, begin)

    async def _lines(self, message: Message, begin: int) -> None:
        show = ShowEvents(self._output)
        if message.run is None:
            event = Event("message", unfold(message), at=message.created_at * 1000, seq=message.first_seq)
            found = await self._engine.store.log.read(self._conversation.id, after=message.first_seq - 1, limit=1)
            await show.event(found[0] if found else event)
            return
        await self._feed(show, await self._engine.store.records.run(message.run), begin)

    async def _run(self, run: Run, message: Message, begin: int) -> None:
        if not self._drawn:
            self._output.data("── assistant\n")
            show = ShowText(self._output)
            await self._feed(show, run, begin)
            await show.end(run, message)
            self._output.data("\n")
            return
        screen = ShowScreen(self._output, clock=self._now)
        screen.begin(self._conversation.id, self._calls)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(screen.keep)
                await self._feed(screen, run, begin)
                group.cancel_scope.cancel()
        except BaseException:
            screen.leave()
            raise
        await screen.end(run, message)

    async def _feed(self, show: Show, run: Run, begin: int) -> None:
        async with aclosing(beats(self._engine.store.log, run, begin=begin, speed=self._speed)) as played:
            async for beat in played:
                if beat.left_out:
                    await self._skip(show, beat.left_out)
                if beat.wait:
                    await anyio.sleep(beat.wait)
                self._at, self._shown_at = beat.event.at, time.monotonic()
                await show.event(beat.event)

    async def _skip(self, show: Show, seconds: float) -> None:
        if isinstance(show, OnScreen):
            await show.pause()
        self._output.say(f"moot: skipped a pause of {_span(seconds)}", "dim")

    def _now(self) -> float:
        """Return the time in the recording, so that durations are shown as they were."""
        return self._at / 1_000_000 + (time.monotonic() - self._shown_at) * (self._speed or 1.0)


def _span(seconds: float) -> str:
    for size, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
