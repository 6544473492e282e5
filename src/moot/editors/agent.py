"""The agent that an editor talks to: it answers the protocol's requests with sessions, which are conversations of moot."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
from acp import PROTOCOL_VERSION, AgentSideConnection, RequestError
from acp.helpers import ContentBlock, update_available_commands
from acp.interfaces import Agent, Client
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
    AuthMethodAgent,
    AvailableCommand,
    AvailableCommandInput,
    ClientCapabilities,
    CloseSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
    UnstructuredCommandInput,
)
from anyio.abc import TaskGroup

from moot import __version__
from moot.commands import Choice, CommandContext, catalogue_of
from moot.commands.settings import ModelCommand
from moot.editors.options import NAMES, modes
from moot.editors.session import Session, offered, session_of
from moot.editors.updates import stored_updates
from moot.editors.wire import INVALID_PARAMS, NOT_FOUND, SIGN_IN, request_error, standard_streams
from moot.engine import Engine
from moot.engine.submissions import copy_of
from moot.errors import MootError
from moot.features.settings import allow_folders, chosen_folders
from moot.guard.terminal import clean
from moot.types.conversation import Conversation
from moot.types.ids import new_id

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_PAGE = 50
_SET_UP = "setup"
_SET_UP_HELP = "Run `moot` in a terminal and choose a model, or set the API key of a provider, then try again."

log = logging.getLogger("moot.editors")


async def serve(engine: Engine) -> None:
    """Serve an editor on stdin and stdout until it closes stdin. Raise UsageError if these are not pipes."""
    async with standard_streams() as lines, anyio.create_task_group() as group:
        agent = EditorAgent(engine, group)
        connection = AgentSideConnection(cast("Agent", agent), lines, listening=False, use_unstable_protocol=True)
        try:
            await connection.listen()
        finally:
            with anyio.CancelScope(shield=True):
                await connection.close()
            group.cancel_scope.cancel()


@asynccontextmanager
async def _clear_errors() -> AsyncGenerator[None]:
    try:
        yield
    except MootError as error:
        raise request_error(error) from error


class EditorAgent:
    """The handlers of the protocol's requests. The names of the methods and arguments are those of the protocol's library."""

    def __init__(self, engine: Engine, group: TaskGroup) -> None:
        self._engine = engine
        self._group = group
        self._client: Client | None = None
        self._editor = "editor"
        self._sessions: dict[str, Session] = {}
        self._models: Sequence[Choice] = ()

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: Any,
    ) -> InitializeResponse:
        name = clean(client_info.title or client_info.name) if client_info is not None else ""
        self._editor = " ".join(name.replace(":", " ").split())[:40] or "editor"
        self._group.start_soon(self._list_models)
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="moot", title="moot", version=__version__),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, audio=True, embedded_context=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                    additional_directories=SessionAdditionalDirectoriesCapabilities(),
                ),
            ),
            auth_methods=[] if await self._missing_model() is None else [_setup_method()],
        )

    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse:
        """Check whether a model is available now. moot itself needs no login."""
        if (error := await self._missing_model()) is not None:
            raise RequestError(SIGN_IN, f"{error.message} {_SET_UP_HELP}")
        return AuthenticateResponse()

    async def _missing_model(self) -> MootError | None:
        try:
            await self._engine.providers.choice()
        except MootError as error:
            return error
        return None

    async def _list_models(self) -> None:
        """Get the list of models in the background, because some providers answer slowly."""
        try:
            self._models = await ModelCommand().choices(CommandContext(self._engine, ""))
        except MootError as error:
            log.warning("could not list the models: %s", error.advice())
            return
        for session in self._sessions.values():
            session.models = self._models
            with suppress(ConnectionError):
                await session.refresh()

    # ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def new_session(
        self, cwd: str, additional_directories: list[str] | None = None, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> NewSessionResponse:
        async with _clear_errors():
            directory = _folder(cwd)
            if (error := await self._missing_model()) is not None and not await self._default_is_outside(directory):
                raise RequestError(SIGN_IN, f"{error.message} {_SET_UP_HELP}")
            context = CommandContext(self._engine, directory, further_folders=list(_folders(additional_directories, directory)))
            context.without_conversation = "Send a prompt first."
            session = self._open(new_id(), context, mcp_servers)
            response = NewSessionResponse(
                session_id=session.id, modes=modes(context, None), config_options=cast("Any", await session.options())
            )
            self._group.start_soon(self._introduce, session)
            return response

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: Sequence[Any] | None = None,
        additional_directories: list[str] | None = None,
        **_: Any,
    ) -> LoadSessionResponse:
        """Open a stored conversation and show its messages."""
        async with _clear_errors():
            session, conversation = await self._stored(session_id, cwd, additional_directories, mcp_servers)
            for message in await self._engine.store.conversations.branch(conversation.id):
                await session.show(*await stored_updates(self._engine.store, message, conversation.directory))
            self._group.start_soon(self._introduce, session)
            return LoadSessionResponse(modes=modes(session.context, conversation), config_options=cast("Any", await session.options()))

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: Sequence[Any] | None = None,
        **_: Any,
    ) -> ResumeSessionResponse:
        """Open a stored conversation without showing its messages."""
        async with _clear_errors():
            session, conversation = await self._stored(session_id, cwd, additional_directories, mcp_servers)
            self._group.start_soon(self._introduce, session)
            return ResumeSessionResponse(modes=modes(session.context, conversation), config_options=cast("Any", await session.options()))

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """List the stored conversations, most recently used first."""
        async with _clear_errors():
            page = await self._engine.store.conversations.list(limit=_PAGE, cursor=cursor, directory=cwd)
            found = [
                SessionInfo(
                    session_id=session_of(one),
                    cwd=one.directory or str(Path.home()),
                    title=clean(one.title) or None,
                    updated_at=datetime.fromtimestamp(one.updated_at / 1000, UTC).isoformat(),
                )
                for one in page.items
            ]
            return ListSessionsResponse(sessions=found, next_cursor=page.next_cursor)

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        async with _clear_errors():
            await self._session(session_id).cancel()
            del self._sessions[session_id]
            return CloseSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        async with _clear_errors():
            session = self._session(session_id)
            await session.change("mode", mode_id)
            self._group.start_soon(session.refresh)
            return SetSessionModeResponse()

    async def set_config_option(self, config_id: str, session_id: str, value: str | bool, **_: Any) -> SetSessionConfigOptionResponse:
        async with _clear_errors():
            session = self._session(session_id)
            if config_id not in NAMES:
                raise RequestError(INVALID_PARAMS, f"Unknown option {config_id!r}. Available options: {', '.join(NAMES)}.")
            await session.change(config_id, str(value))
            self._group.start_soon(session.refresh)
            return SetSessionConfigOptionResponse(config_options=cast("Any", await session.options()))

    # ── prompts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def prompt(self, session_id: str, prompt: list[ContentBlock], **_: Any) -> PromptResponse:
        async with _clear_errors():
            session = self._session(session_id)
            response = await session.prompt(prompt)
            self._group.start_soon(session.show_title)
            return response

    async def cancel(self, session_id: str, **_: Any) -> None:
        if (session := self._sessions.get(session_id)) is not None:
            await session.cancel()

    # ── parts ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _session(self, id: str) -> Session:
        session = self._sessions.get(id)
        if session is None:
            raise RequestError(NOT_FOUND, f"Session {id!r} not found. Open it with session/new or session/load.")
        return session

    def _open(self, id: str, context: CommandContext, servers: Sequence[Any] | None) -> Session:
        assert self._client is not None
        session = self._sessions[id] = Session(self._engine, self._client, id, context, self._editor)
        session.models = self._models
        own = self._engine.runtime.settings.mcp
        if left := sorted({str(server.name) for server in servers or ()} - own.keys()):
            session.announce(
                f"moot doesn't use the editor's MCP servers ({', '.join(map(clean, left))}). To use one, add it with `moot mcp add`."
            )
        return session

    async def _stored(self, id: str, cwd: str, more: list[str] | None, servers: Sequence[Any] | None) -> tuple[Session, Conversation]:
        directory = _folder(cwd)
        conversations = self._engine.store.conversations
        found = await conversations.by_client_id(id)
        if found is None or found.deleted_at is not None:
            raise RequestError(NOT_FOUND, f"Session {id!r} not found.")
        found = await copy_of(conversations, found) or found
        if folders := _folders(more, directory):
            found = await allow_folders(self._engine, found.id, folders, directory)
        if id in self._sessions:
            await self._sessions[id].cancel()
        context = CommandContext(self._engine, directory, found.id)
        return self._open(id, context, servers), found

    async def _default_is_outside(self, directory: str) -> bool:
        agents = self._engine.runtime.settings.agents
        return any(agent.default and agent.agent_type != "moot" for agent in agents.values())

    async def _introduce(self, session: Session) -> None:
        """Send the list of slash commands and the title."""
        assert self._client is not None
        with suppress(ConnectionError):
            found = offered(await catalogue_of(session.context))
            commands = [
                AvailableCommand(name=name, description=about, input=_input(argument) if argument else None)
                for name, about, argument in found
            ]
            await self._client.session_update(session_id=session.id, update=update_available_commands(commands))
            await session.refresh()


def _input(argument: str) -> AvailableCommandInput:
    return AvailableCommandInput(root=UnstructuredCommandInput(hint=argument))


def _setup_method() -> AuthMethodAgent:
    return AuthMethodAgent(id=_SET_UP, name="Choose a model", description=_SET_UP_HELP)


def _folder(cwd: str) -> str:
    if not Path(cwd).is_absolute():
        raise RequestError(INVALID_PARAMS, f"cwd must be an absolute path, not {cwd!r}.")
    return chosen_folders([cwd], "/")[0]


def _folders(paths: list[str] | None, directory: str) -> tuple[str, ...]:
    relative = next((path for path in paths or () if not Path(path).is_absolute()), None)
    if relative is not None:
        raise RequestError(INVALID_PARAMS, f"additionalDirectories must be absolute paths, not {relative!r}.")
    return chosen_folders(paths or (), directory)
