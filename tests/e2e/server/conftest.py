"""A real server: in this process (`server`, `open_server`), and as the `moot serve` process (`server_process`, `serve_home`)."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import aiohttp
import anyio
import pytest
from fastapi import FastAPI

from e2e.cli_process import MootProcess, make
from lanes import sandbox
from moot.config.loader import Loader
from moot.config.settings import Models, Permissions, ServerSettings, Settings
from moot.engine import Engine, open_engine
from moot.server.app import create_app
from moot.server.credentials import Credentials
from moot.server.hosts import bind, hosts_of
from moot.server.processes.lifecycle import serve
from moot.server.state import Limits, Server
from moot.testing.process import ScriptedProcess
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
    """HTTP client with an admin token and a base URL: `server.client.get("/api/session")`."""
    engine: Engine
    state: Server
    app: FastAPI
    model: ScriptedServer
    directory: Path
    """Directory for conversations."""

    async def token(self, *, scopes: Sequence[Scope] = ("chat",), owner: str = "local", name: str = "a test's") -> str:
        """Create a token of that user, and the user if it is missing. Return the token's secret."""
        user = await self.engine.store.tokens.user(owner)
        _, secret = await self.state.tokens.create(Token(new_id(), user.id, name, tuple(scopes)))
        return secret

    @asynccontextmanager
    async def caller(self, **more: Any) -> AsyncGenerator[aiohttp.ClientSession, None]:
        """Return a client with a new token: `scopes=`, `owner=`."""
        async with aiohttp.ClientSession(self.url, headers={"authorization": f"Bearer {await self.token(**more)}"}) as session:
            yield session

    @asynccontextmanager
    async def stranger(self, **more: Any) -> AsyncGenerator[aiohttp.ClientSession, None]:
        """Return a client without a token."""
        async with aiohttp.ClientSession(self.url, **more) as session:
            yield session


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


@pytest.fixture
def open_server(tmp_path: Path, directory: Path) -> Callable[..., Any]:
    """Open a server for the duration of a block: `async with open_server(script, mode="ask", limits=…) as server`."""

    @asynccontextmanager
    async def opened(
        script: Any = None,
        *,
        obey: bool = False,
        dialect: str = "openai-chat",
        mode: str = "auto",
        listens: ServerSettings | None = None,
        bounds: Limits | None = None,
        environ: Mapping[str, str] = MappingProxyType({}),
        **changes: Any,
    ) -> AsyncGenerator[LiveServer, None]:
        async with ScriptedServer(script if script is not None else [Reply(text="Hello there.", times=0)], obey=obey) as model:
            settings = replace(
                Settings(
                    tmp_path / "home",
                    models=Models(main="scripted@mine"),
                    providers={"mine": model.provider("mine", dialect)},
                    permissions=Permissions(mode=mode),  # type: ignore[arg-type]
                    sandbox=sandbox(),
                ),
                **changes,
            )
            listening = bind("127.0.0.1", 0)
            host, port = listening.getsockname()[:2]
            listens = listens or ServerSettings()
            loader = Loader(home=settings.home, environ=environ, directory=directory)
            async with open_engine(settings, loader=loader, resume=True, seed=1) as engine, anyio.create_task_group() as group:
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
    """A server whose model always answers "Hello there."; for other answers see `open_server`."""
    async with open_server() as opened:
        yield opened


@dataclass
class ServedHome:
    """A home served by real `moot serve` processes, one after the other, on the same port."""

    moot: MootProcess
    model: ScriptedProcess
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """Request headers with an admin token."""
        return {"authorization": f"Bearer {FIXED}"}

    def start(self, *arguments: str) -> ServedHome:
        """Start a server and wait until it is ready."""
        self.moot.more["MOOT_TOKEN"] = FIXED
        self.process = self.moot.start("serve", "--json", "--port", str(self.port), *arguments)
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        self.port = int(json.loads(line)["url"].rpartition(":")[2])
        return self

    def stop(self, number: int = signal.SIGTERM, *, seconds: float = 30) -> str:
        """Send the signal, wait for the process to end, and return its stderr."""
        assert self.process is not None
        self.process.send_signal(number)
        _, stderr = self.process.communicate(timeout=seconds)
        return stderr.decode()


@pytest.fixture
def serve_home(tmp_path: Path) -> Iterator[Callable[..., ServedHome]]:
    """Create a home with a scripted model: `serve_home([Reply(…)]).start()`, then `stop()` and `start()` again."""
    with ExitStack() as stack:

        def made(script: Sequence[Reply] = (), *, obey: bool = False, config: str = "") -> ServedHome:
            replies = list(script) if script or obey else [Reply(text="Hello there.", times=0)]
            model = stack.enter_context(ScriptedProcess(replies, obey=obey))
            moot = make(tmp_path, model.config() + config)
            stack.callback(moot.close)
            return ServedHome(moot, model)

        yield made


@pytest.fixture
def server_process(serve_home: Callable[..., ServedHome]) -> ServedHome:
    """A real `moot serve` process whose model always answers "Hello there."."""
    return serve_home().start()
