"""A run in a program: iterate for its events, await for its result."""

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
from moot.runtime.requests import NO_ONE_AVAILABLE
from moot.types.event import Event
from moot.types.message import Message, Part, is_tool, text_of, text_part, tool_name
from moot.types.run import Prompt, Run, Submitted
from moot.types.usage import Usage

_BY_CODE: dict[str, type[MootError]] = {
    kind.code: kind for name in errors.__all__ if issubclass(kind := getattr(errors, name), MootError) and kind is not MootError
}


def failure_of(run: Run) -> MootError | None:
    """What to raise for a run that has ended or stopped; None for a finished one."""
    if run.status == "finished":
        return None
    if run.status == "cancelled":
        return Cancelled(f"the run {run.id!r} was cancelled; what was said so far is kept")
    if run.status == "interrupted":
        return StoreError(f"the run {run.id!r} was interrupted: the process that drove it is gone", fix="take it up with m.resume(…)")
    failure = run.error
    if failure is None:
        return MootError(f"the run {run.id!r} is {run.status}")
    if failure.kind == "deadline":
        return LimitReached(failure.message, fix=failure.fix)
    if failure.kind == "internal":
        return MootError(failure.message)
    kind = _BY_CODE.get(failure.kind)
    if kind is not None and kind is not ProviderError:
        return kind(failure.message, fix=failure.fix)
    return ProviderError(failure.message, fix=failure.fix, kind=failure.kind, retryable=failure.retryable, retry_after=failure.retry_after)


T = TypeVar("T", covariant=True)

_LOOK = 0.25
"""Seconds between two looks at a run that waits for somebody else's answer."""


@dataclass(frozen=True, slots=True)
class Following:
    """How a run is begun or found, and who answers for a person meanwhile."""

    begin: Callable[[], Awaitable[Submitted]]
    schema: Schema | None = None
    on_approval: OnApproval | None = None
    on_question: OnQuestion | None = None


class LiveRun(Generic[T]):
    """A run that begins when it is iterated, awaited or started.

    `async for event in run` gives its events, each after it was stored; `await run` goes to its end and gives the run itself, with its
    `text`, `message`, `usage` and so on, which can be read once it has ended. Both raise the MootError that the run failed with,
    Cancelled when it was stopped. The run belongs to moot and not to the loop: leaving the loop leaves it running, and a later
    iteration goes on behind the last event that was seen.
    """

    def __init__(self, engine: Engine, group: TaskGroup, following: Following) -> None:
        self._engine = engine
        self._group = group
        self._following = following
        self._wanted = False
        self._beginning = anyio.Lock()
        self._submitted: Submitted | None = None
        self._ready: deque[Event] = deque()
        self._watch: AsyncGenerator[tuple[Event, ...], None] | None = None
        self._bell = anyio.CancelScope()
        self._seq = 0
        self._through = -1
        """The seq behind which the run says nothing more for now; -1 = not known yet."""
        self._failure: MootError | None = None
        self._run: Run | None = None
        self._message: Message | None = None
        self._value: Any = None

    def __del__(self) -> None:
        if not self._wanted:
            warnings.warn("a moot run was made and never begun: await it, or iterate it", RuntimeWarning, stacklevel=2)

    # ── before and while ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> LiveRun[T]:
        """Begins it without following it; the run itself. Raises UsageError, Busy, StoreError."""
        await self._begun()
        return self

    async def cancel(self) -> None:
        """Stops it, wherever it runs; what was said so far is kept. Nothing happens when it has ended."""
        await self._engine.runs.cancel((await self._begun()).run.id)

    async def steer(self, text: str) -> None:
        """Says something to the live run, which it hears before its next step."""
        conversation = (await self._begun()).conversation.id
        await self._engine.runs.submit(Prompt((text_part(text),), conversation=conversation, on_busy="steer", trigger="api"))

    def __aiter__(self) -> LiveRun[T]:
        return self

    async def __anext__(self) -> Event:
        submitted = await self._begun()
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

    # ── afterwards ────────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def conversation(self) -> str:
        """The id of its conversation; known once it has begun."""
        return self._known().conversation.id

    @property
    def run(self) -> Run:
        """The run as it is stored: its id, status, times; as it began until it has ended."""
        return self._run or self._known().run

    @property
    def message(self) -> Message:
        """The whole message with all its parts: reasoning, tool calls, text."""
        if self._message is None:
            raise UsageError("the run has not ended yet", fix="await it, or iterate it to its end")
        return self._message

    @property
    def text(self) -> str:
        """The answer: what was said after the last tool call."""
        parts = in_history(self.message.parts)
        calls = [index for index, part in enumerate(parts) if is_tool(part)]
        return text_of(parts[calls[-1] + 1 if calls else 0 :])

    @property
    def value(self) -> T:
        """The answer as the schema has it: an instance of the model, or JSON; None without a schema."""
        assert self.message is not None
        return self._value

    @property
    def usage(self) -> Usage:
        """Tokens of all its model calls."""
        return self.run.usage

    @property
    def cost(self) -> float | None:
        """Dollars; None = not known."""
        return None if self.run.cost is None else self.run.cost / NANO

    @property
    def denied(self) -> tuple[str, ...]:
        """The tools whose calls were denied because nobody was there to ask."""
        return tuple(tool_name(part) for part in self.message.parts if _was_denied(part))

    # ── following ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _finish(self) -> LiveRun[T]:
        async for _ in self:
            pass
        return self

    async def _begun(self) -> Submitted:
        self._wanted = True
        async with self._beginning:
            if self._submitted is None:
                self._submitted = await self._following.begin()
                self._seq = self._submitted.seq
                self._group.start_soon(self._attend, self._submitted)
        return self._submitted

    def _known(self) -> Submitted:
        if self._submitted is None:
            raise UsageError("the run has not begun yet", fix="await it, iterate it, or call its start()")
        return self._submitted

    async def _attend(self, submitted: Submitted) -> None:
        """Learns when the run says nothing more for now: it has ended, or it waits."""
        try:
            await self._engine.runs.wait(submitted.run.id)
            self._through = await self._engine.store.log.last_seq(submitted.conversation.id)
        except MootError as error:
            self._failure = error
        if self._failure is not None or self._seq >= self._through:
            self._bell.cancel()

    async def _read(self, submitted: Submitted) -> None:
        """Takes in the next events, or none when the bell rings."""
        if self._failure is not None:
            raise self._failure
        with anyio.CancelScope() as self._bell:
            if self._watch is None:
                self._watch = self._engine.tail.watch(submitted.conversation.id, after=self._seq)
            try:
                events = await anext(self._watch)
            except BaseException:
                self._watch = None  # a generator that was cut off gives nothing more; the next one goes on where this one stood
                raise
            self._seq = events[-1].seq
            self._ready.extend(event for event in events if event.run == submitted.run.id)

    async def _settle(self, submitted: Submitted) -> None:
        """Answers what a waiting run asks; else takes down how the run ended."""
        self._through = -1
        run = await self._engine.store.records.run(submitted.run.id)
        if run.status in ("queued", "running"):
            pass
        elif run.status == "waiting":
            await self._answer(run, submitted.conversation.directory)
        else:
            await self._end(run)
            return
        self._group.start_soon(self._attend, submitted)

    async def _answer(self, run: Run, directory: str) -> None:
        following = self._following
        asked = [one for one in await self._engine.store.records.approvals(run=run.id) if not one.by_client]
        if following.on_approval is None and following.on_question is None:
            await anyio.sleep(_LOOK)  # somebody else answers
            return
        for approval in asked:
            answer = await answer_to(approval, directory, following.on_approval, following.on_question)
            with suppress(Busy, NotFound):  # answered elsewhere, or expired
                await self._engine.runs.answer(approval.id, answer)
        if (await self._engine.store.records.run(run.id)).status == "waiting":
            with suppress(Busy):  # somebody else took it up, or more is asked
                await self._engine.runs.resume(run.id)

    async def _end(self, run: Run) -> None:
        await self.aclose()
        self._message = await self._engine.store.conversations.message(run.message)
        self._run = run
        self._failure = failure_of(run)
        if self._failure is None and self._following.schema is not None:
            try:
                self._value = await _value(self._message, self._following.schema)
            except (OutputContract, UsageError) as error:
                self._failure = error

    async def aclose(self) -> None:
        """Stops following it; the run goes on."""
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
