"""The connection to an ACP agent: the handshake, requests in both directions, interruption, and a record of every line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from moot.agents.known import AcpAgent
from moot.agents.outside.process import Program
from moot.agents.outside.rpc import Incoming, Rpc, RpcRefused
from moot.agents.outside.turn import Turn
from moot.convert.agents import acp
from moot.convert.vendor import as_list, as_object
from moot.errors import ConfigError, ProviderError
from moot.guard.terminal import clean
from moot.types.canonical import Json, JsonObject

NOISE = 5_000
"""Maximum number of lines that are not messages. If there are more, the agent counts as broken, because they would fill the log."""
INTERRUPT = 0.6
"""Number of seconds to wait for an agent to end its answer after a cancellation."""
QUIET, REPLAY = 0.3, 5.0
"""Seconds of silence after which the replay of a loaded session is over, and the maximum time to wait for it."""


class Refuse(Exception):
    """The error response to a request that moot refuses."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


Serve = Callable[[Incoming], Awaitable[Json]]
"""Handler of an agent's requests. The handler may raise Refuse."""


class Link:
    """A connection to one process, used for one exchange."""

    def __init__(self, agent: AcpAgent, program: Program, turn: Turn, serve: Serve, patience: float) -> None:
        """`patience` is the time limit in seconds for each response to `ask`, because programs start slowly on a busy machine."""
        self.agent = agent
        self._patience = patience
        self._program = program
        self._turn = turn
        self._serve = serve
        self._rpc = Rpc(self._send)
        self._permissions: list[Incoming] = []
        """Unanswered permission requests."""
        self._pumping = anyio.CancelScope(shield=True)
        self._over = False
        self._lines = 0
        self._news = anyio.Event()
        """Set after each read and then replaced with a new event, so that each wait is for the next read."""

    async def pump(self, group: TaskGroup) -> None:
        """Read until the agent closes its stdout or `stop` is called.
        Shielded from cancellation, to read the lines that the agent sends after it.
        """
        with self._pumping:
            try:
                async with aclosing(self._program.reads()) as reads:
                    async for lines in reads:
                        await self._turn.record_received(*lines)
                        self._lines += len(lines)
                        for line in lines:
                            incoming = self._rpc.take(line)
                            if incoming is not None and incoming.asks:
                                group.start_soon(self._answer, incoming)
                        self._news.set()
                        self._news = anyio.Event()
                        if self.state.noise > NOISE:
                            name = self._program.argv[0]
                            raise ProviderError(
                                f"{name!r} is broken or not an ACP agent: it writes lines to stdout that are not ACP messages."
                            )
                error = self._program.died("exited before its answer was complete", await self._program.ended())
            except ProviderError as raised:
                error = raised
            self._over = True
            self._news.set()
            self._rpc.fail(error)

    def stop(self) -> None:
        """End `pump`."""
        self._pumping.cancel()

    @property
    def state(self) -> acp.State:
        """Return the translator's state."""
        state = self._turn.state
        assert isinstance(state, acp.State)
        return state

    async def request(self, method: str, params: JsonObject, *, timed: bool = False) -> JsonObject:
        """Return the result of a request. Raise RpcRefused if the agent refuses it,
        ProviderError if the agent has exited or a `timed` request times out.
        """
        return as_object(await self._rpc.request(method, params, seconds=self._patience if timed else None))

    async def ask(self, method: str, params: JsonObject, what: str, methods: Json = None) -> JsonObject:
        """Return the result of a request with a time limit. Raise ProviderError if it is refused;
        `what` completes the message "The agent could not …".
        """
        try:
            return await self.request(method, params, timed=True)
        except RpcRefused as error:
            raise refusal_error(error, what, self.agent, methods) from error

    async def quiet(self) -> None:
        """Wait until the agent has been silent for a while, because some agents answer `session/load` before they replay the session."""
        with anyio.move_on_after(REPLAY):
            while not self._over:
                before = self._lines
                await anyio.sleep(QUIET)
                if self._lines == before:
                    return

    async def interrupt(self, session: str) -> None:
        """Ask the agent to end its answer. Return when it has done so or the time limit is reached. Shielded from cancellation."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(INTERRUPT):
            try:
                for request in tuple(self._permissions):  # the protocol requires this answer
                    await self._rpc.reply(request, {"outcome": {"outcome": "cancelled"}})
                await self._rpc.notify("session/cancel", {"sessionId": session})
                while not self._over and not self.state.stop:
                    await self._news.wait()
            except ProviderError:
                pass  # it has already exited

    async def _answer(self, incoming: Incoming) -> None:
        asks_a_person = incoming.method == "session/request_permission"
        if asks_a_person:
            self._permissions.append(incoming)
        try:
            try:
                result = await self._serve(incoming)
            except Refuse as refusal:
                await self._rpc.refuse(incoming, refusal.code, refusal.message)
            else:
                if asks_a_person:
                    self._permissions.remove(incoming)
                await self._rpc.reply(incoming, result)
        except ProviderError:
            pass  # it died while waiting; the reader of its stdout reports that

    async def _send(self, line: bytes) -> None:
        await self._turn.record_sent(line)
        await self._program.write(line)


AUTH_REQUIRED = -32000
VERSION = 1
"""Version of the protocol that moot speaks."""
_SHOWN = 500


def refusal_error(error: RpcRefused, what: str, agent: AcpAgent, methods: Json) -> ProviderError:
    """Return the error for a refused request. If the agent requires a login, the fix says how to log in."""
    message, detail = error.message.partition("was refused: ")[2] or error.message, error.data
    if isinstance(detail, dict):
        detail = detail.get("details") or detail.get("message") or detail.get("error")
    if isinstance(detail, str) and detail and detail not in message:  # many messages are only "Internal error"
        message = f"{message}: {detail}"
    words, name = clean(message)[:_SHOWN], _name(agent)
    if error.rpc_code != AUTH_REQUIRED and "authenticat" not in words.lower():
        return ProviderError(f"{name} could not {what}: {words}", kind="failed")
    described = (str(way.get("description") or way.get("name") or way.get("id")) for way in as_list(methods) if isinstance(way, dict))
    fix = f"Log in with `{agent.login}`." if agent.login else clean("; ".join(described))[:_SHOWN] or f"Log in with {name}'s own program."
    return ProviderError(f"{name} requires a login: {words}", kind="auth", fix=fix)


def _name(agent: AcpAgent) -> str:
    return repr(agent.name) if agent.name else "The agent"


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The session that a turn requests, and its settings."""

    directory: str
    session: str = ""
    """Id of the session to continue; empty for a new session."""
    planning: bool = False
    mode: str = ""
    """The requested mode, under the agent's own name for it."""
    model: str = ""
    servers: tuple[JsonObject, ...] = ()
    """MCP servers in the format of the protocol."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session that is ready for the prompt."""

    session: str
    takes: JsonObject
    """The agent's `promptCapabilities`: the kinds of content that it accepts."""
    fresh: bool
    """True if the session does not contain the conversation's history."""


async def prepare(link: Link, wanted: SessionOptions) -> OpenSession:
    """Open the session. Raise ProviderError with the agent's message, or ConfigError for an unknown mode or model."""
    agent = link.agent
    about: JsonObject = {
        "protocolVersion": VERSION,
        "clientCapabilities": {"fs": {"readTextFile": agent.files, "writeTextFile": agent.files}, "terminal": True},
        "clientInfo": {"name": "moot", "title": "moot", "version": "1"},
    }
    initialized = await link.ask("initialize", about, "start")
    if (version := initialized.get("protocolVersion")) != VERSION:
        message = f"{_name(agent)} speaks version {version!r} of the Agent Client Protocol, and moot speaks version {VERSION}."
        fix = f"Update moot, or install a version of {_name(agent)} that speaks version {VERSION}."
        raise ProviderError(message, kind="protocol", fix=fix)
    methods, can = initialized.get("authMethods"), as_object(initialized.get("agentCapabilities"))
    if agent.method and any(as_object(method).get("id") == agent.method for method in as_list(methods)):
        await link.ask("authenticate", {"methodId": agent.method}, "log in", methods)
    transports = as_object(can.get("mcpCapabilities"))  # all agents can use stdio servers, which have no type
    servers: list[Json] = [server for server in wanted.servers if "type" not in server or transports.get(str(server["type"])) is True]
    place: JsonObject = {"cwd": wanted.directory, "mcpServers": servers}
    session, answer = await _old(link, wanted, place, can)
    fresh = not session
    if fresh:
        answer = await link.ask("session/new", place, "open a session", methods)
        session = str(answer.get("sessionId", ""))
        if not session:
            raise ProviderError(f"{_name(agent)} started a session without an id.", kind="protocol")
    await _set_mode(link, wanted, session, answer)
    await _set_model(link, wanted, session, answer)
    return OpenSession(session, as_object(can.get("promptCapabilities")), fresh)


async def _old(link: Link, wanted: SessionOptions, place: JsonObject, can: JsonObject) -> tuple[str, JsonObject]:
    """Reopen the conversation's session with this agent.
    Return its id (empty if the session is no longer available) and the agent's response.

    `session/resume` is tried first, because it replays nothing.
    If the agent refuses to resume the session, it may still be able to load it.
    """
    if not wanted.session:
        return "", {}
    ways = [("session/resume", "resume" in as_object(can.get("sessionCapabilities"))), ("session/load", can.get("loadSession") is True)]
    for method, has in ways:
        if not has:
            continue
        try:
            answer = await link.request(method, {"sessionId": wanted.session, **place}, timed=True)
        except RpcRefused:
            continue
        if method == "session/load":
            await link.quiet()
        return wanted.session, answer
    return "", {}


async def _set_mode(link: Link, wanted: SessionOptions, session: str, opened: JsonObject) -> None:
    """Set the session's mode: the agent's own plan mode if moot's mode is `plan`, otherwise a mode in which the agent asks for permission.

    moot's policy answers, so deny rules apply in mode `auto` too. An agent that doesn't ask would ignore them.
    """
    agent, modes = link.agent, as_object(opened.get("modes"))
    has = [str(mode.get("id")) for mode in as_list(modes.get("availableModes")) if isinstance(mode, dict)]
    current, option = modes.get("currentModeId"), _option(opened, "mode")
    if not has and option is not None:
        has, current = _values(option), option.get("currentValue")
    if wanted.mode and wanted.mode not in has:
        raise ConfigError(f"{_name(agent)} has no mode {wanted.mode!r}. Available modes: {', '.join(has) or 'none'}.")
    names = (wanted.mode,) if wanted.mode else agent.planning if wanted.planning else agent.asking
    mode = next((name for name in names if name in has), None)
    if mode is None or mode == current:
        return
    if modes:
        await link.ask("session/set_mode", {"sessionId": session, "modeId": mode}, f"switch to mode {mode!r}")
    elif option is not None:
        await _set_option(link, session, option, mode)


async def _set_model(link: Link, wanted: SessionOptions, session: str, opened: JsonObject) -> None:
    if not wanted.model:
        return
    models, option = as_object(opened.get("models")), _option(opened, "model")
    has = _values(option) if option is not None else []
    has = has or [str(model.get("modelId")) for model in as_list(models.get("availableModels")) if isinstance(model, dict)]
    if wanted.model not in has:
        raise ConfigError(f"{_name(link.agent)} has no model {wanted.model!r}. Available models: {', '.join(has) or 'none'}.")
    if option is not None:
        await _set_option(link, session, option, wanted.model)
    else:
        await link.ask("session/set_model", {"sessionId": session, "modelId": wanted.model}, f"use the model {wanted.model!r}")


async def _set_option(link: Link, session: str, option: JsonObject, value: str) -> None:
    chosen: JsonObject = {"sessionId": session, "configId": str(option.get("id")), "value": value}
    await link.ask("session/set_config_option", chosen, f"use {value!r}")


def _option(opened: JsonObject, name: str) -> JsonObject | None:
    options = [option for option in as_list(opened.get("configOptions")) if isinstance(option, dict)]
    return next((option for option in options if name in (option.get("id"), option.get("category"))), None)


def _values(option: JsonObject) -> list[str]:
    """Return the values that can be selected, including those in groups."""
    found: list[str] = []
    for value in as_list(option.get("options")):
        if isinstance(value, dict):
            found += _values(value) if "options" in value else [str(value.get("value"))]
    return found
