"""A moot in this process with real agent programs behind it, and checks of the log that every run must leave."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from conformance.services import Stage, check_log
from moot.config.settings import Permissions, Settings
from moot.convert.exchanges import translator_of
from moot.engine import open_engine
from moot.types.agent import Agent, Mode
from moot.types.approval import Answer, Approval
from moot.types.chunk import Chunk
from moot.types.event import SENT
from moot.types.exchange import Ending
from moot.types.message import Message, Part, is_tool, text_of, text_part
from moot.types.provider import ReadsSentLines
from moot.types.run import Prompt, Run

Answers = Callable[[Approval], Answer]
YES, NO = Answer(True), Answer(False, reason="not now")
DEADLINE = 30.0


@dataclass
class Driven(Stage):
    """The stage of the conformance suite, with prompts for any agent and answers to its questions."""

    async def ask(self, text: str, answer: Answers | Answer | None = None, **more: Any) -> tuple[Run, Message]:
        """Run a prompt to its end and answer all questions. Check that the log is complete and its chunks match the raw lines."""
        run = await self.begin(text, **more)
        with anyio.fail_after(DEADLINE):
            while (now := await self.engine.store.records.run(run.id)).status not in ("finished", "failed", "cancelled"):
                if now.status == "waiting":
                    for approval in await self.engine.store.records.approvals(run=run.id):
                        assert answer is not None, f"it asks {approval.tool} {approval.arguments!r}"
                        await self.engine.runs.answer(approval.id, answer if isinstance(answer, Answer) else answer(approval))
                await anyio.sleep(0.02)
        return await self.ended(run)

    async def begin(self, text: str, *, more: tuple[Part, ...] = (), **settings: Any) -> Run:
        """Submit a prompt; `more` are further parts after the text."""
        given: dict[str, Any] = {"directory": str(self.directory), **settings}
        return (await self.engine.runs.submit(Prompt((text_part(text), *more), **given))).run

    async def says(self, run: Run, words: str) -> None:
        """Return when the answer contains this text."""
        async with aclosing(self.engine.tail.watch(run.conversation)) as batches:
            with anyio.fail_after(DEADLINE):
                async for _ in batches:
                    deltas = [chunk for event in await self.events(run) for chunk in event.chunks if chunk["type"] == "text-delta"]
                    if words in "".join(str(chunk["delta"]) for chunk in deltas):
                        return

    async def ended(self, run: Run) -> tuple[Run, Message]:
        with anyio.fail_after(DEADLINE):
            while (run := await self.engine.runs.wait(run.id)).status == "waiting":  # the agent may withdraw a request
                await anyio.sleep(0.02)
        await check_log(self, run)
        await self.check_raw(run)
        return run, await self.engine.store.conversations.message(run.message)

    async def raw(self, run: Run, *, sent: bool = False) -> list[bytes]:
        """Return the lines of both directions, or of one."""
        return [event.raw for event in await self.events(run) if event.kind == "raw" and event.raw and (event.body == SENT) is sent]

    async def check_raw(self, run: Run) -> None:
        """Check that translating the stored raw lines again gives the stored chunks."""
        events = await self.events(run)
        for id in dict.fromkeys(event.exchange for event in events if event.exchange):
            exchange = await self.engine.store.records.exchange(id)
            assert exchange is not None and exchange.ended is not None
            translator: Any = translator_of(exchange.converter)
            assert translator is not None and f"{translator.name}/{translator.version}" == exchange.converter
            state = translator.open(exchange.options)
            for event in (event for event in events if event.exchange == id and event.kind == "raw"):
                chunks: tuple[Chunk, ...] = ()
                if event.body != SENT:
                    state, chunks = translator.feed(state, event.raw)
                elif isinstance(translator, ReadsSentLines):
                    state, chunks = translator.said(state, event.raw or b"")
                assert chunks == event.chunks, event.raw
            closing, ending = translator.close(state, exchange.ended)
            end = next(event for event in events if event.exchange == id and event.phase == "end")
            assert end.chunks == closing
            if isinstance(end.body, dict):
                assert Ending.from_json(end.body).usage == ending.usage


def texts(message: Message) -> str:
    return text_of([part for part in message.parts if part.get("type") == "text"])


def calls(message: Message) -> list[dict[str, Any]]:
    return [part for part in message.parts if is_tool(part)]


@asynccontextmanager
async def driven(
    home: Path, directory: Path, agents: Mapping[str, Agent], *, mode: Mode = "ask", **settings: Any
) -> AsyncGenerator[Driven, None]:
    """Return an engine with those agents."""
    directory.mkdir(parents=True, exist_ok=True)
    made = Settings(home, permissions=Permissions(mode=mode), agents={"default": Agent(), **agents}, **settings)
    async with open_engine(made, seed=1) as engine:
        yield Driven(engine, directory)
