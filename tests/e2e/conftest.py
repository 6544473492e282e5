"""A complete moot in this process, with a scripted model over real HTTP."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import PtyScreen
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
        script: Any, *, dialect: str = "openai-chat", mode: str = "auto", priced: Any = None, others: Any = None, **changes: Any
    ) -> AsyncGenerator[Stage, None]:
        async with ScriptedServer(script) as server:
            mine = server.provider("mine", dialect, **({"models": priced} if priced else {}))
            settings = Settings(
                tmp_path / "home",
                models=Models(main="scripted@mine"),
                providers={"mine": mine, **(others or {})},
                permissions=Permissions(mode=mode),  # type: ignore[arg-type]
            )
            async with open_engine(replace(settings, **changes), seed=1) as engine:
                yield Stage(engine, server, directory)

    return open_stage


# ── the real process ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for compiled bytecode, filled by a first process, for when the usual place must not be written to."""
    folder = tmp_path_factory.mktemp("pycache")
    if sys.dont_write_bytecode:
        process = make(tmp_path_factory.mktemp("first"), folder)
        process.more = {"PYTHONDONTWRITEBYTECODE": ""}
        assert process.run("run", "-m", "demo", "--no-tools", "hello", executed=True).returncode == 0
    return folder


@pytest.fixture(scope="session")
def obedient() -> Iterator[ScriptedProcess]:
    """A model that obeys the prompt, in a separate process."""
    with ScriptedProcess(obey=True) as server:
        yield server


@pytest.fixture
def moot(tmp_path: Path, cache: Path, model: ScriptedProcess) -> Iterator[MootProcess]:
    """The command line with the module's `model`."""
    process = make(tmp_path, cache, model.config())
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
