"""A real server: in this process (`server`), and as the `moot serve` process (`server_process`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest
from fastapi import FastAPI

from moot.config.settings import Models, Permissions, ServerSettings, Settings
from moot.engine import Engine, open_engine
from moot.server.app import create_app
from moot.server.credentials import Credentials
from moot.server.origins import hosts_of
from moot.server.serving import bind, serve
from moot.server.state import Limits, Server
from moot.testing.script import Reply
from moot.testing.scripted import ScriptedServer
from moot.types.ids import new_id
from moot.types.token import Scope, Token

FIXED = "test-admin-secret-0123456789"
"""The server's MOOT_TOKEN."""


@dataclass
class LiveServer:
    """A server on a free port, the engine under it, and the scripted model behind it."""

    url: str
    client: aiohttp.ClientSession
    """With an admin token; paths are enough: `server.client.get("/api/session")`."""
    engine: Engine
    state: Server
    app: FastAPI
    model: ScriptedServer
    directory: Path
    """A folder for conversations."""

    async def token(self, *, scopes: Sequence[Scope] = ("chat",), owner: str = "local", name: str = "a test's") -> str:
        """The secret of a new token of that user, who is made when there is none."""
        user = await self.engine.store.tokens.user(owner)
        _, secret = await self.state.tokens.create(Token(new_id(), user.id, name, tuple(scopes)))
        return secret

    @asynccontextmanager
    async def caller(self, **more: Any) -> AsyncGenerator[aiohttp.ClientSession, None]:
        """A client with a token of its own: `scopes=`, `owner=`."""
        async with aiohttp.ClientSession(self.url, headers={"authorization": f"Bearer {await self.token(**more)}"}) as session:
            yield session

    @asynccontextmanager
    async def stranger(self, **more: Any) -> AsyncGenerator[aiohttp.ClientSession, None]:
        """A client without a token."""
        async with aiohttp.ClientSession(self.url, **more) as session:
            yield session


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


@pytest.fixture
def open_server(tmp_path: Path, directory: Path) -> Callable[..., Any]:
    """Opens a server for the length of a block: `async with open_server(script, mode="ask", limits=…) as server`."""

    @asynccontextmanager
    async def opened(
        script: Any = None,
        *,
        obey: bool = False,
        dialect: str = "openai-chat",
        mode: str = "auto",
        listens: ServerSettings | None = None,
        bounds: Limits | None = None,
        **changes: Any,
    ) -> AsyncGenerator[LiveServer, None]:
        async with ScriptedServer(script if script is not None else [Reply(text="Hello there.", times=0)], obey=obey) as model:
            settings = replace(
                Settings(
                    tmp_path / "home",
                    models=Models(main="scripted@mine"),
                    providers={"mine": model.provider("mine", dialect)},
                    permissions=Permissions(mode=mode),  # type: ignore[arg-type]
                ),
                **changes,
            )
            listening = bind("127.0.0.1", 0)
            host, port = listening.getsockname()[:2]
            listens = listens or ServerSettings()
            async with open_engine(settings, resume=True, seed=1) as engine, anyio.create_task_group() as group:
                state = Server(
                    engine=engine,
                    tokens=Credentials(engine.store, fixed=FIXED),
                    settings=listens,
                    hosts=hosts_of(host, port, listens),
                    limits=bounds or Limits(),
                )
                app = create_app(state)
                group.start_soon(serve, app, listening)
                url = f"http://{host}:{port}"
                async with aiohttp.ClientSession(url, headers={"authorization": f"Bearer {FIXED}"}) as client:
                    yield LiveServer(url, client, engine, state, app, model, directory)
                state.stopping.set()

    return opened


@pytest.fixture
async def server(open_server: Callable[..., Any]) -> AsyncGenerator[LiveServer, None]:
    """A server whose model always says "Hello there."; for other words see `open_server`."""
    async with open_server() as opened:
        yield opened
