"""A store in its own home, and data that many tests put into it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moot.config.settings import Settings, Storage
from moot.store import SqliteStore, open_store
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import Message, text_part
from moot.types.run import Run
from moot.types.store import Accepted, Submission

HERE = Path(__file__).parent


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", storage=Storage())


@pytest.fixture
async def store(settings: Settings) -> AsyncIterator[SqliteStore]:
    opened = await open_store(settings)
    yield opened
    await opened.close()


class Making:
    """Values to store."""

    def conversation(self, **fields: Any) -> Conversation:
        return replace(Conversation(new_id(), directory="/work"), **fields)

    def message(self, text: str = "hello", **fields: Any) -> Message:
        return replace(Message(new_id(), "user", (text_part(text),)), **fields)

    def submission(self, conversation: Conversation | None = None, text: str = "hello", **fields: Any) -> Submission:
        into = conversation or self.conversation()
        run = Run(new_id(), into.id, new_id())
        return replace(Submission(run, into, self.message(text), owner="me"), **fields)

    def frame(self, accepted: Accepted, delta: str = "hi", exchange: str = "0.0") -> Event:
        run = accepted.run.id
        return Event("raw", ({"type": "text-delta", "id": "0", "delta": delta},), b"data: x\n\n", run, f"{run}:{exchange}")


@pytest.fixture
def make() -> Making:
    return Making()


@pytest.fixture
def spawn() -> Any:
    """Start a script of `processes/` as a process, with text arguments."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: object, **options: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(HERE / "processes" / f"{name}.py"), *(str(argument) for argument in arguments)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


Spawn = Callable[..., "subprocess.Popen[bytes]"]
