"""One turn of an outside agent: an exchange in the log that contains every line in both directions and the translator's chunks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import anyio

from moot.agents.journal import Timing, answer_metadata
from moot.config.secrets import is_secret
from moot.guard.secrets import HIDDEN, SHORTEST
from moot.types import chunk
from moot.types.agent import McpServer
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.context import RunContext
from moot.types.crash import point
from moot.types.event import SENT, Event, Raw
from moot.types.exchange import Ended, Ending, Exchange, ExchangeOptions, Failure, end_body, start_body
from moot.types.ids import exchange_id, llm_key
from moot.types.message import is_tool
from moot.types.provider import ReadsSentLines, Translator
from moot.types.run import RunRequest
from moot.types.store import CloseExchange, OpenExchange


def unavailable_note(name: str, why: str) -> Event:
    """Return a note for the answer, saying that an MCP server is not available."""
    text = f"The MCP server {name!r} can't be reached: {why}" if why else f"The MCP server {name!r} can't be reached."
    return Event("chunks", (chunk.data("note", {"text": text}, id=f"mcp:{name}"),))


def redactor(servers: Sequence[McpServer]) -> Callable[[bytes], bytes]:
    """Return a function that removes the secrets of MCP servers from a line:
    values of headers, and of environment variables whose names suggest a secret.
    """
    values = {value for server in servers for value in server.headers.values()}
    values |= {value for server in servers for name, value in server.env.items() if is_secret(("env", name))}
    secrets = [dumps(value)[1:-1] for value in sorted(values, key=len, reverse=True) if len(value) >= SHORTEST]

    def hidden(line: bytes) -> bytes:
        for secret in secrets:
            line = line.replace(secret, HIDDEN.encode())
        return line

    return hidden


_PATIENCE = 2.0
"""Maximum number of seconds for closing the turn when everything else is being cancelled."""


class Turn:
    """A turn, started by `begin` and ended by `close`. `record_received` and `record_sent` may be called from any task."""

    def __init__(self, request: RunRequest, context: RunContext, translator: Translator[Any], exchange: Exchange, number: int) -> None:
        self.request = request
        self.context = context
        self.number = number
        """Number of the turn in its run, from 1."""
        self.exchange = exchange
        self.ending: Ending | None = None
        """Set when the turn is closed."""
        self._translator = translator
        self._hears = translator if isinstance(translator, ReadsSentLines) else None
        self._state = translator.open(exchange.options)
        self._order = anyio.Lock()
        self._hidden = redactor(request.servers)
        self._began = context.ports.now()
        self._waited = context.waited
        self._first = 0
        """Time of the turn's first visible output; 0 if there is none yet."""

    @classmethod
    async def begin(
        cls,
        request: RunRequest,
        context: RunContext,
        translator: Translator[Any],
        *,
        number: int,
        prompt: bytes,
        model: str = "",
        extra: JsonObject | None = None,
    ) -> Turn:
        """Open the exchange. `prompt` is the agent's input. `extra` is JSON to pass to the translator."""
        service = request.run.agent_type
        pieces = await context.ports.blobs.stage((prompt,), "text/plain")
        ids = tuple(str(part.get("toolCallId")) for part in context.message().parts if is_tool(part))
        exchange = Exchange(
            id=exchange_id(request.run.id, number, 0),
            run=request.run.id,
            conversation=request.conversation.id,
            purpose="answer",
            dialect=service,
            converter=f"{translator.name}/{translator.version}",
            provider=service,
            model=model,
            options=ExchangeOptions(f"{number}.0", number, ids, extra or {}),
            request={"pieces": pieces.hashes},
        )
        translator_options: JsonObject = {"tool_call_ids": list[Json](ids), "extra": exchange.options.extra}
        # the model is the agent's own: `model@provider` would become the conversation's model
        body: JsonObject = {**start_body(exchange, ""), "converter": exchange.converter, "options": translator_options}
        head = Event("exchange", exchange=exchange.id, phase="start", key=llm_key(number, 0), body=body)
        await context.append(head, changes=(OpenExchange(exchange, pieces),))
        point("agent.begun")
        return cls(request, context, translator, exchange, number)

    @property
    def state(self) -> Any:
        """Return the translator's state, which includes lines that are still being committed."""
        return self._state

    async def record_received(self, *lines: Raw) -> None:
        """Record the lines of one read, including line ends, in a single append. Shielded from cancellation."""
        await self._record(lines, sent=False)

    async def record_sent(self, line: Raw) -> None:
        """Record a line that moot is about to send, without the keys of MCP servers. The line must not contain other secrets."""
        await self._record((self._hidden(line),), sent=True)

    async def _record(self, lines: tuple[Raw, ...], *, sent: bool) -> None:
        with anyio.CancelScope(shield=True):  # the log must contain all lines that the translator has processed
            async with self._order:
                events = [self._event(line, sent=sent) for line in lines]
                if events:
                    finished = any(piece["type"] == "finish-step" for event in events for piece in event.chunks)
                    await self.context.append(*events, fold=finished)
                point("agent.line")

    def _event(self, line: Raw, *, sent: bool) -> Event:
        chunks: tuple[Chunk, ...] = ()
        if not sent:
            self._state, chunks = self._translator.feed(self._state, line)
            if not self._first and any(piece["type"] != "start-step" for piece in chunks):
                self._first = self.context.ports.now()
        elif self._hears is not None:
            self._state, chunks = self._hears.said(self._state, line)
        return Event("raw", chunks, line, exchange=self.exchange.id, body=SENT if sent else None)

    async def close(self, ended: Ended, failure: Failure | None = None) -> Ending:
        """Close open parts and write the exchange's end, once. Shielded from cancellation. `failure` replaces the agent's own error."""
        if self.ending is not None:
            return self.ending
        with anyio.CancelScope(shield=True), anyio.move_on_after(_PATIENCE):
            async with self._order:
                chunks, ending = self._translator.close(self._state, ended)
                if failure is not None:
                    ending = dataclasses.replace(ending, finish_reason="error", error=failure)
                self.ending = ending
                body = end_body(ending, ended, ending.cost, failure)
                end = Event("exchange", chunks, None, None, self.exchange.id, "end", llm_key(self.number, 0), body)
                about = Event("chunks", (chunk.message_metadata(self._facts(ending)),))
                await self.context.append(end, about, changes=(CloseExchange(self.exchange.id, ended),), fold=True)
                point("agent.closed")
        assert self.ending is not None
        return self.ending

    def _facts(self, ending: Ending) -> JsonObject:
        model = ending.metadata.get("model", self.exchange.model)
        step: JsonObject = {"step": self.number, "model": model}
        agent, service = self.request.run.agent, self.request.run.agent_type
        worked_until = self.context.ports.now() - (self.context.waited - self._waited)
        timing = Timing(self._began, worked_until, self._first)
        facts = answer_metadata(self.context, ending, step, ending.cost, timing, agent=agent, model=model, provider=service)
        if isinstance(used := ending.metadata.get("context_usage"), int | float):
            facts["context_usage"] = used
        return facts
