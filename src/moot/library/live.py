"""A run as an object: iterate over it to get its events, await it to get its result."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup
from pydantic import ValidationError

from moot import errors
from moot.convert.fold import in_history
from moot.engine import Engine
from moot.errors import Busy, Cancelled, LimitReached, MootError, NotFound, OutputContract, ProviderError, StoreError, UsageError
from moot.guard.json_schema import check_answer
from moot.library.options import NANO, OnApproval, OnQuestion, Schema, answer_to
from moot.runtime.approvals.requests import NO_ONE_AVAILABLE
from moot.types.event import Event
from moot.types.hooks import is_withheld
from moot.types.message import Message, Part, is_tool, text_of, text_part, tool_name
from moot.types.run import Prompt, Run, Submitted
from moot.types.usage import Usage

_BY_CODE: dict[str, type[MootError]] = {
    kind.code: kind for name in errors.__all__ if issubclass(kind := getattr(errors, name), MootError) and kind is not MootError
}


def failure_of(run: Run) -> MootError | None:
    """Return the exception for a run that did not finish successfully, or None if it did."""
    if run.status == "finished":
        return None
    if run.status == "cancelled":
        return Cancelled(f"The run {run.id!r} was cancelled. Its output so far is kept.")
    if run.status == "interrupted":
        return StoreError(f"The run {run.id!r} was interrupted because its process ended.", fix="Resume it with m.resume(…).")
    failure = run.error
    if failure is None:
        return MootError(f"The run {run.id!r} is {run.status}.")
    if failure.kind == "deadline":
        return LimitReached(failure.message, fix=failure.fix)
    if failure.kind in ("internal", "step"):
        return MootError(failure.message)
    kind = _BY_CODE.get(failure.kind)
    if kind is not None and kind is not ProviderError:
        return kind(failure.message, fix=failure.fix)
    return ProviderError(failure.message, fix=failure.fix, kind=failure.kind, retryable=failure.retryable, retry_after=failure.retry_after)


T = TypeVar("T", covariant=True)

_INTERVAL = 0.25
"""Seconds between checks of a run that is waiting for an answer from another program."""


@dataclass(frozen=True, slots=True)
class RunSource:
    """Functions that start or find a run, and that answer its approvals and questions."""

    start_run: Callable[[], Awaitable[Submitted]]
    schema: Schema | None = None
    on_approval: OnApproval | None = None
    on_question: OnQuestion | None = None


class LiveRun(Generic[T]):
    """A run that starts when it is iterated, awaited or started.

    `async for event in run` yields its events after they are stored. `await run` waits until the end and returns the run itself, whose
    `text`, `message`, `usage` and so on can then be read. Both raise the run's MootError if it failed, Cancelled if it was cancelled.
    Leaving the loop does not stop the run. A later iteration continues after the last event.
    """

    def __init__(self, engine: Engine, group: TaskGroup, source: RunSource) -> None:
        self._engine = engine
        self._group = group
        self._source = source
        self._started = False
        self._start_lock = anyio.Lock()
        self._submitted: Submitted | None = None
        self._ready: deque[Event] = deque()
        self._watch: AsyncGenerator[tuple[Event, ...], None] | None = None
        self._interrupt = anyio.CancelScope()
        self._seq = 0
        self._through = -1
        """Sequence number of the last event before the run ends or waits; -1 = not known yet."""
        self._failure: MootError | None = None
        self._run: Run | None = None
        self._message: Message | None = None
        self._value: Any = None

    def __del__(self) -> None:
        if not self._started:
            warnings.warn("A moot run was created but never started. Await it or iterate over it.", RuntimeWarning, stacklevel=2)

    # ── while running ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> LiveRun[T]:
        """Start the run without waiting for events, and return this object. Raise UsageError, Busy or StoreError if it can't start."""
        await self._ensure_started()
        return self

    async def cancel(self) -> None:
        """Cancel the run in any process; its output so far is kept. A run that has ended is not changed."""
        await self._engine.runs.cancel((await self._ensure_started()).run.id)

    async def steer(self, text: str) -> None:
        """Send a message to the live run, which receives it before its next step."""
        conversation = (await self._ensure_started()).conversation.id
        await self._engine.runs.submit(Prompt((text_part(text),), conversation=conversation, on_busy="steer", trigger="api"))

    def __aiter__(self) -> LiveRun[T]:
        return self

    async def __anext__(self) -> Event:
        submitted = await self._ensure_started()
        while not self._ready:
            if self._run is not None:
                raise self._failure or StopAsyncIteration
            if self._seq >= self._through >= 0:
                await self._settle(submitted)
            else:
                await self._read(submitted)
        return self._ready.popleft()

    def __await__(self) -> Generator[Any, None, LiveRun[T]]:
        return self._finish().__await__()

    # ── results ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def conversation(self) -> str:
        """Id of the conversation; available after the start."""
        return self._require_started().conversation.id

    @property
    def run(self) -> Run:
        """The stored run: id, status and times. Updated when the run ends."""
        return self._run or self._require_started().run

    @property
    def message(self) -> Message:
        """The complete message that the run wrote: reasoning, tool calls and text."""
        if self._message is None:
            raise UsageError("The run has not ended yet.", fix="Await it, or iterate to its end.")
        return self._message

    @property
    def text(self) -> str:
        """The answer: the text after the last tool call."""
        parts = in_history(self.message.parts)
        calls = [index for index, part in enumerate(parts) if is_tool(part)]
        return text_of(parts[calls[-1] + 1 if calls else 0 :])

    @property
    def value(self) -> T:
        """The structured answer: an instance of the schema's pydantic model, or JSON for a JSON Schema. None without a schema."""
        assert self.message is not None
        return self._value

    @property
    def usage(self) -> Usage:
        """Tokens used by all model calls of the run."""
        return self.run.usage

    @property
    def cost(self) -> float | None:
        """Cost in dollars, or None if unknown."""
        return None if self.run.cost is None else self.run.cost / NANO

    @property
    def denied(self) -> tuple[str, ...]:
        """Names of tools whose calls were denied because no one could be asked."""
        return tuple(tool_name(part) for part in self.message.parts if _was_denied(part))

    # ── following ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _finish(self) -> LiveRun[T]:
        async for _ in self:
            pass
        return self

    async def _ensure_started(self) -> Submitted:
        self._started = True
        async with self._start_lock:
            if self._submitted is None:
                self._submitted = await self._source.start_run()
                self._seq = self._submitted.seq
                self._group.start_soon(self._watch_end, self._submitted)
        return self._submitted

    def _require_started(self) -> Submitted:
        if self._submitted is None:
            raise UsageError("The run has not started yet.", fix="Await it, iterate over it, or call start().")
        return self._submitted

    async def _watch_end(self, submitted: Submitted) -> None:
        """Wait until the run ends or waits for an answer, then interrupt the reader if it has read everything."""
        try:
            await self._engine.runs.wait(submitted.run.id)
            self._through = await self._engine.store.log.last_seq(submitted.conversation.id)
        except MootError as error:
            self._failure = error
        if self._failure is not None or self._seq >= self._through:
            self._interrupt.cancel()

    async def _read(self, submitted: Submitted) -> None:
        """Read the next events, or none when interrupted."""
        if self._failure is not None:
            raise self._failure
        with anyio.CancelScope() as self._interrupt:
            if self._watch is None:
                self._watch = self._engine.tail.watch(submitted.conversation.id, after=self._seq)
            try:
                events = await anext(self._watch)
            except BaseException:
                self._watch = None  # an interrupted generator yields nothing more; a new one continues after the last event
                raise
            self._seq = events[-1].seq
            self._ready.extend(event for event in events if event.run == submitted.run.id)

    async def _settle(self, submitted: Submitted) -> None:
        """Answer the approvals of a waiting run, or record the end of the run."""
        self._through = -1
        run = await self._engine.store.records.run(submitted.run.id)
        if run.status not in ("queued", "running", "waiting"):
            await self._end(run)
            return
        if run.status == "waiting":
            await self._answer(run, submitted.conversation.directory)
        self._group.start_soon(self._watch_end, submitted)

    async def _answer(self, run: Run, directory: str) -> None:
        source = self._source
        approvals = [one for one in await self._engine.store.records.approvals(run=run.id, tree=True) if not one.by_client]
        if source.on_approval is None and source.on_question is None:
            await anyio.sleep(_INTERVAL)  # another program has to answer
            return
        for approval in approvals:
            answer = await answer_to(self._engine.settings, approval, directory, source.on_approval, source.on_question)
            with suppress(Busy, NotFound):  # another program has answered, or it has expired
                await self._engine.runs.answer(approval.id, answer)
        if (await self._engine.store.records.run(run.id)).status == "waiting":
            with suppress(Busy, UsageError):  # another process resumed it, it waits for more answers, or it has ended
                await self._engine.runs.resume(run.id)

    async def _end(self, run: Run) -> None:
        await self.aclose()
        self._message = await self._engine.store.conversations.message(run.message)
        self._run = run
        self._failure = failure_of(run)
        if self._failure is None and self._source.schema is not None and not is_withheld(self._message.metadata):
            try:
                self._value = await _value(self._message, self._source.schema)
            except (OutputContract, UsageError) as error:
                self._failure = error

    async def aclose(self) -> None:
        """Stop receiving events from the run. The run itself continues."""
        watch, self._watch = self._watch, None
        if watch is not None:
            await watch.aclose()


async def _value(message: Message, schema: Schema) -> Any:
    """Return the answer as the schema's type. Raise OutputContract if it does not match."""
    if isinstance(schema, dict):
        return await check_answer(message, schema)
    value = await check_answer(message, {})
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        raise OutputContract(f"The answer does not match {schema.__name__}: {error}", fix="Try again, or use another model.") from error


def _was_denied(part: Part) -> bool:
    if not is_tool(part):
        return False
    approval = part.get("approval")
    reason = approval.get("reason") if isinstance(approval, dict) else None
    return NO_ONE_AVAILABLE in (part.get("errorText"), reason)
