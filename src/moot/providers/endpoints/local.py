"""The embedded model, which llama.cpp runs in a child process with weights on the local disk."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

from anyio import to_thread

from moot.config.settings import ProviderSettings
from moot.errors import ProviderError, UsageError
from moot.guard.processes import Child, child_environment, spawn
from moot.providers.http import HttpProvider
from moot.providers.machine import INSTEAD, cannot, check_machine, import_failed
from moot.providers.weights import DEFAULT, MANIFEST, OVERHEAD, Weights, find, installed_weights, models_folder, weights_path
from moot.types import canonical
from moot.types.canonical import JsonObject
from moot.types.event import Raw
from moot.types.model import Model, ModelId, Price
from moot.types.provider import Facts, ModelRequest

CONTEXT = 8_192
"""Context size in tokens with which llama.cpp is started."""
START_SECONDS = 120.0
"""Time limit for loading the weights."""
_PROGRAM = Path(__file__).with_name("_local_child.py")
_LOG_CHARACTERS = 400


class Server:
    """A child process that serves one model. It exits when its standard input is closed, and therefore when moot exits."""

    def __init__(self, child: Child, log: Path, key: str, url: str) -> None:
        self._child = child
        self._log = log
        self.key = key
        self.url = url

    @property
    def alive(self) -> bool:
        return self._child.process.returncode is None

    @property
    def pid(self) -> int:
        return self._child.process.pid

    async def died(self, within: float) -> str:
        """Return why the process ended, if it has ended or ends within the given seconds; empty if it is still running."""
        try:
            async with asyncio.timeout(within):
                code = await self._child.wait()
        except TimeoutError:
            return ""
        return f"it {_ended(code)}{await to_thread.run_sync(_tail, self._log)}"

    async def stop(self) -> None:
        """Kill the process and wait until it is dead."""
        if self.alive:
            await self._child.kill(0)
            await self._child.wait()


async def start(name: str, model: Path, log: Path) -> Server:
    """Start a server and wait until its weights are loaded. Raise ProviderError if that fails."""
    key = secrets.token_urlsafe(32)
    await to_thread.run_sync(lambda: log.parent.mkdir(parents=True, exist_ok=True))
    # -P, because files next to the script must not shadow libraries
    child = await spawn([sys.executable, "-P", str(_PROGRAM)], env=child_environment(), stdin="pipe", stdout="pipe", stderr="null")
    options: JsonObject = {"name": name, "model": str(model), "context": CONTEXT, "key": key, "log": str(log)}
    try:
        answer = await _exchange(child, options)
        if (url := answer.get("url")) and isinstance(url, str):
            return Server(child, log, key, url)
        message = str(answer.get("message", ""))
        if answer.get("error") == "import":
            raise import_failed(message)
        code = await child.wait()
        if code == -signal.SIGILL:
            raise cannot("this processor lacks an instruction that xllamacpp was built with")
        raise cannot(f"it {_ended(code) if not message else f'failed with {message!r}'}{await to_thread.run_sync(_tail, log)}")
    except BaseException:
        await asyncio.shield(child.kill(0))
        raise


async def _exchange(child: Child, options: JsonObject) -> JsonObject:
    """Send the options and return the child's answer; empty if it ended without one."""
    stdin, stdout = child.process.stdin, child.stdout
    assert stdin is not None
    assert stdout is not None
    try:
        stdin.write(json.dumps(options).encode() + b"\n")  # not as an argument: command lines are visible to all users
        await stdin.drain()
        async with asyncio.timeout(START_SECONDS):
            line = await stdout.readline()
    except TimeoutError as error:
        raise cannot(f"it was not ready within {START_SECONDS:g} s") from error
    except ConnectionError:
        line = b""
    try:
        return canonical.loads_object(line)
    except ValueError:
        return {}


def _ended(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"


def _tail(log: Path) -> str:
    """Return the last output of the native code, worded to be appended to an error message."""
    try:
        text = log.read_text(errors="replace").strip()
    except OSError:
        return ""
    return f"; last output: {text[-_LOG_CHARACTERS:]!r} ({str(log)!r})" if text else ""


STEPS = 4
"""Maximum number of model calls for one prompt."""
_OUTPUT = 600
"""Maximum number of tokens in an answer."""
_DEATH_SECONDS = 1.0
"""Seconds to wait after a stream fails, to learn if the child process died."""


class Local:
    """Models named `model@local`. The server of a model starts with its first request and runs until `close`, or until it crashes.

    Weights are in moot's home folder. The provider's option `path` selects another file, whose name without the suffix is the model name.
    If the machine can't run the model or the weights are missing, requests raise ProviderError with the reason and a fix.
    """

    facts = Facts("local", dialect="openai-chat-schema", needs_key=False, priority=800, main=DEFAULT, free=True)
    options = ("path",)

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
                message, fix = f"The embedded model's process died: {reason}.", "Try again. The process is restarted automatically."
                raise ProviderError(message, fix=fix, kind="transport", retryable=True) from error
            raise

    @property
    def live(self) -> int:
        """Number of open streams."""
        return sum(http.live for _, http in self._servers.values())

    def describe(self, name: str) -> Model:
        """Return a model from the manifest, or the model in the user's own weights file. Raise UsageError for any other name."""
        own = self._own_file()
        return self._own(own) if own and own.stem == name else describe(self.name, find(name))

    def _own(self, path: Path) -> Model:
        return _small(self.name, path.stem, CONTEXT, f"answer of a local model ({path.name}): check it")

    async def models(self) -> Sequence[Model]:
        """Return the models whose weights are installed. If there are none, return the default model, which can be downloaded."""
        here = [describe(self.name, weights) for weights in installed_weights(self._home)]
        if own := self._own_file():
            here.insert(0, self._own(own))
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
            check_machine(MANIFEST[name].memory if name in MANIFEST else path.stat().st_size + OVERHEAD)
            server = await start(name, path, self._home / "state" / f"{path.stem}.log")
            url, headers, timeout = f"{server.url}/v1", {"Connection": "close"}, self.settings.timeout
            http = _Endpoint(ProviderSettings(self.name, base_url=url, api_key=server.key, headers=headers, timeout=timeout))
            self._servers[name] = server, http
            return server, http

    def _weights(self, name: str) -> Path:
        own = self._own_file()
        if own and own.stem == name:
            return own
        weights = find(name)
        path = weights_path(name, self._home)
        if path is None:
            size, folder = f"{weights.size / 1e6:,.0f} MB", str(models_folder(self._home))
            message = f"The weights of {weights.title} ({size}) are not installed in {folder!r}."
            fix = f"Run `moot models pull {name}`, or use --yes-download. {INSTEAD}"
            raise ProviderError(message, fix=fix, kind="invalid_request")
        return path

    def _own_file(self) -> Path | None:
        """Return the user's own weights file, which the option `path` selects, or None. Raise UsageError if it does not exist."""
        configured = self.settings.options.get("path")
        if not isinstance(configured, str) or not configured:
            return None
        path = Path(configured).expanduser()
        if not path.is_file():
            raise UsageError(
                f"The option providers.{self.name}.path is {configured!r}, which is not a file.", fix="Set it to a .gguf file."
            )
        return path


class _Endpoint(HttpProvider):
    """The HTTP endpoint of the child process, in the dialect openai-chat."""

    facts = Facts("local", needs_key=False)


def describe(provider: str, weights: Weights) -> Model:
    """Return the model for an entry of the manifest."""
    return _small(provider, weights.name, min(CONTEXT, weights.context), weights.note)


def _small(provider: str, name: str, context: int, note: str) -> Model:
    return Model(
        id=ModelId(name, provider),
        wire_name=name,
        context=context,
        max_output=_OUTPUT,
        tools="schema",
        small=True,
        max_steps=STEPS,
        price=Price(0.0, 0.0, 0.0, 0.0),
        note=note,
    )
