"""Runs on one SQLite file shared by many processes: whoever submits a prompt drives its run; anybody may cancel or answer."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from moot.engine.owners import Owner
from moot.errors import Busy, MootError, StoreError, UsageError
from moot.runtime.drive import drive
from moot.runtime.runtime import Runtime
from moot.runtime.setup import find_agent
from moot.types.approval import Answer
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.ids import new_id
from moot.types.message import Message
from moot.types.part import text_of
from moot.types.run import TERMINAL, Prompt, Run, RunStatus, Submitted
from moot.types.store import Fence, InboxItem, Submission

TITLE = 80
"""Characters of the first line that become the title."""

TAKEABLE: frozenset[RunStatus] = frozenset({"waiting", "interrupted", "queued"})

log = logging.getLogger("moot.engine")


class LocalRuns:
    """Implements Runs for one process; the tasks it starts live in the group it is given."""

    def __init__(self, runtime: Runtime, owner: Owner, group: TaskGroup) -> None:
        self._runtime = runtime
        self._owner = owner
        self._group = group
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._cancelled: set[str] = set()
        self._failures: dict[str, MootError] = {}
        """Runs whose end could not be recorded, and why: nobody is at them though the store says that we are."""
        self._moved = anyio.Event()
        self.drove = False
        """Whether any run was driven here: then the search index has something to do."""

    # ── the seam ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def submit(self, prompt: Prompt) -> Submitted:
        submission = await self._submission(prompt)
        accepted = await self._runtime.store.records.submit(submission)
        self._runtime.hub.touch(accepted.conversation.id)
        self._move()
        if accepted.fence is not None:
            self._start(accepted.fence)
        elif not accepted.steered:
            if accepted.interrupts is not None:
                await self.cancel(accepted.interrupts)
            self._group.start_soon(self._queue, accepted.run)
        return Submitted(accepted.conversation, accepted.run, accepted.seq, accepted.steered)

    async def resume(self, run: str) -> Run:
        records = self._runtime.store.records
        found = await records.run(run)
        if found.status in TERMINAL:
            raise UsageError(f"the run {found.id!r} has {found.status}: there is nothing to resume", fix="moot chat continue ID")
        if found.status == "running":
            if found.owner is None or self._held(found):
                raise Busy(f"the run {found.id!r} is running in another process", fix="moot chat stop ID")
            await records.interrupt(found.id, owner=found.owner, fence=found.fence)
        fence = await records.claim(found.id, self._owner.id, statuses=TAKEABLE)
        self._start(fence)
        return await records.run(found.id)

    async def cancel(self, run: str) -> None:
        records = self._runtime.store.records
        found = await records.run(run)
        if found.status in TERMINAL:
            return
        self._cancelled.add(found.id)
        if (scope := self._scopes.get(found.id)) is not None:
            scope.cancel()
            return
        if found.status == "running" and found.owner is not None:
            if self._held(found):
                await records.post(found.id, InboxItem("cancel"))
                return
            await records.interrupt(found.id, owner=found.owner, fence=found.fence)
        # nobody holds it: take it up only to end it
        try:
            fence = await records.claim(found.id, self._owner.id, statuses=TAKEABLE)
        except Busy:
            if (await records.run(found.id)).status not in TERMINAL:
                await records.post(found.id, InboxItem("cancel"))
            return
        self._start(fence)

    async def answer(self, approval: str, answer: Answer) -> None:
        stored = await self._runtime.store.records.answer(approval, answer)
        self._move()
        await self._wake(stored.run)

    async def wait(self, run: str) -> Run:
        """As `Runs.wait`. Raises StoreError when the run stopped here because the store could not take what it had to say."""
        while True:
            moved = self._moved
            found = await self._runtime.store.records.run(run)
            if found.status not in ("queued", "running"):
                return found
            if run in self._failures:
                raise self._failures[run]
            if run in self._scopes:
                await moved.wait()
            else:
                with anyio.move_on_after(0.25):
                    await moved.wait()

    async def sweep(self, *, resume: bool) -> list[Run]:
        """Finds running runs whose owner is dead: they become interrupted; with `resume`, those that may are taken up. All found."""
        records = self._runtime.store.records
        found: list[Run] = []
        for run in await records.runs(statuses=frozenset({"running"})):
            if run.owner is None or self._held(run):
                continue
            if await records.interrupt(run.id, owner=run.owner, fence=run.fence):
                found.append(run)
                if resume and run.on_crash == "resume":
                    await self.resume(run.id)
        return found

    # ── driving ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _held(self, run: Run) -> bool:
        """Whether a living process is at a running run; this one lets go of what it could not record."""
        return run.owner is not None and self._owner.lives(run.owner) and run.id not in self._failures

    def _start(self, fence: Fence) -> None:
        self._failures.pop(fence.run, None)
        scope = self._scopes[fence.run] = anyio.CancelScope()
        if fence.run in self._cancelled:
            scope.cancel()
        self.drove = True
        self._group.start_soon(self._drive, fence, scope)

    async def _drive(self, fence: Fence, scope: anyio.CancelScope) -> None:
        run: Run | None = None
        answered: frozenset[str] = frozenset()
        try:
            answered = await self._answered(fence.run)
            async with anyio.create_task_group() as group:
                group.start_soon(self._listen, fence.run, scope)
                run = await drive(self._runtime, fence, scope)
                group.cancel_scope.cancel()
        except* MootError as errors:
            # the store itself failed, so nothing more could be recorded: the run is found as interrupted later
            error = errors.exceptions[0]
            self._failures[fence.run] = error if isinstance(error, MootError) else StoreError(str(error))
            log.error("run %s stopped: %s", fence.run, error)
        finally:
            del self._scopes[fence.run]
            self._move()
        if run is not None:
            await self._after(run, answered)
            await self._runtime.drawers.trim()

    async def _after(self, run: Run, answered: frozenset[str]) -> None:
        """What a leg's end leaves to do: answers that came while it was parking, and what was said too late."""
        if run.status == "waiting" and await self._answered(run.id) != answered:
            await self._wake(run.id)
        elif run.status in TERMINAL:
            for item in await self._runtime.store.records.inbox(run.id):
                if item.kind == "steer" and isinstance(item.body, dict):
                    await self._said_too_late(run, item)

    async def _answered(self, run: str) -> frozenset[str]:
        asked = await self._runtime.store.records.approvals(run=run, open_only=False)
        return frozenset(approval.id for approval in asked if approval.answer is not None)

    async def _said_too_late(self, run: Run, item: InboxItem) -> None:
        """A steer that arrived as its run ended becomes the next prompt: nothing that a person said is lost."""
        body: JsonObject = item.body if isinstance(item.body, dict) else {}
        parts = body.get("parts")
        if isinstance(parts, list):
            whole = tuple(part for part in parts if isinstance(part, dict))
            await self.submit(Prompt(whole, conversation=run.conversation, on_busy="queue", settings=run.settings, trigger=run.trigger))

    async def _wake(self, run: str) -> None:
        """Goes on with a parked run here, unless it is not parked (yet) or somebody else is at it."""
        records = self._runtime.store.records
        found = await records.run(run)
        if found.status != "waiting":
            return
        try:
            fence = await records.claim(run, self._owner.id, statuses=frozenset({"waiting"}))
        except Busy:
            return
        self._start(fence)

    async def _queue(self, run: Run) -> None:
        """Waits for a queued run's turn and drives it."""
        records = self._runtime.store.records
        while True:
            moved = self._moved
            try:
                fence = await records.claim(
                    run.id, self._owner.id, statuses=frozenset({"queued"}), at_most=self._runtime.settings.limits.runs_per_user
                )
            except Busy:
                if (await records.run(run.id)).status != "queued":
                    return
                with anyio.move_on_after(0.25):
                    await moved.wait()
                continue
            self._start(fence)
            return

    async def _listen(self, run: str, scope: anyio.CancelScope) -> None:
        """Hears a cancel that another process put into the run's inbox."""
        async with aclosing(_foreign(self._runtime)) as commits:
            async for _ in commits:
                items = await self._runtime.store.records.inbox(run)
                if any(item.kind == "cancel" for item in items):
                    self._cancelled.add(run)
                    scope.cancel()
                    return

    def _move(self) -> None:
        moved, self._moved = self._moved, anyio.Event()
        moved.set()

    # ── making a submission ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _submission(self, prompt: Prompt) -> Submission:
        """Everything a prompt decides. Raises UsageError for an unknown agent, model or tool before anything is stored."""
        runtime = self._runtime
        existing = await runtime.store.conversations.get(prompt.conversation) if prompt.conversation else None
        name = prompt.agent or (existing.agent if existing is not None else "default")
        settings: JsonObject = {**prompt.settings}
        if prompt.mode is not None:
            settings["mode"] = prompt.mode
        agent = find_agent(runtime.settings, name, settings)
        model = prompt.model or (existing.model if existing is not None and prompt.agent is None else "")
        await self._check(model or agent.model, name, settings)
        conversation = existing or self._conversation(prompt, name, agent.agent_type, model)
        conversation = dataclasses.replace(conversation, agent=name, agent_type=agent.agent_type, model=model or conversation.model)
        run = Run(
            id=new_id(),
            conversation=conversation.id,
            message=new_id(),
            agent=name,
            agent_type=agent.agent_type,
            model=model,
            trigger=prompt.trigger,
            on_crash=prompt.on_crash,
            settings=settings,
        )
        user = None
        if prompt.parts:
            user = Message(new_id(), "user", prompt.parts, conversation=conversation.id, client_id=prompt.client_id)
        return Submission(run, conversation, user, prompt.on_busy, self._owner.id, runtime.settings.limits.runs_per_user)

    async def _check(self, model: str, agent: str, settings: JsonObject) -> None:
        from_settings = find_agent(self._runtime.settings, agent, settings)
        if from_settings.agent_type == "moot":
            choice = await self._runtime.providers.choice(model)
            if choice.model.tools != "none":
                self._runtime.check_tools(from_settings)

    def _conversation(self, prompt: Prompt, agent: str, agent_type: str, model: str) -> Conversation:
        line = text_of(list(prompt.parts)).strip().partition("\n")[0].strip()
        title = line if len(line) <= TITLE else f"{line[: TITLE - 1]}…"
        directory = prompt.directory or str(Path.cwd())
        return Conversation(
            id=prompt.conversation or new_id(),
            key=prompt.key,
            title=title,
            title_source="first-line" if title else "none",
            agent=agent,
            agent_type=agent_type,
            model=model,
            directory=directory,
            allowed_uris=prompt.allowed_uris,
        )


async def _foreign(runtime: Runtime) -> AsyncGenerator[None, None]:
    """Looks once at the start too: what was said before anybody listened is in the inbox already."""
    yield
    async with aclosing(runtime.hub.foreign()) as commits:
        async for _ in commits:
            yield
