"""The embedded model: weights on this disk, llama.cpp in a child process, spoken to like any other endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

from moot.config.settings import ProviderSettings
from moot.errors import ProviderError, UsageError
from moot.providers._local_machine import INSTEAD, check_machine
from moot.providers._local_server import CONTEXT, Server, start
from moot.providers.http import HttpProvider
from moot.providers.weights.here import installed, path_of
from moot.providers.weights.manifest import DEFAULT, Weights, find
from moot.providers.weights.partial import models_folder
from moot.types.event import Raw
from moot.types.facts import Facts
from moot.types.model import Model, ModelId, Price
from moot.types.provider import ModelRequest

STEPS = 3
"""Model calls for one prompt."""
_OUTPUT = 600
"""Tokens of an answer."""
_DEATH_SECONDS = 1.0
"""How long a broken stream waits to learn that the child died."""


class Local:
    """`model@local`. The server of a model starts with its first request and lives until `close`, or until it crashes.

    Weights are looked for below `home`; `path` of the entry names a file of the person's own, served under
    its stem. Where the machine can't run it or the weights are missing, ProviderError says why and what to do.
    """

    facts = Facts("local", dialect="openai-chat-schema", needs_key=False, priority=800, main=DEFAULT, free=True)

    def __init__(self, settings: ProviderSettings) -> None:
        self.name = settings.name or self.facts.name
        self.dialect = settings.dialect or self.facts.dialect
        self.quirks = self.facts.quirks
        self.settings = settings
        self._home = settings.home
        self._starting = asyncio.Lock()
        self._servers: dict[str, tuple[Server, HttpProvider]] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[Raw, ...], None]:
        """The answer's raw frames, one tuple per socket read. See `moot.types.provider.Provider.stream`."""
        server, http = await self._serving(request.model)
        try:
            async with aclosing(http.stream(request)) as frames:
                async for raws in frames:
                    yield raws
        except ProviderError as error:
            if reason := await server.died(_DEATH_SECONDS):
                message = f"the embedded model's process is gone: {reason}"
                raise ProviderError(message, fix="try again: it is started anew", kind="transport", retryable=True) from error
            raise

    @property
    def live(self) -> int:
        """Streams that are open now."""
        return sum(http.live for _, http in self._servers.values())

    def describe(self, name: str) -> Model:
        """All that is known of a model. Raises UsageError for one that is neither in the manifest nor the person's own file."""
        own = self._own_file()
        return describe_own(self.name, own) if own and own.stem == name else describe(self.name, find(name))

    async def models(self) -> Sequence[Model]:
        """Those whose weights are here; when none are, the one that can be fetched by name."""
        here = [describe(self.name, weights) for weights in installed(self._home)]
        if own := self._own_file():
            here.insert(0, describe_own(self.name, own))
        return here or [describe(self.name, find(DEFAULT))]

    async def close(self) -> None:
        """Ends the child processes."""
        servers, self._servers = self._servers, {}
        for server, http in servers.values():
            await http.close()
            await server.stop()

    async def _serving(self, name: str) -> tuple[Server, HttpProvider]:
        """The server of a model, started when there is none or the last one died."""
        async with self._starting:
            if (running := self._servers.get(name)) and running[0].alive:
                return running
            if running:
                await running[1].close()
            path = self._weights(name)
            check_machine(path.stat().st_size)
            server = await start(name, path, self._home / "state" / f"{path.stem}.log")
            http = _Endpoint(
                ProviderSettings(
                    self.name,
                    base_url=f"{server.url}/v1",
                    api_key=server.key,
                    headers={"Connection": "close"},
                    timeout=self.settings.timeout,
                )
            )
            self._servers[name] = server, http
            return server, http

    def _weights(self, name: str) -> Path:
        own = self._own_file()
        if own and own.stem == name:
            return own
        weights = find(name)
        path = path_of(name, self._home)
        if path is None:
            message = f"the weights of {weights.title} ({weights.size / 1e6:,.0f} MB) are not in {str(models_folder(self._home))!r}"
            raise ProviderError(message, fix=f"moot models pull {name}, or --yes-download; {INSTEAD}", kind="invalid_request")
        return path

    def _own_file(self) -> Path | None:
        """The file that the entry's `path` names. Raises UsageError when it is not there."""
        given = self.settings.options.get("path")
        if not isinstance(given, str) or not given:
            return None
        path = Path(given).expanduser()
        if not path.is_file():
            raise UsageError(f"providers.{self.name}.path is {given!r}, which is no file", fix="name a .gguf file")
        return path


class _Endpoint(HttpProvider):
    """The child's own endpoint: a plain openai-chat server."""

    facts = Facts("local", needs_key=False)


def describe(provider: str, weights: Weights) -> Model:
    """The model of an entry of the manifest."""
    return _small(provider, weights.name, min(CONTEXT, weights.context), weights.note)


def describe_own(provider: str, path: Path) -> Model:
    """The model of a file of the person's own, of which we know nothing."""
    return _small(provider, path.stem, CONTEXT, f"answer of a local model ({path.name}): check it")


def _small(provider: str, name: str, context: int, note: str) -> Model:
    return Model(
        id=ModelId(name, provider),
        wire_name=name,
        context=context,
        max_output=_OUTPUT,
        tools="schema",
        max_steps=STEPS,
        price=Price(0.0, 0.0, 0.0, 0.0),
        note=note,
    )
