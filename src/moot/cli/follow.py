"""Follow a run in the foreground: show its events, ask for approvals, handle Ctrl+C, and return its exit code."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio

from moot.cli.console.lines import write_error
from moot.cli.console.output import Output, handled_signals
from moot.cli.console.results import OnScreen, Show
from moot.engine import Engine
from moot.errors import Busy, ConfigError, NotFound, UsageError
from moot.features.family import asking_conversation
from moot.plugins.registry import attribute
from moot.runtime.approvals.requests import NO_ONE_AVAILABLE
from moot.runtime.approvals.typed_answers import answer_command, open_approval
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.hooks import BLOCKED
from moot.types.message import Message, is_tool
from moot.types.run import Run
from moot.types.store import OwnerStore

if TYPE_CHECKING:
    from moot.cli.approvals.decide import Decision
    from moot.cli.remote import AnyEngine

_CONTEXT, _DECIDE = "moot.cli.approvals.decide:approval_context", "moot.cli.approvals.decide:decide"
"""Import paths, loaded when there is an approval to ask about."""

_POLL_SECONDS = 0.5
"""Seconds between two checks whether a run on a server was answered elsewhere."""

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
    "step": 1,
}
"""Exit code for each kind of failure. Kinds that are not listed are provider errors."""


class Follower:
    """Foreground view of one run."""

    def __init__(self, engine: AnyEngine, output: Output, show: Show, *, stops: bool = True) -> None:
        """If `stops` is True, the run was started here and Ctrl+C stops it.
        Otherwise it belongs to another process and Ctrl+C only detaches.
        """
        self._engine = engine
        self._stops = stops
        self._output = output
        self._show = show
        self._seq = 0
        self._denied_unattended = False
        """True if a call was denied because no one could be asked."""
        self._stopped = False
        self._continued_here = False
        """True if an approval was answered here, because the process that answers a waiting run continues the run."""
        self._farewell = ""
        """Message about detaching. It is printed after drawing has ended, so that it appears below the output."""
        self._signal = 0
        """Number of the signal that ended `follow`; 0 if there was none, or if it was SIGINT."""

    async def follow(self, run: Run, conversation: Conversation, after: int) -> int:
        """Show the run until it ends, or until it waits for an answer that the user postpones. Return the exit code."""
        self._seq = after
        final: Run | None = None
        if isinstance(self._show, OnScreen):
            self._show.begin(conversation.id, await _calls_before(self._engine.store, conversation, run.message))
        async with anyio.create_task_group() as group:
            if isinstance(self._show, OnScreen):
                group.start_soon(self._show.keep)
            group.start_soon(self._handle_signals, run.conversation, partial(self._engine.runs.cancel, run.id), group.cancel_scope)
            final = await self._until_ended(run, conversation)
            group.cancel_scope.cancel()
        if final is None:
            if isinstance(self._show, OnScreen):
                self._show.leave()
            if self._farewell:
                self._output.say(self._farewell, "yellow")
            return 128 + self._signal if self._signal else INTERRUPTED
        message: Message | None = None
        with suppress(NotFound):
            message = await self._engine.store.conversations.message(final.message)
        await self._show.end(final, message)
        code = await self._exit_code(final, message)
        return await self._finish_others(final, code) if self._stops and final.status in ("finished", "waiting") else code

    async def _finish_others(self, run: Run, code: int) -> int:
        """Wait for the background sub-agents of this process.
        Return `code`, or a different exit code if one of them keeps waiting or the user interrupts.
        """
        async with anyio.create_task_group() as group:
            group.start_soon(self._handle_signals, run.conversation, self._cancel_others, group.cancel_scope)
            left = {run.id}
            while others := [other for other in await self._engine.runs.here() if other.id not in left]:
                self._output.say(f"moot: waiting for {others[0].agent} in the background; press Ctrl+C to stop it", "dim")
                ended = await self._until_settled(others[0])
                left.add(ended.id)
                if ended.status == "waiting":
                    code = await self._exit_code(ended, None) if code == 0 else code
                else:
                    self._output.say(f"moot: {ended.agent} has ended: {ended.status}", "dim")
            group.cancel_scope.cancel()
        return 128 + self._signal if self._signal else INTERRUPTED if self._stopped else code

    async def _until_settled(self, run: Run) -> Run:
        """Wait until the run has ended, or until it waits for an answer that the user postpones. Return the run."""
        while (ended := await self._engine.runs.wait(run.id)).status == "waiting":
            if not self._output.attended or not await self._answer(ended):
                break
        return ended

    async def _cancel_others(self) -> None:
        for run in await self._engine.runs.here():
            await self._engine.runs.cancel(run.id)

    async def _until_ended(self, run: Run, conversation: Conversation) -> Run:
        while True:
            final = await self._watch(run.id, conversation.id)
            if final.status != "waiting":
                return final
            asked = self._output.attended and await self._answer(run)
            if asked:
                continue
            if self._stops:
                return final
            await self._until_answered(run)

    async def _until_answered(self, run: Run) -> None:
        """Wait until a run that waits has been answered elsewhere."""
        if not isinstance(self._engine, Engine):
            while (await self._engine.store.records.run(run.id)).status == "waiting":  # noqa: ASYNC110  another machine's run
                await anyio.sleep(_POLL_SECONDS)
            return
        async with aclosing(self._engine.runtime.hub.foreign()) as commits:
            async for _ in commits:
                if (await self._engine.store.records.run(run.id)).status != "waiting":
                    break

    async def _watch(self, run: str, conversation: str) -> Run:
        """Show events until the run has settled and all its events have been shown."""
        settled: Run | None = None
        through = 0

        async def settle(scope: anyio.CancelScope) -> None:
            nonlocal settled, through
            ended = await self._engine.runs.wait(run)
            through = await self._engine.store.log.last_seq(conversation)
            settled = ended  # set after `through` is known; otherwise any event would end the loop
            if self._seq >= through:
                scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(settle, group.cancel_scope)
            async with aclosing(self._engine.tail.watch(conversation, after=self._seq)) as batches:
                async for events in batches:
                    for event in events:
                        await self._process(event, run)
                    if settled is not None and self._seq >= through:
                        break
            group.cancel_scope.cancel()
        assert settled is not None
        return settled

    async def _process(self, event: Event, run: str) -> None:
        if event.run == run:
            value = event.body.get("value") if isinstance(event.body, dict) else None
            if isinstance(value, dict) and value.get("denied") == NO_ONE_AVAILABLE:
                self._denied_unattended = True
            await self._show.event(event)
        self._seq = event.seq  # set after the event is shown, because the last seq ends the loop

    async def _answer(self, run: Run) -> bool:
        """Ask about all open approvals. Return False if there are none or the user leaves them open."""
        asked = 0
        if isinstance(self._show, OnScreen):
            await self._show.pause()
        while approvals := [asked for asked in await self._engine.store.records.approvals(run=run.id, tree=True) if not asked.by_client]:
            asked += 1
            place = await asking_conversation(self._engine.store, approvals[0], run)
            context = attribute(_CONTEXT)(self._engine, approvals[0], place)
            decided: Decision = await attribute(_DECIDE)(approvals[0], context, self._output)
            ends_here = self._stops and approvals[0].outside is not None and isinstance(self._engine, Engine)
            if decided.outcome == "later" and not ends_here:
                return False
            if decided.outcome == "later":  # the agent's process is a child of this one and ends with it
                self._output.say(
                    "moot: the agent's program ends when moot exits, so this cannot wait; answer it, or stop the run with Ctrl+C", "yellow"
                )
                continue
            if decided.outcome == "stop":  # Ctrl+C
                if self._stops:
                    await self._engine.runs.cancel(run.id)
                else:
                    signal.raise_signal(signal.SIGINT)
                    await anyio.sleep_forever()
                return True
            if not await self._submit_answer(approvals[0].id, decided):
                break
        if (await self._engine.store.records.run(run.id)).status == "waiting":
            with suppress(Busy, UsageError):  # another process continues the run
                await self._engine.runs.resume(run.id)  # to pick up answers from elsewhere and expired approvals
        return bool(asked)

    async def _submit_answer(self, approval: str, decided: Decision) -> bool:
        """Store the answer. Return False if the approval has already been answered or has expired."""
        if decided.answer is None:
            return False
        try:
            await self._engine.runs.answer(approval, decided.answer)
            self._continued_here = isinstance(self._engine, Engine)
        except (Busy, NotFound) as error:
            self._output.say(f"moot: {error.message}", "yellow")
            return False
        except (UsageError, ConfigError) as error:  # it is still open and will be asked again
            self._output.say(f"moot: {error.message}", "red")
        return True

    async def _handle_signals(self, conversation: str, stop: Callable[[], Awaitable[None]], scope: anyio.CancelScope) -> None:
        """Call `stop` on the first Ctrl+C, and exit on the second. If the run belongs to another process, detach on the first.

        On SIGTERM and SIGHUP, keep the run resumable and terminate the commands that it has started.
        """
        with anyio.open_signal_receiver(*handled_signals()) as signals:
            async for number in signals:
                self._signal = number if number != signal.SIGINT else 0
                if not self._stops:
                    after = (
                        "stopped here; resume it with: moot chat resume"
                        if self._continued_here
                        else "continues; follow with: moot chat attach"
                    )
                    self._farewell = f"moot: detached; the run {after} {conversation[:13]}"
                    scope.cancel()
                    return
                if self._stopped or self._signal:
                    scope.cancel()
                    return
                self._stopped = True
                self._output.say("moot: stopping; press Ctrl+C again to exit immediately", "yellow")
                await stop()

    async def _exit_code(self, run: Run, message: Message | None) -> int:
        if message is not None and message.metadata.get("finish_reason") == BLOCKED:
            return exit_code_of("refused")
        if run.status == "finished":
            return NEEDS_APPROVAL if self._denied_unattended else 0
        if run.status == "waiting":
            approval = await open_approval(self._engine.store, run.id)
            command = answer_command(approval, run.conversation) if approval is not None else f"moot chat resume {run.conversation[:13]}"
            needed = "approval" if approval is None or approval.questions is None else "your answer"
            self._output.say(f"moot: the run is waiting for {needed}; answer with: {command}", "yellow", exact=True)
            return NEEDS_APPROVAL
        if run.status == "failed" and run.error is not None:
            write_error(self._output, run.error.message, run.error.fix)
            return exit_code_of(run.error.kind)
        if run.status == "cancelled":
            self._output.say("moot: cancelled; the output so far is kept", "yellow")
            return INTERRUPTED
        self._output.say(f"moot: the run was interrupted; continue it with: moot chat resume {run.conversation[:13]}", "yellow")
        return 1


def exit_code_of(kind: str) -> int:
    """Return the exit code for a failure kind."""
    return _EXIT.get(kind, PROVIDER)


async def _calls_before(store: OwnerStore, conversation: Conversation, message: str) -> int:
    """Return the number of tool calls in the conversation before this message."""
    if conversation.message_count <= 2:
        return 0
    before = await store.conversations.branch(conversation.id)
    return sum(is_tool(part) for one in before if one.id != message for part in one.parts)
