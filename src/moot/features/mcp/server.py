"""moot as an MCP server: other agents search and read the stored conversations, and start runs if that is allowed.

Texts are quoted, with secrets removed and with a note that nothing in them is an instruction.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Annotated, Any, Literal, ParamSpec

import anyio
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from moot.engine import Engine
from moot.errors import MootError, UsageError
from moot.guard.secrets import redact
from moot.guard.terminal import clean
from moot.guard.tokens import digest
from moot.tools.builtin.knowledge import HISTORY_FRAME, quoted_hit, search_notes
from moot.types.canonical import dumps
from moot.types.message import Message, Part, is_tool, text_of, text_part, tool_name
from moot.types.run import TERMINAL, Prompt, Run
from moot.types.token import LOCAL_USER, expand_scopes

_INSTRUCTIONS = (
    "The user's conversations with all coding agents and assistants on this machine, stored by moot. Search them for earlier decisions,"
    " attempts and solutions, then read the conversation around a hit."
)
_CHARACTERS = 24_000
"""Maximum length of a text result, in characters."""
_TOOL_CHARACTERS = 600
"""Maximum length of a tool call's input and of its output, in characters."""
_LONGEST_RUN = 3600.0
"""Maximum number of seconds for which a call waits for a run."""

Words = Annotated[
    str, Field(description='Words, "phrases", -not; role:user agent: model: project: after:7d before: in:tools', max_length=500)
]
Reference = Annotated[str, Field(description="Id of a conversation, as in the results of `search` and `list`", max_length=200)]
P = ParamSpec("P")


def mcp_server(engine: Engine, directory: str, *, allow_runs: bool = False) -> MCPServer[Any]:
    """Return a server with the tools `search`, `list` and `read` and, if `allow_runs` is True, also `start` and `continue`.

    Runs start in `directory`. If a run needs an approval, it waits, and the result says so.
    """
    server = MCPServer[Any]("moot", instructions=_INSTRUCTIONS, log_level="ERROR")
    past = _Past(engine)
    reading = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    server.add_tool(_failing_clearly(past.search), name="search", annotations=reading, structured_output=False)
    server.add_tool(_failing_clearly(past.list), name="list", annotations=reading, structured_output=False)
    server.add_tool(_failing_clearly(past.read), name="read", annotations=reading, structured_output=False)
    if allow_runs:
        runs = _Runs(engine, directory)
        acting = ToolAnnotations(read_only_hint=False, destructive_hint=True)
        server.add_tool(_failing_clearly(runs.start), name="start", annotations=acting, structured_output=False)
        server.add_tool(_failing_clearly(runs.go_on), name="continue", annotations=acting, structured_output=False)
    return server


def _failing_clearly(tool: Callable[P, Awaitable[str]]) -> Callable[P, Awaitable[str]]:
    """Wrap a tool so that moot's errors become errors that the caller's model can read."""

    @wraps(tool)
    async def call(*arguments: P.args, **named: P.kwargs) -> str:
        try:
            return await tool(*arguments, **named)
        except MootError as error:
            raise ToolError(redact(error.advice())) from error

    return call


class _Past:
    """The tools that only read."""

    def __init__(self, engine: Engine) -> None:
        self._store = engine.store.of(LOCAL_USER)

    async def search(
        self,
        query: Words,
        order: Annotated[Literal["best", "newest"], Field(description="Order of the results")] = "best",
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
    ) -> str:
        """Search all earlier conversations. Returns short quotes with time, title and the id to read on."""
        page = await self._store.search.search(query, limit=limit, best=order == "best")
        lines = [HISTORY_FRAME] if page.hits else ["No matches."]
        for number, hit in enumerate(page.hits, 1):
            head, quote = quoted_hit(number, hit)
            lines += [head, f"   conversation {hit.conversation}, message {hit.message}", quote]
        return _cut("\n".join([*lines, *search_notes(page)]))

    async def list(
        self,
        query: Annotated[str, Field(description="Words in title, model, agent, origin or folder", max_length=500)] = "",
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
    ) -> str:
        """List conversations, most recently used first."""
        found = (await self._store.conversations.list(query=query, limit=limit, archived=None)).items
        lines: list[str] = []
        for one in found:
            facts = filter(None, (one.came_from or one.agent, one.shown_model, one.directory, f"{one.message_count} messages"))
            lines.append(f"{one.id} · {_moment(one.updated_at)} · {_line(one.title) or 'untitled'} · {' · '.join(map(_line, facts))}")
        return _cut("\n".join(lines) or "No conversations.")

    async def read(
        self,
        conversation: Reference,
        message: Annotated[str, Field(description="Id of a message to begin with. By default, the last messages are returned")] = "",
        limit: Annotated[int, Field(ge=1, le=100, description="Number of messages")] = 20,
    ) -> str:
        """Read messages of a conversation: the last ones, or those from a certain message on."""
        found = await self._store.conversations.get(conversation)
        head = None
        if message:
            named = await self._store.conversations.message(message, conversation=found.id)
            shown = {one.id for one in await self._store.conversations.branch(found.id)}
            head = None if named.id in shown else named.id
        branch = await self._store.conversations.branch(found.id, head=head)
        first = next((index for index, one in enumerate(branch) if one.id == message), max(0, len(branch) - limit)) if message else None
        begin = max(0, len(branch) - limit) if first is None else first
        some = branch[begin : begin + limit]
        lines = [f"{_line(found.title) or 'untitled'} · conversation {found.id}", HISTORY_FRAME, ""]
        lines += [_shown(one) for one in some]
        if begin:
            lines.append(f"({begin} earlier messages, from message {branch[0].id} on.)")
        if begin + limit < len(branch):
            lines.append(f"({len(branch) - begin - limit} later messages, from message {branch[begin + limit].id} on.)")
        return _cut("\n".join(lines))


class _Runs:
    """The tools that start runs."""

    def __init__(self, engine: Engine, directory: str) -> None:
        self._engine = engine
        self._directory = directory

    async def start(
        self,
        prompt: Annotated[str, Field(min_length=1, max_length=200_000)],
        agent: Annotated[str, Field(description="Name of an agent; empty = the default agent", max_length=200)] = "",
        model: Annotated[str, Field(description="Name of a model; empty = the agent's model", max_length=200)] = "",
    ) -> str:
        """Ask one of moot's agents in a new conversation, and return its answer."""
        parts = (text_part(prompt),)
        return await self._answer(Prompt(parts, directory=self._directory, agent=agent or None, model=model or None, trigger="api"))

    async def go_on(self, conversation: Reference, prompt: Annotated[str, Field(min_length=1, max_length=200_000)]) -> str:
        """Continue an earlier conversation with a prompt, and return the answer."""
        found = await self._engine.store.conversations.get(conversation)
        return await self._answer(Prompt((text_part(prompt),), conversation=found.id, directory=self._directory, trigger="api"))

    async def _answer(self, prompt: Prompt) -> str:
        submitted = await self._engine.runs.submit(prompt)
        run: Run = submitted.run
        with anyio.move_on_after(_LONGEST_RUN):
            run = await self._engine.runs.wait(run.id)
        text = text_of((await self._engine.store.conversations.message(run.message)).parts)
        if run.status in TERMINAL and run.status == "finished":
            return text or "The agent ended without a text."
        reason = run.error.message if run.error is not None else ""
        waits = "It waits for an answer of the user: moot approvals list" if run.status == "waiting" else ""
        raise ToolError(". ".join(filter(None, (f"The run {run.id} is {run.status}", redact(reason), waits, text))))


def guarded(app: ASGIApp, engine: Engine, *, allow_runs: bool) -> ASGIApp:
    """Return the app with a check of moot's tokens. A token needs the scope `read` and, if runs are allowed, also `tools`.

    Only the local user's tokens are accepted.
    """
    needed = "tools" if allow_runs else "read"

    async def check(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        headers = {name: value for name, value in scope["headers"] if name == b"authorization"}
        kind, _, secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        token = await engine.store.tokens.find(digest(secret.strip())) if kind.lower() == "bearer" and secret else None
        is_valid = token is not None and token.owner == LOCAL_USER and token.valid(int(time.time() * 1000))
        if token is None or not is_valid or needed not in expand_scopes(token.scopes, token.owner):
            problem = {"title": "Unauthorized", "status": 401, "detail": f"A token with the scope {needed!r} is required."}
            answer = JSONResponse(problem, 401, {"www-authenticate": 'Bearer realm="moot"'}, media_type="application/problem+json")
            await answer(scope, receive, send)
            return
        await app(scope, receive, send)

    return check


async def serve_http(app: ASGIApp, port: int, ready: Callable[[str], None]) -> None:
    """Serve the app on the loopback interface until a signal arrives.
    `ready` is called with the address. Raise UsageError if the port is in use.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            raise UsageError(f"Port {port} can't be used: {error.strerror}.", fix="Choose another one with --port.") from error
        ready(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
        await uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2)).serve(sockets=[listener])


# ── texts ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _shown(message: Message) -> str:
    lines = [f"── {message.role} · {_moment(message.created_at)} · message {message.id}"]
    for part in message.parts:
        if part.get("type") == "text":
            lines.append(redact(clean(str(part.get("text", "")))))
        elif is_tool(part):
            lines.append(_call(part))
        elif part.get("type") == "file":
            lines.append(f"[file: {_line(str(part.get('filename') or part.get('mediaType') or ''))}]")
    return "\n".join([*lines, ""])


def _call(part: Part) -> str:
    given = _short(dumps(part.get("input")).decode())
    output = part.get("output", part.get("errorText"))
    result = "" if output is None else f" → {_short(output if isinstance(output, str) else dumps(output).decode())}"
    return f"[{tool_name(part)} {given}{result}]"


def _short(text: str) -> str:
    line = _line(text)
    return line if len(line) <= _TOOL_CHARACTERS else f"{line[:_TOOL_CHARACTERS]}… ({len(line):,} characters)"


def _line(text: str) -> str:
    return redact(" ".join(clean(text).split()))


def _moment(at: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000))


def _cut(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}\n(The result is longer. Ask for fewer messages.)"
