"""Shared by the tests of the HTTP client: one complete exchange, and a server below HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager

from moot.config.settings import ProviderSettings
from moot.errors import ProviderError
from moot.providers.endpoints.servers import Custom
from moot.providers.http import HttpProvider
from moot.testing.script import Reply
from moot.testing.scripted import ScriptedServer
from moot.types.provider import ModelRequest

REQUEST = ModelRequest(b'{"model": "scripted", "messages": [{"role": "user", "content": "hi"}], "stream": true}', "scripted")
KEY = "sk-very-secret-0123456789"


async def heard(provider: HttpProvider, request: ModelRequest = REQUEST) -> tuple[list[bytes], ProviderError | None]:
    """Return all raws of one exchange and the error that ended it. Close the provider afterwards."""
    raws: list[bytes] = []
    try:
        async with aclosing(provider.stream(request)) as reads:
            async for read in reads:
                assert read, "an empty tuple says nothing"
                raws.extend(read)
    except ProviderError as error:
        return raws, error
    finally:
        await provider.close()
    return raws, None


async def answered(reply: Reply, **settings: object) -> tuple[list[bytes], ProviderError | None]:
    async with ScriptedServer([reply]) as server:
        return await heard(Custom(server.provider(**settings)))


@asynccontextmanager
async def raw_server(answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[ProviderSettings]:
    """A server below HTTP, for behaviour that no HTTP server has."""

    tasks: list[asyncio.Task[object]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.current_task())  # type: ignore[arg-type]
        try:
            await reader.readuntil(b"\r\n\r\n")
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield ProviderSettings("mine", base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, timeout=0.3)
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)
