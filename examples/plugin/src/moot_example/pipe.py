"""The agent service `pipe`: a command reads the prompt from stdin and writes the answer line by line.

agents:
  shouter: {agent_type: pipe, options: {command: [tr, a-z, A-Z]}}
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

import anyio

from moot.errors import ConfigError
from moot.guard.processes import Child, kill_leftover, spawn
from moot.types import chunk
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.context import Result, RunContext, Unknown
from moot.types.event import Event, Raw
from moot.types.exchange import Ended, Ending, Exchange, ExchangeOptions, Failure
from moot.types.ids import exchange_id, llm_key
from moot.types.message import text_of
from moot.types.run import RunOutcome, RunRequest
from moot.types.store import CloseExchange, OpenExchange

KEY = "pipe:1"
"""Journal key of the only action, running the command."""
STEP, ATTEMPT = 1, 0
LINE = 64 * 1024
"""Length in bytes at which an unterminated line is split."""
PATIENCE = 2.0
CUT_OFF = "the command was interrupted; it is not restarted automatically, because its effects are unknown"


class State(NamedTuple):
    """State of the translator, which must be valid JSON."""

    part: str
    opened: bool


class Lines:
    """A translator of lines into pieces of text. It is pure, so that stored runs can be translated again."""

    name = "pipe"
    version = 1

    def open(self, options: ExchangeOptions) -> State:
        return State(options.prefix, False)

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        start: tuple[Chunk, ...] = () if state.opened else ({"type": "text-start", "id": state.part},)
        delta: Chunk = {"type": "text-delta", "id": state.part, "delta": raw.decode("utf-8", "replace")}
        return State(state.part, True), (*start, delta)

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        end: tuple[Chunk, ...] = ({"type": "text-end", "id": state.part},) if state.opened else ()
        return end, Ending("stop" if ended == "eof" else "error")


class Pipe:
    """A complete agent service: `run`, which reports everything through the context and returns the outcome."""

    trials: Mapping[str, JsonObject] = {
        "answer": {"command": ["cat"]},
        "slow": {"command": ["/bin/sh", "-c", "echo working; exec sleep 60"]},
    }

    async def run(self, request: RunRequest, context: RunContext) -> RunOutcome:
        command = _command(request)
        if context.standing(KEY) == "begun":
            await _close_interrupted_exchange(request, context)

        async def work() -> Result:
            return Result(await _talk(request, context, command))

        # not idempotent: the command is not run again after a crash, nor when a run has ended
        outcome = await context.once(KEY, idempotent=False, work=work, body={"command": list[Json](command)})
        if isinstance(outcome, Unknown):
            await _kill_leftover_process(outcome)
            await context.append(Event("journal", phase="end", key=outcome.key, body={"value": None}), sync=True)
            return RunOutcome("failed", "error", Failure(CUT_OFF, kind="cut"))
        if outcome.value is None:
            return RunOutcome("failed", "error", Failure(CUT_OFF, kind="cut"))
        if outcome.value != 0:
            return RunOutcome("failed", "error", Failure(f"{command[0]!r} ended with exit code {outcome.value}"))
        return RunOutcome("finished")


def _command(request: RunRequest) -> list[str]:
    command = request.agent.options.get("command")
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        return [str(word) for word in command]
    raise ConfigError(f"agents.{request.agent.name}.options.command is {command!r}; expected a list of words, as in [tr, a-z, A-Z]")


async def _talk(request: RunRequest, context: RunContext, command: list[str]) -> int:
    """Run the command and return its exit code. Each line is committed before the next is read; cancellation ends the command."""
    prompt = await _prompt(context)
    exchange = Exchange(
        id=exchange_id(request.run.id, STEP, ATTEMPT),
        run=request.run.id,
        conversation=request.conversation.id,
        purpose="answer",
        dialect="pipe",
        converter=f"{Lines.name}/{Lines.version}",
        provider="pipe",
        model=command[0],
        options=ExchangeOptions(f"{STEP}.{ATTEMPT}", STEP),
        request={"pieces": [(await context.ports.blobs.put(prompt, "text/plain")).sha256]},
    )
    head = Event("exchange", (chunk.START_STEP,), exchange=exchange.id, phase="start", key=llm_key(STEP, ATTEMPT), body={"model": ""})
    await context.append(head, changes=(OpenExchange(exchange),))
    child = await spawn(command, cwd=Path(request.conversation.directory or "."), stdin="pipe", stderr="null")
    translator = Lines()
    state = translator.open(exchange.options)
    ended: Ended = "cancelled"
    try:
        await context.append(Event("journal", key=f"{KEY}.0", body={"pgid": child.group, "started": child.started}), sync=True)
        async with anyio.create_task_group() as group:
            group.start_soon(_feed, child, prompt)
            async with aclosing(_lines(child)) as lines:
                async for line in lines:
                    state, chunks = translator.feed(state, line)
                    await context.append(Event("raw", chunks, line, exchange=exchange.id))
        code = await child.wait()
        ended = "eof"
        return code
    finally:
        await child.kill(0)
        with anyio.CancelScope(shield=True), anyio.move_on_after(PATIENCE):
            await _end(context, exchange.id, *translator.close(state, ended), ended=ended)


async def _end(context: RunContext, exchange: str, chunks: tuple[Chunk, ...], ending: Ending, *, ended: Ended) -> None:
    last = Event("exchange", chunks, exchange=exchange, phase="end", key=llm_key(STEP, ATTEMPT), body={**ending.to_json(), "ended": ended})
    step = Event("chunks", (chunk.FINISH_STEP,), phase="end", key=f"step:{STEP}")
    await context.append(last, step, changes=(CloseExchange(exchange, ended),), fold=True)


async def _close_interrupted_exchange(request: RunRequest, context: RunContext) -> None:
    """Close the exchange that `kill -9` left open."""
    keys = {event.key for event in await context.journal() if event.kind == "exchange" and event.phase}
    ends = {event.key for event in await context.journal() if event.kind == "exchange" and event.phase == "end"}
    if llm_key(STEP, ATTEMPT) in keys - ends:
        texts = [part for part in context.message().parts if part.get("type") == "text" and part.get("state") == "streaming"]
        closing: tuple[Chunk, ...] = tuple({"type": "text-end", "id": part["id"]} for part in texts)
        await _end(context, exchange_id(request.run.id, STEP, ATTEMPT), closing, Ending("error"), ended="cut")


async def _kill_leftover_process(outcome: Unknown) -> None:
    group, started = outcome.note.get("pgid"), outcome.note.get("started")
    if isinstance(group, int) and isinstance(started, int | float | str):
        await kill_leftover(group, started)


async def _prompt(context: RunContext) -> bytes:
    """Return the user's last message."""
    prompts = [message for message in await context.history(1) if message.role == "user"]
    return text_of(prompts[-1].parts).encode("utf-8", "replace") if prompts else b""


async def _feed(child: Child, prompt: bytes) -> None:
    assert child.stdin is not None
    try:
        child.stdin.write(prompt)
        await child.stdin.drain()
    except (ConnectionError, RuntimeError):
        pass  # the command does not read its input; uvloop raises RuntimeError if the pipe was already closed
    child.stdin.close()


async def _lines(child: Child) -> AsyncGenerator[bytes, None]:
    """Yield each line with its end; joined, they are the command's output."""
    assert child.stdout is not None
    rest = b""
    while data := await child.stdout.read(LINE):
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield line + b"\n"
        if len(rest) >= LINE:
            yield rest
            rest = b""
    if rest:
        yield rest
