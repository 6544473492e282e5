"""A complete moot in this process, with a scripted model over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import PtyScreen
from lanes import sandbox
from moot.config.settings import Models, Permissions, Settings
from moot.engine import Engine, open_engine
from moot.testing.process import ScriptedProcess
from moot.testing.scripted import ScriptedServer
from moot.types.approval import Answer
from moot.types.event import Event
from moot.types.message import Message, text_part
from moot.types.run import Prompt, Run, Submitted
from verification import check_homes

Answers = Callable[[dict[str, Any]], Answer]


@dataclass
class Stage:
    """One engine and one scripted model; `ask` runs a prompt to its end and records what a watcher received."""

    engine: Engine
    server: ScriptedServer
    directory: Path
    seen: list[Event] = field(default_factory=list[Event])

    async def submit(self, text: str, **more: Any) -> Submitted:
        return await self.engine.runs.submit(Prompt((text_part(text),), directory=str(self.directory), **more))

    async def follow(self, submitted: Submitted, answer: Answers | None = None) -> Run:
        """Watch until the run ends and answer its questions; without `answer`, stop when the run waits."""
        async with aclosing(self.engine.tail.watch(submitted.conversation.id, after=submitted.seq)) as batches:
            async for events in batches:
                self.seen += events
                for event in events:
                    for chunk in event.chunks:
                        if chunk["type"] == "tool-approval-request":
                            if answer is None:
                                return await self.engine.runs.wait(submitted.run.id)
                            await self.engine.runs.answer(str(chunk["approvalId"]), answer(chunk))
                        elif chunk["type"] == "data-questions" and answer is not None:
                            await self.engine.runs.answer(str(chunk["id"]), answer(chunk["data"]))  # type: ignore[arg-type]
                    if event.run == submitted.run.id and event.key == "run" and event.phase == "end":
                        return await self.engine.runs.wait(submitted.run.id)
        raise AssertionError("the watch ended")

    async def ask(self, text: str, answer: Answers | None = None, **more: Any) -> tuple[Run, Message]:
        submitted = await self.submit(text, **more)
        run = await self.follow(submitted, answer)
        return run, await self.engine.store.conversations.message(run.message)

    async def called(self, requests: int = 1) -> None:
        """Wait until the model has received that many requests."""
        with anyio.fail_after(60):
            while len(self.server.requests) < requests:
                await anyio.sleep(0.01)

    def kinds(self) -> list[str]:
        """Return the chunk types that the watcher received, in order, without deltas."""
        return [str(chunk["type"]) for event in self.seen for chunk in event.chunks if not str(chunk["type"]).endswith("-delta")]


@pytest.fixture(autouse=True)
def _sound(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """Check that everything stored follows from its raw bytes, whatever the test did to the store."""
    yield
    if request.node.get_closest_marker("damaged") is None:
        asyncio.run(check_homes(tmp_path))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


@pytest.fixture
def stage(tmp_path: Path, directory: Path) -> Callable[..., Any]:
    @asynccontextmanager
    async def open_stage(
        script: Any,
        *,
        dialect: str = "openai-chat",
        mode: str = "auto",
        priced: Any = None,
        others: Any = None,
        clock: Any = None,
        **changes: Any,
    ) -> AsyncGenerator[Stage, None]:
        async with ScriptedServer(script) as server:
            mine = server.provider("mine", dialect, **({"models": priced} if priced else {}))
            settings = Settings(
                tmp_path / "home",
                models=Models(main="scripted@mine"),
                providers={"mine": mine, **(others or {})},
                permissions=Permissions(mode=mode),  # type: ignore[arg-type]
                sandbox=sandbox(),
            )
            async with open_engine(replace(settings, **changes), seed=1, clock=clock) as engine:
                yield Stage(engine, server, directory)

    return open_stage


# ── the real process ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def obedient() -> Iterator[ScriptedProcess]:
    """A model that obeys the prompt, in a separate process."""
    with ScriptedProcess(obey=True) as server:
        yield server


@pytest.fixture
def moot(tmp_path: Path, model: ScriptedProcess) -> Iterator[MootProcess]:
    """The command line with the module's `model`."""
    process = make(tmp_path, model.config())
    yield process
    process.close()


@pytest.fixture
def open_screen(moot: MootProcess) -> Iterator[Callable[..., PtyScreen]]:
    """Start `moot` on a terminal with these arguments."""
    screens: list[PtyScreen] = []

    def opened(*arguments: str, **more: object) -> PtyScreen:
        screens.append(PtyScreen(moot, *arguments, **more))  # type: ignore[arg-type]
        return screens[-1]

    yield opened
    for screen in screens:
        screen.close()
