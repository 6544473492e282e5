"""The stored logins for MCP servers, and logins that the page has started.

There is one file for each stored login, which only the owner of the home can read. The files are not part of backups.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from moot.config.home import Stamp, lock_file, stamp_of, write_atomically
from moot.errors import Busy, MootError, ProviderError
from moot.plugins.registry import attribute
from moot.types.agent import McpServer
from moot.types.canonical import JsonObject, dumps, loads
from moot.types.mcp import McpLogin

log = logging.getLogger("moot.mcp")

_FOLDER = ("state", "logins")
_VERSION = 1


def has_key(server: McpServer) -> bool:
    """Return whether a server is configured with a key, in which case a login is not used."""
    return any(name.lower() == "authorization" for name in server.headers)


class LoginFile:
    """The file with the login for one server. A login belongs to a URL: it is not sent if the server's URL changes."""

    def __init__(self, home: Path, server: McpServer) -> None:
        self._server = server
        self._path = home.joinpath(*_FOLDER, f"{server.name}.json")

    @property
    def stamp(self) -> Stamp:
        """A value that changes whenever another process writes or deletes the file."""
        return stamp_of(self._path)

    def read(self) -> JsonObject | None:
        """Return the login, or None if there is none for this URL."""
        try:
            value = loads(self._path.read_bytes())
        except (OSError, ValueError):
            return None
        known = isinstance(value, dict) and value.get("version") == _VERSION and value.get("url") == self._server.url
        return value if known and isinstance(value, dict) else None

    def lock(self) -> AbstractContextManager[None]:
        """Keep other processes from changing the file during the block."""
        return lock_file(self._path)

    def write(self, login: JsonObject) -> None:
        """Store the login in place of an earlier one."""
        write_atomically(self._path, dumps({**login, "version": _VERSION, "url": self._server.url}))

    def delete(self) -> bool:
        """Delete the login. Return False if there was none."""
        if not self._path.exists():
            return False
        with self.lock():
            self._path.unlink(missing_ok=True)
        return True


_LOG_IN = "moot.mcp.oauth:log_in"
"""Loaded by path, because the SDK takes long to import."""


@dataclass(slots=True)
class _Pending:
    """A login that was started. It is kept after a failure, so that the page can show the error."""

    server: McpServer
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    begun: anyio.Event = field(default_factory=anyio.Event)
    """Set when the address is known, or the login is over."""
    ended: anyio.Event = field(default_factory=anyio.Event)
    address: str = ""
    error: MootError | None = None


class PendingLogins:
    """The unfinished logins of a process, at most one for each server.

    Their tasks run in the given task group. Each waits for the browser, at most for the time limit of a login.
    """

    def __init__(self, home: Path, group: TaskGroup, reset: Callable[[str], None]) -> None:
        self._home = home
        self._group = group
        self._reset = reset
        """Callback that closes the connections to a server, because they don't use its new login."""
        self._pending: dict[str, _Pending] = {}

    def of(self, server: McpServer) -> McpLogin | None:
        """Return the login that is pending or has failed, or None if there is none."""
        pending = self._pending.get(server.name)
        if pending is None or pending.server != server:
            return None
        if pending.error is not None:
            return McpLogin("needed", error=pending.error.advice())
        return McpLogin("pending", pending.address)

    async def start(self, server: McpServer, directory: str) -> None:
        """Start a login and wait until the address that the person must open is known. Cancel an earlier login to the same server.

        Raise MootError if logging in to the server is not possible, and Busy if another login replaced this one.
        """
        self.cancel(server.name)
        pending = self._pending[server.name] = _Pending(server)
        self._group.start_soon(self._run, pending, directory)
        try:
            await pending.begun.wait()
        except BaseException:
            pending.scope.cancel()
            self._forget(pending)
            raise
        if pending.error is not None and not pending.address:
            self._forget(pending)
            raise pending.error
        if pending.scope.cancel_called:
            raise Busy(f"The login to {server.name!r} was cancelled or started again.")

    def cancel(self, name: str) -> _Pending | None:
        """Cancel the pending login to a server. Return the login, or None if there was none."""
        if (pending := self._pending.pop(name, None)) is not None:
            pending.scope.cancel()
        return pending

    async def log_out(self, server: McpServer) -> None:
        """Cancel the pending login to a server. If there is none, delete the stored one and close the connections that use it."""
        pending = self.cancel(server.name)
        if pending is not None and not pending.ended.is_set():
            await pending.ended.wait()
            return
        await to_thread.run_sync(LoginFile(self._home, server).delete)
        self._reset(server.name)

    async def _run(self, pending: _Pending, directory: str) -> None:
        async def show(address: str) -> None:
            pending.address = address
            pending.begun.set()

        name = pending.server.name
        try:
            with pending.scope:
                log_in = await to_thread.run_sync(attribute, _LOG_IN)
                await log_in(self._home, pending.server, Path(directory), show)
                self._forget(pending)
                self._reset(name)
        except Exception as error:  # noqa: BLE001  a server may do anything, and must not end connections or runs
            log.info("the login at the MCP server %s failed: %s", name, type(error).__name__)  # its text may quote what the server sent
            known = ProviderError(f"The login to {name!r} failed: {type(error).__name__}.", kind="failed")
            pending.error = error if isinstance(error, MootError) else known
        finally:
            pending.begun.set()
            pending.ended.set()

    def _forget(self, pending: _Pending) -> None:
        if self._pending.get(pending.server.name) is pending:
            del self._pending[pending.server.name]
