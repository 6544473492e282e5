"""The server of the embedded model: a child process, its address and its key."""

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
"""Context size in tokens that llama.cpp is started with."""
START_SECONDS = 120.0
"""Time limit for loading the weights."""
_PROGRAM = Path(__file__).with_name("_local_child.py")
_LOG_CHARACTERS = 400


class Server:
    """A child process that serves one model. It exits when its standard input closes, and therefore when moot exits."""

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
        """Return why the process ended, if it has ended or ends within the given seconds. Empty if it is still running."""
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
    # -P: files next to the script must not shadow libraries
    child = await spawn([sys.executable, "-P", str(_PROGRAM)], env=child_environment(), stdin="pipe", stdout="pipe", stderr="null")
    options: JsonObject = {"name": name, "model": str(model), "context": CONTEXT, "key": key, "log": str(log)}
    try:
        answer = await _exchange(child, options)
        if (url := answer.get("url")) and isinstance(url, str):
            return Server(child, log, key, url)
        raise await _failure(child, log, answer)
    except BaseException:
        await asyncio.shield(child.kill(0))
        raise


async def _exchange(child: Child, options: JsonObject) -> JsonObject:
    """Send the options and return the child's answer. Empty if it ended without one."""
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


async def _failure(child: Child, log: Path, answer: JsonObject) -> ProviderError:
    message = str(answer.get("message", ""))
    if answer.get("error") == "import":
        return import_failed(message)
    code = await child.wait()
    if code == -signal.SIGILL:
        return cannot("this processor lacks an instruction that xllamacpp was built with")
    return cannot(f"it {_ended(code) if not message else f'failed with {message!r}'}{await to_thread.run_sync(_tail, log)}")


def _ended(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"


def _tail(log: Path) -> str:
    """Return a clause with the last output of the native code."""
    try:
        text = log.read_text(errors="replace").strip()
    except OSError:
        return ""
    return f"; last output: {text[-_LOG_CHARACTERS:]!r} ({str(log)!r})" if text else ""
