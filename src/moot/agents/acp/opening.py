"""The handshake, from a process that was just started to an open session: capabilities, the session, its mode and model."""

from __future__ import annotations

from dataclasses import dataclass

from moot.agents.acp.link import Link
from moot.agents.acp.words import VERSION, refused, speaks
from moot.agents.known.acp import AcpAgent
from moot.agents.outside.rpc import RpcRefused
from moot.errors import ConfigError, ProviderError
from moot.types.canonical import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Wanted:
    """The requested session."""

    directory: str
    session: str = ""
    """The session to continue; empty for a new one."""
    planning: bool = False
    mode: str = ""
    """Requested by its own name."""
    model: str = ""
    servers: tuple[JsonObject, ...] = ()
    """MCP servers in the protocol's form."""
    patience: float = 120.0
    """Seconds for each response: programs start slowly on a busy machine."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A session ready for its prompt."""

    session: str
    takes: JsonObject
    """`promptCapabilities`"""
    fresh: bool
    """It does not have the conversation's history."""


async def prepare(link: Link, agent: AcpAgent, wanted: Wanted) -> Opened:
    """Open the session. Raise ProviderError with the agent's message, or ConfigError for an unknown mode or model."""
    about: JsonObject = {
        "protocolVersion": VERSION,
        "clientCapabilities": {"fs": {"readTextFile": agent.files, "writeTextFile": agent.files}, "terminal": True},
        "clientInfo": {"name": "moot", "title": "moot", "version": "1"},
    }
    initialized = await _ask(link, agent, "initialize", about, "begin", wanted)
    speaks(initialized, agent)
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
    return Opened(session, _object(can, "promptCapabilities"), fresh)


async def _old(link: Link, wanted: Wanted, place: JsonObject, can: JsonObject) -> tuple[str, JsonObject]:
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


async def _ask(link: Link, agent: AcpAgent, method: str, params: JsonObject, what: str, wanted: Wanted, methods: Json = None) -> JsonObject:
    try:
        return await link.request(method, params, seconds=wanted.patience)
    except RpcRefused as error:
        raise refused(error, what, agent, methods) from error


async def _set_mode(link: Link, agent: AcpAgent, wanted: Wanted, session: str, opened: JsonObject) -> None:
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


async def _set_model(link: Link, agent: AcpAgent, wanted: Wanted, session: str, opened: JsonObject) -> None:
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


async def _set_option(link: Link, agent: AcpAgent, wanted: Wanted, session: str, option: JsonObject, value: str) -> None:
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
