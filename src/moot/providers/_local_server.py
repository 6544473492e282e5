"""One running server of the embedded model: a child process, its address and its key."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import sys
from pathlib import Path

from anyio import to_thread

from moot.errors import ProviderError
from moot.guard.environment import child_environment
from moot.guard.processes import Child, spawn
from moot.providers._local_machine import cannot, import_failed
from moot.types import canonical
from moot.types.canonical import JsonObject

CONTEXT = 8_192
"""Tokens a conversation may take: what llama.cpp is started with."""
START_SECONDS = 120.0
"""For reading the weights and getting ready."""
_PROGRAM = Path(__file__).with_name("_local_child.py")
_WORDS = 400


class Server:
    """A child process that serves one model. It ends when its standard input closes, and so with us."""

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
        """Why it ended, when it has or does so within some seconds; empty when it lives."""
        try:
            async with asyncio.timeout(within):
                code = await self._child.wait()
        except TimeoutError:
            return ""
        return f"it {_ended(code)}{await to_thread.run_sync(_tail, self._log)}"

    async def stop(self) -> None:
        """Ends it; returns when it is dead."""
        if self.alive:
            await self._child.kill(0)
            await self._child.wait()


async def start(name: str, model: Path, log: Path) -> Server:
    """A server that has read its weights. Raises ProviderError saying why it could not."""
    key = secrets.token_urlsafe(32)
    await to_thread.run_sync(lambda: log.parent.mkdir(parents=True, exist_ok=True))
    # -P: nothing beside the program may be imported in place of a library
    child = await spawn([sys.executable, "-P", str(_PROGRAM)], env=child_environment(), stdin="pipe", stdout="pipe", stderr="null")
    orders: JsonObject = {"name": name, "model": str(model), "context": CONTEXT, "key": key, "log": str(log)}
    try:
        answer = await _exchange(child, orders)
        if (url := answer.get("url")) and isinstance(url, str):
            return Server(child, log, key, url)
        raise await _failure(child, log, answer)
    except BaseException:
        await asyncio.shield(child.kill(0))
        raise


async def _exchange(child: Child, orders: JsonObject) -> JsonObject:
    """What the child answers to its orders; empty when it ended without a word."""
    stdin, stdout = child.process.stdin, child.stdout
    assert stdin is not None
    assert stdout is not None
    try:
        stdin.write(json.dumps(orders).encode() + b"\n")  # the key goes this way: a command line can be read by everybody
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


async def _failure(child: Child, log: Path, answer: JsonObject) -> ProviderError:
    message = str(answer.get("message", ""))
    if answer.get("error") == "import":
        return import_failed(message)
    code = await child.wait()
    if code == -signal.SIGILL:
        return cannot("this processor lacks an instruction that xllamacpp was built with")
    return cannot(f"it {_ended(code) if not message else f'said {message!r}'}{await to_thread.run_sync(_tail, log)}")


def _ended(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def _tail(log: Path) -> str:
    """The end of what the native code printed, as a clause."""
    try:
        text = log.read_text(errors="replace").strip()
    except OSError:
        return ""
    return f"; its last words: {text[-_WORDS:]!r} ({str(log)!r})" if text else ""
