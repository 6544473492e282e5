"""A run from its submission to its exit code: shows its events, asks the person, stops on Ctrl+C."""

from __future__ import annotations

import signal
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, cast

import anyio

from moot.cli.output import Output
from moot.cli.showing import OnScreen, Show
from moot.engine import Engine
from moot.errors import Busy, ConfigError, NotFound, UsageError
from moot.plugins.registry import Registry
from moot.runtime.asking import NOBODY
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.part import is_tool
from moot.types.run import Run
from moot.types.store import Store

if TYPE_CHECKING:
    from moot.cli.approving.situations import Decision

_APPROVING = Registry(
    "moot.approving", {"decide": "moot.cli.approving.deciding:decide", "context": "moot.cli.approving.situations:approval_context"}
)
"""What draws a call for a person is imported when there is something to ask."""

NEEDS_APPROVAL, CONTRACT, PROVIDER, LIMIT, TIMEOUT, INTERRUPTED = 3, 4, 5, 6, 124, 130

_EXIT = {
    "usage": 2,
    "config": 2,
    "not_found": 2,
    "needs_approval": NEEDS_APPROVAL,
    "output_contract": CONTRACT,
    "deadline": TIMEOUT,
    "limit": LIMIT,
    "busy": 7,
    "store": 1,
    "store_full": 1,
    "store_corrupt": 1,
    "internal": 1,
    "refused": 1,
}
"""Kind of failure → exit code; every other kind is a provider's."""


class Follower:
    """Watches one run."""

    def __init__(self, engine: Engine, output: Output, show: Show, *, stops: bool = True) -> None:
        """`stops`: Ctrl+C stops the run, which was begun here. Else it is somebody else's, goes on when we leave, and is waited for."""
        self._engine = engine
        self._stops = stops
        self._output = output
        self._show = show
        self._seq = 0
        self._unasked = False
        """Whether a call was denied because nobody could be asked."""
        self._stopped = False
        self._carried = False
        """An answer was given here: whoever answers a waiting run carries it on."""
        self._parting = ""
        """What is said when we leave before the run ends: below what was shown of it, so not before the drawing has ended."""
        self._ending = 0
        """The signal that ended the watching, run and all; 0 = none."""

    async def follow(self, run: Run, conversation: Conversation, after: int) -> int:
        """Shows the run until it has ended or waits for somebody else; the exit code."""
        self._seq = after
        final: Run | None = None
        if isinstance(self._show, OnScreen):
            self._show.begin(conversation.id, await _calls_before(self._engine.store, conversation, run.message))
        async with anyio.create_task_group() as group:
            if isinstance(self._show, OnScreen):
                group.start_soon(self._show.keep)
            group.start_soon(self._heed_interrupt, run, group.cancel_scope)
            final = await self._to_the_end(run, conversation)
            group.cancel_scope.cancel()
        if final is None:
            if isinstance(self._show, OnScreen):
                self._show.leave()
            if self._parting:
                self._output.say(self._parting, "yellow")
            return 128 + self._ending if self._ending else INTERRUPTED
        await self._show.end(final, await _message(self._engine.store, final))
        return self._exit_code(final)

    async def _to_the_end(self, run: Run, conversation: Conversation) -> Run:
        while True:
            final = await self._watch(run.id, conversation.id)
            if final.status != "waiting":
                return final
            asked = self._output.attended and await self._answer(run.id, conversation)
            if not asked and self._stops:
                return final
            if not asked:
                await self._answered_elsewhere(run.id)

    async def _answered_elsewhere(self, run: str) -> None:
        async with aclosing(self._engine.runtime.hub.foreign()) as commits:
            async for _ in commits:
                if (await self._engine.store.records.run(run)).status != "waiting":
                    return

    async def _watch(self, run: str, conversation: str) -> Run:
        """Shows what comes until the run has settled and everything up to then was shown."""
        settled: Run | None = None
        through = 0

        async def settle(scope: anyio.CancelScope) -> None:
            nonlocal settled, through
            ended = await self._engine.runs.wait(run)
            through = await self._engine.store.log.last_seq(conversation)
            settled = ended  # not before it is known how far to show: until then every event would be far enough
            if self._seq >= through:
                scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(settle, group.cancel_scope)
            async with aclosing(self._engine.tail.watch(conversation, after=self._seq)) as batches:
                async for events in batches:
                    for event in events:
                        await self._take(event, run)
                    if settled is not None and self._seq >= through:
                        break
            group.cancel_scope.cancel()
        assert settled is not None
        return settled

    async def _take(self, event: Event, run: str) -> None:
        if event.run == run:
            value = event.body.get("value") if isinstance(event.body, dict) else None
            if isinstance(value, dict) and value.get("denied") == NOBODY:
                self._unasked = True
            await self._show.event(event)
        self._seq = event.seq  # only once it is shown: whoever sees the last one here ends the watching, showing and all

    async def _answer(self, run: str, conversation: Conversation) -> bool:
        """Asks everything that is open; False when there was nothing to ask, or it is left waiting."""
        asked = 0
        if isinstance(self._show, OnScreen):
            await self._show.pause()
        while approvals := [asked for asked in await self._engine.store.records.approvals(run=run) if not asked.by_client]:
            asked += 1
            context = _APPROVING.load("context")(self._engine, approvals[0], conversation)
            decided = cast("Decision", await _APPROVING.load("decide")(approvals[0], context, self._output))
            if decided.outcome == "later" and not (self._stops and approvals[0].outside is not None):
                return False
            if decided.outcome == "later":  # its process is ours and would end with us
                self._output.say(
                    "moot: it can't be left: the agent's program ends with moot; answer it, or stop the run with Ctrl+C", "yellow"
                )
                continue
            if decided.outcome == "stop":
                await self._stop(run)
                return True
            if not await self._give(approvals[0].id, decided):
                break
        if (await self._engine.store.records.run(run)).status == "waiting":
            with suppress(Busy, UsageError):  # somebody else goes on with it
                await self._engine.runs.resume(run)  # so that it learns of what was answered elsewhere or expired
        return bool(asked)

    async def _stop(self, run: str) -> None:
        """Ctrl+C while a question stood there."""
        if self._stops:
            await self._engine.runs.cancel(run)
        else:
            signal.raise_signal(signal.SIGINT)
            await anyio.sleep_forever()

    async def _give(self, approval: str, decided: Decision) -> bool:
        """False when somebody else was faster or it has expired."""
        if decided.answer is None:
            return False
        try:
            await self._engine.runs.answer(approval, decided.answer)
            self._carried = True
        except (Busy, NotFound) as error:
            self._output.say(f"moot: {error.message}", "yellow")
            return False
        except (UsageError, ConfigError) as error:  # it is still open, and asked again
            self._output.say(f"moot: {error.message}", "red")
        return True

    async def _heed_interrupt(self, run: Run, scope: anyio.CancelScope) -> None:
        """The first Ctrl+C stops the run and keeps what there is, the second one leaves at once. Where nothing is stopped the first leaves.

        A hang-up or an end asked for leaves the run to be resumed, and takes the commands that it started along.
        """
        with anyio.open_signal_receiver(*_heeded()) as signals:
            async for number in signals:
                self._ending = number if number != signal.SIGINT else 0
                if not self._stops:
                    after = "was carried on here and can be resumed: moot chat resume" if self._carried else "goes on: moot chat attach"
                    self._parting = f"moot: left; the run {after} {run.conversation[:13]}"
                    scope.cancel()
                    return
                if self._stopped or self._ending:
                    scope.cancel()
                    return
                self._stopped = True
                self._output.say("moot: stopping; press Ctrl+C again to leave at once", "yellow")
                await self._engine.runs.cancel(run.id)

    def _exit_code(self, run: Run) -> int:
        if run.status == "finished":
            return NEEDS_APPROVAL if self._unasked else 0
        if run.status == "waiting":
            self._output.say(f"moot: the run waits for a decision; moot chat resume {run.conversation[:13]}", "yellow")
            return NEEDS_APPROVAL
        if run.status == "failed" and run.error is not None:
            self._output.say(f"moot: {run.error.message}", "red")
            if run.error.fix:
                self._output.say(f"  {run.error.fix}")
            return exit_code_of(run.error.kind)
        if run.status == "cancelled":
            self._output.say("moot: cancelled; what was said so far is kept", "yellow")
            return INTERRUPTED
        self._output.say(f"moot: the run was interrupted; moot chat resume {run.conversation[:13]}", "yellow")
        return 1


def _heeded() -> list[signal.Signals]:
    """What is ignored stays so: `nohup` means it."""
    return [one for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) != signal.SIG_IGN]


def exit_code_of(kind: str) -> int:
    """The exit code of a failed run."""
    return _EXIT.get(kind, PROVIDER)


async def _message(store: Store, run: Run) -> Message | None:
    try:
        return await store.conversations.message(run.message)
    except NotFound:
        return None


async def _calls_before(store: Store, conversation: Conversation, message: str) -> int:
    """How many tool calls the conversation has before this message."""
    if conversation.message_count <= 2:
        return 0
    before = await store.conversations.branch(conversation.id)
    return sum(is_tool(part) for one in before if one.id != message for part in one.parts)
