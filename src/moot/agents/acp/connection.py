"""The connection to an ACP agent: the handshake, requests in both directions, interruption, and a record of every line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from moot.agents.known import AcpAgent
from moot.agents.outside.process import Program
from moot.agents.outside.rpc import METHOD_NOT_FOUND, Incoming, Rpc, RpcRefused
from moot.agents.outside.turn import Turn
from moot.convert.agents import acp
from moot.errors import ConfigError, ProviderError
from moot.guard.terminal import clean
from moot.types.canonical import Json, JsonObject

NOISE = 5_000
"""Number of lines that are not messages after which an agent counts as broken: they would fill the log."""
INTERRUPT = 0.6
"""Seconds that an agent has to end its answer when it is cancelled."""
QUIET, REPLAY = 0.3, 5.0
"""Seconds of silence after which the replay of a loaded session is over, and the maximum time to wait for it."""


class Refuse(Exception):
    """The error response to a request that moot refuses."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


Serve = Callable[[Incoming], Awaitable[Json]]
"""Handler of an agent's requests. It may raise Refuse."""


class Link:
    """A connection to one process, used for one exchange."""

    def __init__(self, program: Program, turn: Turn, serve: Serve) -> None:
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
        """Set after each read, and replaced with a new one."""

    async def pump(self, group: TaskGroup) -> None:
        """Read until the agent closes its stdout or `stop` is called. Shielded from cancellation, to read what follows a cancel."""
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
                            raise ProviderError(
                                f"{self._program.argv[0]!r} writes lines to stdout that are not messages: it is broken or not an ACP agent"
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

    async def request(self, method: str, params: JsonObject, *, seconds: float | None = None) -> JsonObject:
        """Return the result. Raise RpcRefused, or ProviderError if the agent is gone or did not answer in time."""
        result = await self._rpc.request(method, params, seconds=seconds)
        return result if isinstance(result, dict) else {}

    async def quiet(self) -> None:
        """Wait until the agent is silent for a while: some answer `session/load` before they replay the session."""
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


def unknown(incoming: Incoming) -> Refuse:
    """Return the response to an unknown method."""
    return Refuse(METHOD_NOT_FOUND, f"Method not found: {incoming.method}")


AUTH_REQUIRED = -32000
VERSION = 1
"""Version of the protocol that moot speaks."""
_SHOWN = 500


def check_version(initialized: JsonObject, agent: AcpAgent) -> None:
    """Raise ProviderError if the agent speaks another version of the protocol."""
    version = initialized.get("protocolVersion")
    if version == VERSION:
        return
    message = f"{_name(agent)} speaks version {version!r} of the Agent Client Protocol, and moot speaks version {VERSION}"
    raise ProviderError(message, kind="protocol", fix=f"update moot, or install a version of {_name(agent)} that speaks version {VERSION}")


def refusal_error(error: RpcRefused, what: str, agent: AcpAgent, methods: Json) -> ProviderError:
    """Return the error for a refused request. If the agent requires a login, the fix names its own command."""
    words = _shown(error)
    if error.rpc_code != AUTH_REQUIRED and "authenticat" not in words.lower():
        return ProviderError(f"{_name(agent)} could not {what}: {words}", kind="failed")
    fix = f"log in with `{agent.login}`" if agent.login else _ways(methods) or f"log in with {_name(agent)}'s own program"
    return ProviderError(f"{_name(agent)} requires a login: {words}", kind="auth", fix=fix)


def _name(agent: AcpAgent) -> str:
    return repr(agent.name or "the agent")


def _shown(error: RpcRefused) -> str:
    """Return the message with its details: many messages are only "Internal error"."""
    message = error.message.partition("was refused: ")[2] or error.message
    data = error.data
    detail = data.get("details") or data.get("message") or data.get("error") if isinstance(data, dict) else data
    text = f"{message}: {detail}" if isinstance(detail, str) and detail and detail not in message else message
    return clean(text)[:_SHOWN]


def _ways(methods: Json) -> str:
    """Return the agent's own description of how to log in."""
    methods_text: list[str] = []
    for method in methods if isinstance(methods, list) else []:
        if isinstance(method, dict):
            methods_text.append(str(method.get("description") or method.get("name") or method.get("id")))
    return clean("; ".join(methods_text))[:_SHOWN]


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The requested session."""

    directory: str
    session: str = ""
    """The session to continue; empty for a new one."""
    planning: bool = False
    mode: str = ""
    """Requested mode, by the agent's own name."""
    model: str = ""
    servers: tuple[JsonObject, ...] = ()
    """MCP servers in the protocol's form."""
    patience: float = 120.0
    """Seconds for each response: programs start slowly on a busy machine."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session ready for its prompt."""

    session: str
    takes: JsonObject
    """`promptCapabilities`"""
    fresh: bool
    """True if the session does not contain the conversation's history."""


async def prepare(link: Link, agent: AcpAgent, wanted: SessionOptions) -> OpenSession:
    """Open the session. Raise ProviderError with the agent's message, or ConfigError for an unknown mode or model."""
    about: JsonObject = {
        "protocolVersion": VERSION,
        "clientCapabilities": {"fs": {"readTextFile": agent.files, "writeTextFile": agent.files}, "terminal": True},
        "clientInfo": {"name": "moot", "title": "moot", "version": "1"},
    }
    initialized = await _ask(link, agent, "initialize", about, "begin", wanted)
    check_version(initialized, agent)
    methods, can = initialized.get("authMethods"), _object(initialized, "agentCapabilities")
    if agent.method and any(isinstance(method, dict) and method.get("id") == agent.method for method in _list(methods)):
        await _ask(link, agent, "authenticate", {"methodId": agent.method}, "log in", wanted, methods)
    servers: list[Json] = [server for server in wanted.servers if _takes(server, can)]
    place: JsonObject = {"cwd": wanted.directory, "mcpServers": servers}
    session, answer = await _old(link, wanted, place, can)
    fresh = not session
    if fresh:
        answer = await _ask(link, agent, "session/new", place, "open a session", wanted, methods)
        session = str(answer.get("sessionId", ""))
        if not session:
            raise ProviderError(f"{agent.name!r} opened a session without an id", kind="protocol")
    await _set_mode(link, agent, wanted, session, answer)
    await _set_model(link, agent, wanted, session, answer)
    return OpenSession(session, _object(can, "promptCapabilities"), fresh)


async def _old(link: Link, wanted: SessionOptions, place: JsonObject, can: JsonObject) -> tuple[str, JsonObject]:
    """Reopen the conversation's session with this agent. Return its id, empty if it is not available any more, and the response.

    `session/resume` comes first, because it replays nothing. If the agent refuses it for this session, it may still load it.
    """
    if not wanted.session:
        return "", {}
    ways = [("session/resume", "resume" in _object(can, "sessionCapabilities")), ("session/load", can.get("loadSession") is True)]
    for method, has in ways:
        if not has:
            continue
        try:
            answer = await link.request(method, {"sessionId": wanted.session, **place}, seconds=wanted.patience)
        except RpcRefused:
            continue
        if method == "session/load":
            await link.quiet()
        return wanted.session, answer
    return "", {}


async def _ask(
    link: Link, agent: AcpAgent, method: str, params: JsonObject, what: str, wanted: SessionOptions, methods: Json = None
) -> JsonObject:
    try:
        return await link.request(method, params, seconds=wanted.patience)
    except RpcRefused as error:
        raise refusal_error(error, what, agent, methods) from error


async def _set_mode(link: Link, agent: AcpAgent, wanted: SessionOptions, session: str, opened: JsonObject) -> None:
    """Set the session's mode: the agent's own plan mode for plan, otherwise a mode in which it asks and moot's policy answers.

    So deny rules hold in `auto` too; an agent that stopped asking would ignore them.
    """
    modes = _object(opened, "modes")
    has = [str(mode.get("id")) for mode in _list(modes.get("availableModes")) if isinstance(mode, dict)]
    current, option = modes.get("currentModeId"), _option(opened, "mode")
    if not has and option is not None:
        has, current = _values(option), option.get("currentValue")
    if wanted.mode and wanted.mode not in has:
        raise ConfigError(f"{agent.name!r} has no mode {wanted.mode!r}; it has: {', '.join(has) or 'none'}")
    names = (wanted.mode,) if wanted.mode else agent.planning if wanted.planning else agent.asking
    mode = next((name for name in names if name in has), None)
    if mode is None or mode == current:
        return
    if modes:
        await _ask(link, agent, "session/set_mode", {"sessionId": session, "modeId": mode}, f"switch to mode {mode!r}", wanted)
    elif option is not None:
        await _set_option(link, agent, wanted, session, option, mode)


async def _set_model(link: Link, agent: AcpAgent, wanted: SessionOptions, session: str, opened: JsonObject) -> None:
    if not wanted.model:
        return
    models, option = _object(opened, "models"), _option(opened, "model")
    has = _values(option) if option is not None else []
    has = has or [str(model.get("modelId")) for model in _list(models.get("availableModels")) if isinstance(model, dict)]
    if wanted.model not in has:
        raise ConfigError(f"{agent.name!r} has no model {wanted.model!r}; it has: {', '.join(has) or 'none to choose from'}")
    if option is not None:
        await _set_option(link, agent, wanted, session, option, wanted.model)
    else:
        await _ask(link, agent, "session/set_model", {"sessionId": session, "modelId": wanted.model}, f"take {wanted.model!r}", wanted)


async def _set_option(link: Link, agent: AcpAgent, wanted: SessionOptions, session: str, option: JsonObject, value: str) -> None:
    chosen: JsonObject = {"sessionId": session, "configId": str(option.get("id")), "value": value}
    await _ask(link, agent, "session/set_config_option", chosen, f"take {value!r}", wanted)


def _option(opened: JsonObject, name: str) -> JsonObject | None:
    options = [option for option in _list(opened.get("configOptions")) if isinstance(option, dict)]
    return next((option for option in options if name in (option.get("id"), option.get("category"))), None)


def _values(option: JsonObject) -> list[str]:
    """Return the values that may be chosen, including those in groups."""
    found: list[str] = []
    for value in _list(option.get("options")):
        if isinstance(value, dict):
            found += _values(value) if "options" in value else [str(value.get("value"))]
    return found


def _takes(server: JsonObject, can: JsonObject) -> bool:
    """Return True if the agent can use an MCP server of that kind; all can use stdio."""
    kind = server.get("type")
    return kind is None or _object(can, "mcpCapabilities").get(str(kind)) is True


def _object(value: JsonObject, name: str) -> JsonObject:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
