"""The MCP servers of a process: started when they are needed, closed when they are idle, and started again after a failure."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from moot.config.home import Stamp
from moot.config.plugins.installed import check_unchanged
from moot.errors import MootError, ProviderError, Refused, UsageError
from moot.mcp.accepted import Accepted, AcceptedTools
from moot.mcp.logins import LoginFile, PendingLogins, has_key
from moot.plugins.registry import attribute
from moot.types.agent import McpServer
from moot.types.canonical import JsonObject
from moot.types.mcp import AskPerson, McpLogin, McpPrompt, McpResource, McpState, McpStatus, McpTool

if TYPE_CHECKING:  # the SDK takes long to import
    from moot.mcp.connection import Connection
    from moot.mcp.content import McpFile, McpResult

_SDK, _LOGIN = "moot.mcp.connection", "moot.mcp.oauth:stored_login"

FIRST_WAIT = 10.0
"""Seconds that a step waits for servers whose tools are not known yet. Their start continues afterwards, for the next steps."""
START_SECONDS = 120.0
"""Maximum duration of a start. The first start of a server may have to download it."""
REFETCH_SECONDS = 1.0
"""Minimum number of seconds between two fetches of the tools because the server has reported a change."""
IDLE_SECONDS = 900.0
"""Seconds without a call after which a connection is closed."""
STABLE_SECONDS = 60.0
"""Seconds after which a connection counts as stable, so that its end is not added to earlier failures."""
PAUSES = (5.0, 15.0, 60.0, 300.0)
"""Seconds between a failed start and the next one, by the number of failures in a row."""

log = logging.getLogger("moot.mcp")


@dataclass(slots=True)
class _Slot:
    """The connection to one server for one folder, and its failures."""

    server: McpServer
    connection: Connection | None = None
    starting: anyio.Event | None = None
    """Set when the start that is under way has succeeded or failed."""
    closing: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)
    """Set when the last connection has ended."""
    error: MootError | None = None
    failures: int = 0
    retry_at: float = 0.0
    """Time of the event loop before which the server is not started again."""
    login: Stamp = (0, 0, 0)
    """The stamp of the server's login at the last start."""
    used_at: float = 0.0
    calls: int = 0
    awaited: bool = False
    """True if a step has already waited for the first start."""


class McpServers:
    """All connections of a process. Their tasks run in the given task group."""

    def __init__(self, home: Path, group: TaskGroup) -> None:
        self.accepted = AcceptedTools(home)
        self.logins = PendingLogins(home, group, self.close)
        self.made: dict[tuple[str, str], object] = {}
        """Tools for the loop by server and name, see `server_tools`."""
        self._home = home
        self._group = group
        self._slots: dict[tuple[str, str], _Slot] = {}

    def known(self, servers: Iterable[McpServer]) -> list[tuple[McpServer, McpTool]]:
        """Return the accepted tools of the servers that were connected before. Nothing is started."""
        found = ((server, self.accepted.of(server)) for server in servers)
        return [(server, tool) for server, accepted in found if accepted is not None for tool in accepted.usable]

    async def offered(self, servers: Sequence[McpServer], directory: str) -> list[tuple[McpServer, McpTool]]:
        """Return the accepted tools of the servers. Start servers that were never connected, and wait for them once, up to `FIRST_WAIT`."""
        new = [self._slot(server, directory) for server in servers if self.accepted.of(server) is None]
        starts = [start for slot in new if (start := self._start(slot, directory)) is not None and not slot.awaited]
        if starts:
            with anyio.move_on_after(FIRST_WAIT):
                for start in starts:
                    await start.wait()
        for slot in new:
            slot.awaited = True
        return self.known(servers)

    async def fetch(self, server: McpServer, directory: str) -> Accepted:
        """Connect, and return the server's current tools together with the accepted ones. Raise MootError if that fails."""
        _, connection = await self._connected(server, directory)
        tools, prompts = await connection.tools(), await connection.prompts()
        return await to_thread.run_sync(self.accepted.record, server, tools, prompts)

    def prompts(self, servers: Iterable[McpServer]) -> list[tuple[McpServer, McpPrompt]]:
        """Return the prompts of the enabled servers, as they were at the last connection. Nothing is started."""
        found = ((server, self.accepted.of(server)) for server in servers if server.enabled)
        return [(server, prompt) for server, accepted in found if accepted is not None for prompt in accepted.prompts]

    async def prompt(self, server: McpServer, name: str, arguments: Mapping[str, str], directory: str) -> McpResult:
        """Return the content of a prompt. Raise MootError if the server can't be reached or refuses the arguments."""
        async with self._in_use(server, directory) as connection:
            return await connection.prompt(name, arguments)

    async def resources(self, server: McpServer, directory: str) -> tuple[McpResource, ...]:
        """Return the server's current resources and templates. Raise MootError if that fails."""
        async with self._in_use(server, directory) as connection:
            return await connection.resources()

    async def read(self, server: McpServer, uri: str, directory: str) -> tuple[McpFile, ...]:
        """Return the content of a resource. Raise MootError if the server can't be reached or can't read it."""
        async with self._in_use(server, directory) as connection:
            return await connection.read(uri)

    async def call(
        self,
        server: McpServer,
        tool: McpTool,
        arguments: JsonObject,
        directory: str,
        report: Callable[[str], Awaitable[None]],
        ask: AskPerson | None = None,
    ) -> McpResult:
        """Call a tool. Without `ask`, questions of the server are declined.

        Raise ProviderError if the server fails, Refused if it has changed the tool since it was accepted.
        """
        async with self._in_use(server, directory) as connection:
            accepted = self.accepted.of(server)
            if accepted is None or tool.digest not in {one.digest for one in accepted.usable}:
                raise Refused(
                    f"The MCP server {server.name!r} has changed the tool {tool.name!r} since it was accepted, so it was not called.",
                    fix=f"Ask the user to review it with: moot mcp accept {server.name}",
                )
            return await connection.call(tool.name, arguments, report, ask)

    @asynccontextmanager
    async def _in_use(self, server: McpServer, directory: str) -> AsyncGenerator[Connection]:
        """Return the connection for a folder. It is not closed as idle during the block. Raise MootError if it can't be opened."""
        slot, connection = await self._connected(server, directory)
        slot.calls += 1
        try:
            yield connection
        except ProviderError as error:
            if error.kind == "transport" and server.url:  # nothing else reports that it is gone; the next call connects again
                slot.closing.set()
            raise
        finally:
            slot.calls -= 1
            slot.used_at = anyio.current_time()

    def status(self, servers: Iterable[McpServer]) -> list[McpStatus]:
        """Return the state of each server in this process."""
        return [self._status(server) for server in servers]

    def problems(self, servers: Iterable[McpServer]) -> dict[str, str]:
        """Return messages for a person about servers that can't be reached or have tools to accept, by server."""
        found: dict[str, str] = {}
        for status in self.status(servers):
            name = status.server.name
            if status.state == "starting" and not status.tools:
                found[name] = f"The MCP server {name!r} is still starting. Agents get its tools once it has started."
            elif status.state == "failed":
                found[name] = f"The tools of the MCP server {name!r} are missing: {status.error}"
            elif status.changes:
                names = ", ".join(repr(tool.name) for tool in status.changes[:5])
                found[name] = f"The MCP server {name!r} has new or changed tools ({names}). Review them with: moot mcp accept {name}"
        return found

    def close(self, name: str) -> None:
        """Close the connections to a server and cancel a pending login, for example because its configuration has changed."""
        self.logins.cancel(name)
        for key, slot in list(self._slots.items()):
            if key[0] == name:
                slot.closing.set()
                self._slots.pop(key, None)

    def _status(self, server: McpServer) -> McpStatus:
        slots = [slot for (name, _), slot in self._slots.items() if name == server.name and slot.server == server]
        error = next((slot.error for slot in slots if slot.error is not None), None)
        is_live = any(slot.connection is not None for slot in slots)
        state: McpState = "connected" if is_live else "failed" if error else "not started"
        if server.problem:
            state, error = "failed", Refused(server.problem)
        elif not server.enabled:
            state = "disabled"
        elif not is_live and any(slot.starting is not None for slot in slots):
            state = "starting"
        accepted = self.accepted.of(server) or Accepted((), ())
        return McpStatus(
            server,
            state,
            error.advice() if error and not is_live else "",
            accepted.usable,
            accepted.prompts,
            accepted.changes,
            self._login_status(server, None if is_live else error),
        )

    def _login_status(self, server: McpServer, error: MootError | None) -> McpLogin:
        """Return the state of the login to a server. `error` is the reason why there is no connection."""
        if not server.url or has_key(server):
            return McpLogin()
        if (pending := self.logins.of(server)) is not None:
            return pending
        if isinstance(error, ProviderError) and error.kind == "auth":
            return McpLogin("needed")
        return McpLogin("none" if LoginFile(self._home, server).read() is None else "signed in")

    async def _connected(self, server: McpServer, directory: str) -> tuple[_Slot, Connection]:
        """Return the connection for a folder, opening it if necessary.

        Raise MootError if that fails, or during the pause after a failure.
        """
        check_usable(server)
        slot = self._slot(server, directory)
        if slot.connection is not None and slot.connection.lost.is_set():  # its end has not been handled yet
            await slot.ended.wait()
        if slot.connection is None and self._start(slot, directory) is None and slot.error is not None:
            raise slot.error
        if slot.starting is not None:
            await slot.starting.wait()
        if slot.connection is None:
            raise slot.error or ProviderError(f"The MCP server {server.name!r} closed the connection.", kind="transport")
        slot.used_at = anyio.current_time()
        return slot, slot.connection

    def _slot(self, server: McpServer, directory: str) -> _Slot:
        """Return the slot for a folder. If the server's configuration has changed or its connection is being closed, return a new slot."""
        slot = self._slots.get((server.name, directory))
        if slot is not None and (slot.server != server or (slot.closing.is_set() and slot.starting is None)):
            slot.closing.set()
            slot = None
        if slot is None:
            slot = self._slots[server.name, directory] = _Slot(server)
        return slot

    def _start(self, slot: _Slot, directory: str) -> anyio.Event | None:
        """Start the server unless it is connected, already being started, or paused after a failure. Return the event that marks the end
        of the start."""
        if slot.connection is None and slot.starting is None and self._may_start(slot):
            slot.starting, slot.ended = anyio.Event(), anyio.Event()
            self._group.start_soon(self._keep, slot.server, directory, slot, slot.starting)
        return slot.starting

    def _may_start(self, slot: _Slot) -> bool:
        """Return whether the pause after a failure is over. It ends early if someone has signed in or out since."""
        return slot.error is None or anyio.current_time() >= slot.retry_at or LoginFile(self._home, slot.server).stamp != slot.login

    async def _keep(self, server: McpServer, directory: str, slot: _Slot, starting: anyio.Event) -> None:
        """Keep one connection open until it is idle, lost, or no longer needed."""
        started_at, slot.login = anyio.current_time(), LoginFile(self._home, server).stamp
        try:
            with anyio.CancelScope(deadline=started_at + START_SECONDS) as scope:
                if server.plugin:
                    await to_thread.run_sync(check_unchanged, self._home, server.plugin)
                module = await to_thread.run_sync(import_module, _SDK)
                async with module.connect(server, Path(directory or "/"), _login(self._home, server)) as connection:
                    tools, prompts = await connection.tools(), await connection.prompts()
                    await to_thread.run_sync(self.accepted.record, server, tools, prompts)
                    scope.deadline = float("inf")
                    slot.connection, slot.error, slot.starting = connection, None, None
                    slot.used_at = anyio.current_time()
                    starting.set()
                    await self._hold(server, slot, connection)
                    if connection.lost.is_set() and not slot.closing.is_set():
                        self._failed(slot, connection.lost_error(), started_at)
            if scope.cancelled_caught:
                self._failed(slot, _late(server), started_at)
        except Exception as error:  # noqa: BLE001  a server may do anything, and must not end other connections or runs
            self._failed(slot, _reason(server, error), started_at)
        finally:
            slot.connection = slot.starting = None
            starting.set()
            slot.ended.set()

    async def _hold(self, server: McpServer, slot: _Slot, connection: Connection) -> None:
        """Wait for the end of a connection. While it lasts, fetch the tools again whenever the server reports that they have changed."""
        while not slot.closing.is_set() and not connection.lost.is_set():
            left = IDLE_SECONDS if slot.calls else slot.used_at + IDLE_SECONDS - anyio.current_time()
            if left <= 0:
                slot.closing.set()  # a call from now on gets a new connection
                return
            with anyio.move_on_after(left):
                await _first_of(slot.closing, connection.lost, connection.changed)
            if connection.changed.is_set():
                tools, prompts = await connection.tools(), await connection.prompts()
                await to_thread.run_sync(self.accepted.record, server, tools, prompts)
                with anyio.move_on_after(REFETCH_SECONDS):
                    await _first_of(slot.closing, connection.lost)

    def _failed(self, slot: _Slot, error: MootError, started_at: float) -> None:
        now = anyio.current_time()
        if slot.connection is not None and now - started_at > STABLE_SECONDS:
            slot.failures = 0
        slot.error = error
        slot.retry_at = now + PAUSES[min(slot.failures, len(PAUSES) - 1)]
        slot.failures += 1


async def fetch_tools(home: Path, server: McpServer, directory: str) -> tuple[McpTool, ...]:
    """Connect to a server that is not in the configuration yet, return its tools, and close the connection.

    Nothing is stored, and no tool is accepted. Raise MootError if the connection fails.
    """
    check_usable(server)
    module = await to_thread.run_sync(import_module, _SDK)
    try:
        with anyio.fail_after(START_SECONDS):
            async with module.connect(server, Path(directory or "/"), _login(home, server)) as connection:
                found: tuple[McpTool, ...] = await connection.tools()
                return found
    except TimeoutError as error:
        raise _late(server) from error
    except Exception as error:
        raise _reason(server, error) from error


def _login(home: Path, server: McpServer) -> object | None:
    """Return the authentication for requests to a remote server, or None if there is no login."""
    if not server.url or LoginFile(home, server).read() is None:
        return None
    login: object = attribute(_LOGIN)(home, server)
    return login


def check_usable(server: McpServer) -> None:
    """Raise Refused if the configuration of a server has a problem, such as a missing environment variable."""
    if server.problem:
        raise Refused(f"The MCP server {server.name!r} can't be used: {server.problem}")


def check_configured(server: McpServer) -> None:
    """Raise UsageError if a server can't be changed in the configuration, because it is part of a plugin."""
    if server.plugin:
        raise UsageError(
            f"The MCP server {server.name!r} is part of the plugin {server.plugin!r}.", fix=f"moot plugins disable {server.plugin}"
        )


def _late(server: McpServer) -> ProviderError:
    return ProviderError(f"The MCP server {server.name!r} did not start within {START_SECONDS:g} s.", kind="timeout")


def _reason(server: McpServer, error: Exception) -> MootError:
    """Log the failure of a connection, and return it as an error of moot."""
    found = first_error(error)
    log.info("the MCP server %s failed: %r", server.name, found)
    return found if isinstance(found, MootError) else ProviderError(f"The MCP server {server.name!r} failed: {found!r}", kind="failed")


async def _first_of(*events: anyio.Event) -> None:
    """Wait until one of the events is set."""
    async with anyio.create_task_group() as group:

        async def wait(event: anyio.Event) -> None:
            await event.wait()
            group.cancel_scope.cancel()

        for event in events:
            group.start_soon(wait, event)


def first_error(error: BaseException) -> BaseException:
    """Return the first exception in a group that is not itself a group. Return any other error unchanged."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
