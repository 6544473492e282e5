"""Spans and metrics of runs, model calls and tool calls, made from committed events.

The names are those of OpenTelemetry's semantic conventions for generative AI, from the package opentelemetry-semantic-conventions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeAlias

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.metrics import Meter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai  # pyright: ignore[reportMissingTypeStubs]
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics  # pyright: ignore[reportMissingTypeStubs]
from opentelemetry.semconv.attributes import error_attributes, server_attributes
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from moot.convert.vendor import as_object
from moot.errors import MootError
from moot.providers.pool import Providers
from moot.runtime.telemetry.content import Answer, Content
from moot.types.canonical import JsonObject
from moot.types.event import Event
from moot.types.model import ModelId
from moot.types.run import TERMINAL, Run
from moot.types.store import RunSnapshot, Store
from moot.types.telemetry import CURRENT, OUTGOING, TRACEPARENT, ObservedLeg, valid_traceparent
from moot.types.usage import Usage

RUN, RUN_STATUS, AGENT_TYPE, COST = "moot.run.id", "moot.run.status", "moot.agent.type", "moot.cost.usd"
"""Attributes for facts that have no name in the conventions."""

OTHER = "_OTHER"
"""Value of `error.type` for errors without a kind."""

_OUTPUTS = ("tool-output-available", "tool-output-error")
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FIRST_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_TOKENS = tuple(float(4**power) for power in range(14))

Value: TypeAlias = str | int | float | bool | Sequence[str]
Attributes: TypeAlias = dict[str, Value]

log = logging.getLogger("moot.telemetry")

_TRACE: ContextVar[int] = ContextVar("moot_trace_id", default=0)
_W3C = TraceContextTextMapPropagator()


class RunIds(RandomIdGenerator):
    """Random ids, except that all legs of a run without a parent have the same trace id, even in different processes."""

    def generate_trace_id(self) -> int:
        return _TRACE.get() or super().generate_trace_id()


def trace_id_of(run: str) -> int:
    """Return the trace id of a run that has no parent."""
    return int.from_bytes(blake2b(run.encode(), digest_size=16).digest()) or 1


def header_of(span: Span) -> str:
    """Return the span's context as a `traceparent`."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}" if context.is_valid else ""


def _context_of(header: str) -> Context:
    """Return the context of a `traceparent`, or an empty one."""
    return _W3C.extract({TRACEPARENT: header}, Context()) if header else Context()


def _nanoseconds(at: int) -> int | None:
    """Return a time in µs as a span's time; None = now."""
    return at * 1000 if at else None


@dataclass(slots=True)
class _Operation:
    """A span in progress, with the attributes of its metrics."""

    span: Span
    began: int
    """Start in µs."""
    metrics: Attributes
    answer: Answer | None = None
    first: int = 0
    """Time of the first chunk in µs; 0 = none yet."""
    outer: str = ""
    """The task's trace context before this operation."""

    def fail(self, kind: str) -> None:
        self.metrics[error_attributes.ERROR_TYPE] = kind
        self.span.set_attribute(error_attributes.ERROR_TYPE, kind)
        if kind != "cancelled":
            self.span.set_status(Status(StatusCode.ERROR))


@dataclass(slots=True)
class _Leg:
    """A leg in progress. Implements `ObservedLeg`."""

    operation: _Operation
    conversation: str
    is_outside: bool
    """True if an outside agent runs its own tools."""
    run: Run | None = None
    open: dict[str, _Operation] = field(default_factory=dict[str, _Operation])
    """Unfinished tool calls by their key or, for outside agents, by the call's id."""
    arguments: dict[str, str] = field(default_factory=dict[str, str])
    """If content is on: the arguments of the calls that the model has made, by the call's id."""


class Tracing:
    """The `Telemetry` of a process."""

    def __init__(
        self,
        tracer: Tracer,
        meter: Meter,
        store: Store,
        providers: Providers,
        *,
        content: Content | None = None,
        propagate: bool = False,
        flush: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`content` is None if content must not leave the process. `flush` is awaited at the end."""
        self._tracer, self._store, self._providers = tracer, store, providers
        self._content, self._propagate, self._flush = content, propagate, flush
        self._legs: dict[str, _Leg] = {}
        self._calls: dict[str, _Operation] = {}
        """Unfinished model calls by exchange."""
        create = meter.create_histogram
        duration, usage = gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION, gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE
        first = gen_ai_metrics.GEN_AI_CLIENT_OPERATION_TIME_TO_FIRST_CHUNK
        self._duration = create(duration, "s", "Duration of an operation.", explicit_bucket_boundaries_advisory=_SECONDS)
        self._tokens = create(usage, "{token}", "Number of tokens used.", explicit_bucket_boundaries_advisory=_TOKENS)
        self._first = create(first, "s", "Time until the first chunk.", explicit_bucket_boundaries_advisory=_FIRST_SECONDS)

    def traceparent(self) -> str:
        return CURRENT.get() or header_of(trace.get_current_span())  # the latter is a span of the program that uses the library

    async def aclose(self) -> None:
        for leg in self._legs.values():
            self._end(leg.operation, 0)
        for call in self._calls.values():
            self._end(call, 0)
        if self._flush is not None:
            await self._flush()

    # ── runs ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def leg(self, snapshot: RunSnapshot) -> AbstractAsyncContextManager[ObservedLeg]:
        return self._observe(snapshot)

    @asynccontextmanager
    async def _observe(self, snapshot: RunSnapshot) -> AsyncGenerator[_Leg]:
        run = snapshot.run
        attributes: Attributes = {
            gen_ai.GEN_AI_PROVIDER_NAME: run.agent_type,
            gen_ai.GEN_AI_AGENT_NAME: run.agent,
            gen_ai.GEN_AI_CONVERSATION_ID: run.conversation,
            RUN: run.id,
            AGENT_TYPE: run.agent_type,
        }
        if run.model:
            attributes[gen_ai.GEN_AI_REQUEST_MODEL] = ModelId.parse(run.model).model
        if self._content is not None and snapshot.message.parent is not None:
            attributes |= await self._stored("user", snapshot.message.parent)
        header = run.settings.get(TRACEPARENT)
        parent = valid_traceparent(header) if isinstance(header, str) else ""
        token = _TRACE.set(0 if parent else trace_id_of(run.id))
        try:
            operation = self._start("invoke_agent", run.agent, parent, SpanKind.INTERNAL, time.time_ns() // 1000, attributes)
        finally:
            _TRACE.reset(token)
        leg = self._legs[run.id] = _Leg(operation, run.conversation, run.agent_type != "moot")
        before = CURRENT.set(header_of(operation.span))
        try:
            yield leg
        finally:
            del self._legs[run.id]
            CURRENT.reset(before)
            await self._end_leg(leg)

    async def _end_leg(self, leg: _Leg) -> None:
        for call in leg.open.values():
            self._end(call, 0)
        run, span = leg.run, leg.operation.span
        if run is None:
            leg.operation.fail("interrupted")
        else:
            span.set_attribute(RUN_STATUS, run.status)
            if run.status in TERMINAL:
                _set_usage(span, run.usage, run.cost)
                if self._content is not None:
                    span.set_attributes(await self._stored("assistant", run.message))
            if run.status in ("failed", "cancelled"):
                leg.operation.fail(run.error.kind if run.error is not None else run.status)
        self._end(leg.operation, 0)

    async def _stored(self, role: str, message: str) -> Attributes:
        """Return the attribute with the text of a stored message."""
        assert self._content is not None
        try:
            parts = (await self._store.conversations.message(message)).parts
        except MootError:  # it was deleted, or the store fails, which the run reports
            return {}
        name = gen_ai.GEN_AI_INPUT_MESSAGES if role == "user" else gen_ai.GEN_AI_OUTPUT_MESSAGES
        return {name: self._content.stored(role, parts)}

    # ── events ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def record(self, events: Sequence[Event]) -> None:
        try:
            self._record(events)
        except Exception:  # a run must not fail because it is observed
            log.exception("telemetry could not record an event")

    def _record(self, events: Sequence[Event]) -> None:
        for event in events:
            leg = self._legs.get(event.run) if event.run is not None else None
            if event.kind == "exchange" and event.exchange is not None:
                self._record_exchange(event, event.exchange)
            elif event.key is not None and event.key.startswith("tool:") and leg is not None:
                self._record_tool(leg, event, event.key)
            elif event.exchange is not None and (call := self._calls.get(event.exchange)) is not None:
                call.first = call.first or (event.at if event.raw is not None and event.body is None else 0)
                if call.answer is not None:
                    self._collect(leg, call.answer, event)
            if leg is not None and leg.is_outside and event.chunks:
                self._record_outside(leg, event)

    def _record_exchange(self, event: Event, exchange: str) -> None:
        body = as_object(event.body)
        if event.phase == "start":
            model = str(body.get("model") or "")
            if model:  # outside agents make their own model calls, and their exchanges name no model
                self._start_call(event, exchange, ModelId.parse(model))
        elif event.phase == "end" and (call := self._calls.pop(exchange, None)) is not None:
            if call.answer is not None:
                self._collect(self._legs.get(event.run or ""), call.answer, event)
            self._end_call(call, event, body)

    def _start_call(self, event: Event, exchange: str, model: ModelId) -> None:
        metrics: Attributes = {
            gen_ai.GEN_AI_PROVIDER_NAME: self._vendor(model.provider),
            gen_ai.GEN_AI_REQUEST_MODEL: model.model,
            **self._server(model.provider),
        }
        more: Attributes = {gen_ai.GEN_AI_REQUEST_STREAM: True}
        leg = self._legs.get(event.run) if event.run is not None else None
        parent = header_of(leg.operation.span) if leg is not None else CURRENT.get()
        # the id of an exchange outside of runs starts with its conversation
        more[gen_ai.GEN_AI_CONVERSATION_ID] = leg.conversation if leg is not None else exchange.partition(":")[0]
        if event.run is not None:
            more[RUN] = event.run
        call = self._start("chat", model.model, parent, SpanKind.CLIENT, event.at, metrics, more)
        call.answer = Answer(self._content) if self._content is not None else None
        self._calls[exchange] = call
        if self._propagate:
            OUTGOING.set(header_of(call.span))

    def _end_call(self, call: _Operation, event: Event, body: JsonObject) -> None:
        OUTGOING.set("")
        span, facts, reason = call.span, as_object(body.get("metadata")), str(body.get("finish_reason") or "other")
        usage, cost = Usage.from_json(as_object(body.get("usage"))), body.get("charged")
        span.set_attribute(gen_ai.GEN_AI_RESPONSE_FINISH_REASONS, [reason])
        _set_usage(span, usage, cost if isinstance(cost, int) else None)
        if isinstance(id := facts.get("response_id"), str):
            span.set_attribute(gen_ai.GEN_AI_RESPONSE_ID, id)
        if isinstance(model := facts.get("model"), str):
            span.set_attribute(gen_ai.GEN_AI_RESPONSE_MODEL, model)
            call.metrics[gen_ai.GEN_AI_RESPONSE_MODEL] = model
        if call.answer is not None:
            span.set_attribute(gen_ai.GEN_AI_OUTPUT_MESSAGES, call.answer.message(reason))
        if body.get("ended") == "cancelled":
            call.fail("cancelled")
        elif error := as_object(body.get("error")):
            call.fail(str(error.get("kind") or OTHER))
        if call.first:
            seconds = max(0, call.first - call.began) / 1e6
            span.set_attribute(gen_ai.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK, seconds)
            self._first.record(seconds, call.metrics)
        for kind, tokens in (("input", usage.input), ("output", usage.output)):
            if tokens is not None:
                self._tokens.record(tokens, {**call.metrics, gen_ai.GEN_AI_TOKEN_TYPE: kind})
        self._end(call, event.at)

    def _record_tool(self, leg: _Leg, event: Event, key: str) -> None:
        body = as_object(event.body)
        if event.phase == "start":
            leg.open[key] = self._start_tool(leg, str(body.get("tool") or OTHER), str(body.get("call") or ""), event.at)
            CURRENT.set(header_of(leg.open[key].span))
        elif event.phase == "end" and (call := leg.open.pop(key, None)) is not None:
            CURRENT.set(call.outer)
            if body.get("unknown") is True or as_object(body.get("value")).get("error") is True:
                call.fail("tool_error")
            self._end_tool(call, event)

    def _record_outside(self, leg: _Leg, event: Event) -> None:
        for chunk in event.chunks:
            kind, id = chunk["type"], str(chunk.get("toolCallId"))
            if kind == "tool-input-available" and id not in leg.open:
                if self._content is not None:
                    leg.arguments[id] = self._content.json(chunk.get("input"))
                leg.open[id] = self._start_tool(leg, str(chunk.get("toolName") or OTHER), id, event.at)
            elif kind in _OUTPUTS and not chunk.get("preliminary") and (call := leg.open.pop(id, None)) is not None:
                if kind == "tool-output-error":
                    call.fail("tool_error")
                self._end_tool(call, event._replace(chunks=(chunk,)))

    def _collect(self, leg: _Leg | None, answer: Answer, event: Event) -> None:
        answer.add(event.chunks)
        for chunk in event.chunks if leg is not None and self._content is not None else ():
            if leg is not None and self._content is not None and chunk["type"] == "tool-input-available":
                leg.arguments[str(chunk.get("toolCallId"))] = self._content.json(chunk.get("input"))

    def _start_tool(self, leg: _Leg, tool: str, id: str, at: int) -> _Operation:
        more: Attributes = {gen_ai.GEN_AI_TOOL_NAME: tool, gen_ai.GEN_AI_TOOL_TYPE: "function", gen_ai.GEN_AI_TOOL_CALL_ID: id}
        if (arguments := leg.arguments.pop(id, None)) is not None:
            more[gen_ai.GEN_AI_TOOL_CALL_ARGUMENTS] = arguments
        return self._start("execute_tool", tool, header_of(leg.operation.span), SpanKind.INTERNAL, at, {}, more)

    def _end_tool(self, call: _Operation, event: Event) -> None:
        for chunk in event.chunks if self._content is not None else ():
            if self._content is not None and chunk["type"] in _OUTPUTS:
                result = chunk.get("errorText") if chunk["type"] == "tool-output-error" else chunk.get("output")
                call.span.set_attribute(gen_ai.GEN_AI_TOOL_CALL_RESULT, self._content.json(result))
        self._end(call, event.at)

    # ── shared ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(
        self, name: str, target: str, parent: str, kind: SpanKind, at: int, metrics: Attributes, more: Attributes | None = None
    ) -> _Operation:
        """Start a span. `metrics` are the attributes that its metrics have too."""
        shared: Attributes = {gen_ai.GEN_AI_OPERATION_NAME: name, **metrics}
        span = self._tracer.start_span(
            f"{name} {target}", _context_of(parent), kind, {**shared, **(more or {})}, start_time=_nanoseconds(at)
        )
        measured = (gen_ai.GEN_AI_CONVERSATION_ID, RUN, gen_ai.GEN_AI_INPUT_MESSAGES)  # too many values for metrics
        shared = {key: value for key, value in shared.items() if key not in measured}
        return _Operation(span, at, shared, outer=CURRENT.get())

    def _end(self, operation: _Operation, at: int) -> None:
        """End a span at a time in µs; 0 = now."""
        at = at or time.time_ns() // 1000
        self._duration.record(max(0, at - operation.began) / 1e6, operation.metrics)
        operation.span.end(_nanoseconds(at))

    def _vendor(self, provider: str) -> str:
        """Return a provider's name in the conventions."""
        try:
            facts = self._providers.facts(provider)
        except MootError:
            return provider
        return facts.telemetry_name or facts.name or provider

    def _server(self, provider: str) -> Attributes:
        """Return host and port of a provider, without the path, which may contain secrets."""
        try:
            base = getattr(self._providers.provider(provider), "base", None)
        except MootError:  # it was disabled meanwhile
            return {}
        host, port = getattr(base, "hostname", None), getattr(base, "port", None)
        if not isinstance(host, str):
            return {}
        port = port or (443 if getattr(base, "scheme", "") == "https" else 80)
        return {server_attributes.SERVER_ADDRESS: host, server_attributes.SERVER_PORT: port}


def _set_usage(span: Span, usage: Usage, cost: int | None) -> None:
    """Add token counts, and a cost in nano-dollars, to a span."""
    counts = {
        gen_ai.GEN_AI_USAGE_INPUT_TOKENS: usage.input,
        gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS: usage.output,
        gen_ai.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: usage.cache_read,
        gen_ai.GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS: usage.cache_write,
        gen_ai.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: usage.reasoning,
    }
    span.set_attributes({name: count for name, count in counts.items() if count is not None})
    if cost is not None:
        span.set_attribute(COST, cost / 1e9)
