"""The embedded model: weights on the local disk, run by llama.cpp in a child process."""

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
"""Maximum number of model calls for one prompt."""
_OUTPUT = 600
"""Maximum number of tokens in an answer."""
_DEATH_SECONDS = 1.0
"""Time to wait after a stream fails, to learn whether the child process died."""


class Local:
    """Models named `model@local`. The server of a model starts with its first request and runs until `close`, or until it crashes.

    Weights are looked up below the home folder. The entry's `path` names the user's own file, whose stem becomes the model name. If the
    machine can't run the model or the weights are missing, ProviderError says why and what to do.
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
        """Yield the raw frames of the response, one tuple per socket read. See `moot.types.provider.Provider.stream`."""
        server, http = await self._serving(request.model)
        try:
            async with aclosing(http.stream(request)) as frames:
                async for raws in frames:
                    yield raws
        except ProviderError as error:
            if reason := await server.died(_DEATH_SECONDS):
                message = f"the embedded model's process died: {reason}"
                raise ProviderError(
                    message, fix="try again; the process is restarted automatically", kind="transport", retryable=True
                ) from error
            raise

    @property
    def live(self) -> int:
        """Number of open streams."""
        return sum(http.live for _, http in self._servers.values())

    def describe(self, name: str) -> Model:
        """Return a model of the manifest or the user's own file. Raise UsageError for any other name."""
        own = self._own_file()
        return describe_own(self.name, own) if own and own.stem == name else describe(self.name, find(name))

    async def models(self) -> Sequence[Model]:
        """Return the models whose weights are installed, or else the default model, which can be downloaded."""
        here = [describe(self.name, weights) for weights in installed(self._home)]
        if own := self._own_file():
            here.insert(0, describe_own(self.name, own))
        return here or [describe(self.name, find(DEFAULT))]

    async def close(self) -> None:
        """Stop the child processes."""
        servers, self._servers = self._servers, {}
        for server, http in servers.values():
            await http.close()
            await server.stop()

    async def _serving(self, name: str) -> tuple[Server, HttpProvider]:
        """Return the model's server. Start one if there is none or it has died."""
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
            message = (
                f"the weights of {weights.title} ({weights.size / 1e6:,.0f} MB) are not installed in {str(models_folder(self._home))!r}"
            )
            raise ProviderError(message, fix=f"moot models pull {name}, or --yes-download; {INSTEAD}", kind="invalid_request")
        return path

    def _own_file(self) -> Path | None:
        """Return the file that the entry's `path` names, or None. Raise UsageError if it does not exist."""
        configured = self.settings.options.get("path")
        if not isinstance(configured, str) or not configured:
            return None
        path = Path(configured).expanduser()
        if not path.is_file():
            raise UsageError(f"providers.{self.name}.path is {configured!r}, which is not a file", fix="set it to a .gguf file")
        return path


class _Endpoint(HttpProvider):
    """The endpoint of the child process: an openai-chat server."""

    facts = Facts("local", needs_key=False)


def describe(provider: str, weights: Weights) -> Model:
    """Return the model for an entry of the manifest."""
    return _small(provider, weights.name, min(CONTEXT, weights.context), weights.note)


def describe_own(provider: str, path: Path) -> Model:
    """Return the model for the user's own file, about which nothing else is known."""
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
