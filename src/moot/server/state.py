"""What every request of one server shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import anyio
from fastapi import Depends
from starlette.requests import HTTPConnection

from moot.config.settings import ServerSettings
from moot.engine import Engine
from moot.server.configuration import Configuration
from moot.server.credentials import Credentials
from moot.server.following import Following
from moot.server.given import Given
from moot.server.importing import ImportJobs
from moot.server.metrics import Metrics
from moot.server.sharing import Streams
from moot.server.tries import Tries


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of anything a caller may take."""

    body: int = 32 * 1024 * 1024
    """Bytes of a request's body."""
    head: float = 15.0
    """Seconds for the head of a request, and for a new connection to begin with one."""
    silence: float = 30.0
    """Seconds without a byte after which a body that is still to come is given up."""
    logins: int = 20
    """Wrong codes and tokens that one address may try to sign in with in a minute."""
    guesses: int = 300
    """Wrong tokens that one address may send with requests in a minute."""
    views: int = 120
    """Shared pages that one address may ask for in a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server: the engine under it, and what it knows of its callers."""

    engine: Engine
    tokens: Credentials
    configuration: Configuration
    settings: ServerSettings = field(default_factory=ServerSettings)
    hosts: frozenset[str] = frozenset()
    """What a request's Host may say, in lower case and with the port."""
    metrics: Metrics = field(default_factory=Metrics)
    limits: Limits = field(default_factory=Limits)
    given: Given = field(default_factory=Given)
    """The answers that callers of `/v1` may go on from."""
    streams: Streams = field(default_factory=Streams)
    imports: ImportJobs = field(default_factory=ImportJobs)
    following: Following = field(init=False)
    changing: anyio.Lock = field(default_factory=anyio.Lock)
    """Held from looking at an `If-Match` to the change that it guards: of two at once one must see the other's."""
    logins: Tries = field(init=False)
    guesses: Tries = field(init=False)
    views: Tries = field(init=False)
    stopping: anyio.Event = field(default_factory=anyio.Event)
    """Set when the server is about to stop: open streams say so and end."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "following", Following(self.engine))
        object.__setattr__(self, "logins", Tries(self.limits.logins))
        object.__setattr__(self, "guesses", Tries(self.limits.guesses))
        object.__setattr__(self, "views", Tries(self.limits.views, what="requests for shared pages"))


def server_of(connection: HTTPConnection) -> Server:
    """The server that a request came to."""
    server: Server = connection.app.state.server
    return server


async def _here(connection: HTTPConnection) -> Server:
    return server_of(connection)  # FastAPI hands whatever is not async to a thread, which costs more than most routes do


Here = Annotated[Server, Depends(_here)]
"""The server, as an argument of a route."""
