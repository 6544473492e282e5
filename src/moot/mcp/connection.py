"""One connection to an MCP server, with the official SDK. Imported when the first server is used, because the SDK takes long to import."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from math import inf
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import httpx2
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.auth.exceptions import OAuthFlowError, OAuthRegistrationError
from mcp.client.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from moot import __version__
from moot.agents.outside.process import Program
from moot.errors import MootError, ProviderError
from moot.guard.terminal import clean
from moot.mcp.calls import Call, Calls
from moot.mcp.content import McpFile, McpResult, content_of, files_of, prompt_of, question_of, resource_of, result_of, template_of, tool_of
from moot.types.agent import McpServer
from moot.types.canonical import JsonObject
from moot.types.mcp import AskPerson, McpPrompt, McpResource, McpTool

log = logging.getLogger("moot.mcp")

HANDSHAKE_SECONDS = 30.0
"""Time limit for each request of the handshake, and for lists."""
CALL_SECONDS = 300.0
"""Time limit for a call without progress reports."""
_UNLIMITED = 7 * 24 * 3600.0
"""Time limit of the SDK for a call, in seconds. `Call` has the real one, which the SDK can't pause."""
_STREAM_SECONDS = 2 * 3600.0
"""Time limit for the next bytes of an HTTP response. Longer than the time limit for a person's answer."""
LINE_BYTES = 32 * 1024 * 1024
"""Maximum length of one message. Over stdio, a longer one ends the connection."""
_PACKED = "The response is compressed, which moot does not accept."
_TOO_LONG = f"exceeded the {LINE_BYTES} byte limit"
"""Part of the error text for longer messages over HTTP. The SDK passes on only the text, and uses the same text for events."""
_EVENTS = "text/event-stream"
PAGES = 50
"""Maximum number of pages of a list."""
PROMPTS = 200
"""Maximum number of prompts of one server."""
TOOLS = 500
"""Maximum number of tools of one server."""
RESOURCES = 1_000
"""Maximum number of resources of one server, and of its templates."""
RESOURCE_BYTES = 20 * 1024 * 1024
"""Maximum size of a resource that is read."""
_ERROR = 400

Report = Callable[[str], Awaitable[None]]
"""Callback that gets the progress of a call as one line of text."""

_Streams = tuple[Any, Any]
_Item = TypeVar("_Item", McpTool, McpPrompt, McpResource)


class Connection:
    """An open connection. Any task may call its methods."""

    def __init__(self, server: McpServer, client: Client, lost: anyio.Event, complaint: Sequence[str], calls: Calls) -> None:
        self.server = server
        self.lost = lost
        """Set when the server has closed the connection or its process has ended."""
        self._client = client
        self._complaint = complaint
        self._changed = anyio.Event()
        self._calls = calls

    @property
    def changed(self) -> anyio.Event:
        """Set when the server reports that its list of tools or prompts has changed since the last call of `tools`."""
        return self._changed

    async def tools(self) -> tuple[McpTool, ...]:
        """Fetch the server's tools, sorted by name. Raise ProviderError if that fails."""

        async def page(cursor: str | None) -> tuple[list[McpTool], str | None]:
            found = await self._client.list_tools(cursor=cursor, cache_mode="bypass")
            return [tool_of(tool) for tool in found.tools], found.next_cursor

        self._changed = anyio.Event()
        return await self._listed(page, TOOLS, _name)

    async def prompts(self) -> tuple[McpPrompt, ...]:
        """Fetch the server's prompts, sorted by name; none if it doesn't offer any. Raise ProviderError if that fails."""

        async def page(cursor: str | None) -> tuple[list[McpPrompt], str | None]:
            found = await self._client.list_prompts(cursor=cursor, cache_mode="bypass")
            return [prompt_of(prompt) for prompt in found.prompts], found.next_cursor

        return () if self._client.server_capabilities.prompts is None else await self._listed(page, PROMPTS, _name)

    async def resources(self) -> tuple[McpResource, ...]:
        """Fetch the server's resources, then its templates, each sorted by URI. Raise ProviderError if that fails."""

        async def page(cursor: str | None) -> tuple[list[McpResource], str | None]:
            found = await self._client.list_resources(cursor=cursor, cache_mode="bypass")
            return [resource_of(resource) for resource in found.resources], found.next_cursor

        async def templates(cursor: str | None) -> tuple[list[McpResource], str | None]:
            found = await self._client.list_resource_templates(cursor=cursor, cache_mode="bypass")
            return [template_of(template) for template in found.resource_templates], found.next_cursor

        if self._client.server_capabilities.resources is None:
            return ()
        listed = await self._listed(page, RESOURCES, _uri)
        try:
            return listed + await self._listed(templates, RESOURCES, _uri)
        except ProviderError as error:
            if error.kind != "protocol":
                raise
            return listed  # a server without templates may not know the request

    async def read(self, uri: str) -> tuple[McpFile, ...]:
        """Read a resource, which may consist of several files. Raise ProviderError if the server can't read it or it is too large."""
        with _translated(self.server, self._complaint), self._calls.running(Call(anyio.CancelScope(), inf, None)):
            result = await self._client.read_resource(uri, cache_mode="bypass")
        try:
            files = files_of(result.contents)
        except ValueError as error:
            raise ProviderError(
                f"The MCP server {self.server.name!r} sent the resource {uri!r} as invalid base64.", kind="protocol"
            ) from error
        if sum(len(file.data) for file in files) > RESOURCE_BYTES:
            raise ProviderError(
                f"The resource {uri!r} of the MCP server {self.server.name!r} is larger than {RESOURCE_BYTES >> 20} MiB.", kind="protocol"
            )
        return files

    async def _listed(
        self,
        fetch: Callable[[str | None], Awaitable[tuple[list[_Item], str | None]]],
        limit: int,
        key: Callable[[_Item], str],
    ) -> tuple[_Item, ...]:
        """Fetch all pages of a list, sorted by key. Of items with the same key, the first one is kept."""
        found: dict[str, _Item] = {}
        cursor: str | None = None
        with _translated(self.server, self._complaint):
            for _ in range(PAGES):
                items, cursor = await fetch(cursor)
                for item in items:
                    found.setdefault(key(item), item)
                if not cursor or len(found) >= limit:
                    break
        return tuple(found[one] for one in sorted(found)[:limit])

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> McpResult:
        """Return the text and the files of a prompt. Raise ProviderError if the server does not answer, or refuses the arguments."""
        with _translated(self.server, self._complaint), self._calls.running(Call(anyio.CancelScope(), inf, None)):
            result = await self._client.get_prompt(name, dict(arguments))
        if any(message.role == "assistant" for message in result.messages):
            return content_of([(f"{message.role.capitalize()}: ", message.content) for message in result.messages])
        return content_of([("", message.content) for message in result.messages])

    def announce_change(self) -> None:
        """Note that the server's list of tools or prompts has changed."""
        self._changed.set()

    def lost_error(self) -> MootError:
        """Return the error for a server that has closed the connection, with the end of its stderr."""
        return _problem(self.server, ConnectionError(), self._complaint)

    async def call(self, tool: str, arguments: JsonObject, report: Report, ask: AskPerson | None = None) -> McpResult:
        """Call a tool. A failure that the tool reports is a result with `error`. Raise ProviderError if the server does not answer."""
        scope = anyio.CancelScope()
        call = Call(scope, CALL_SECONDS, ask)

        async def show(progress: float, total: float | None, message: str | None) -> None:
            call.progressed()
            share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            await report(f"{share} {clean(message)}" if message else share)

        with _translated(self.server, self._complaint), scope, self._calls.running(call):
            try:
                result = await self._client.call_tool(
                    tool, cast("dict[str, Any]", arguments), read_timeout_seconds=_UNLIMITED, progress_callback=show
                )
            finally:
                await call.close()
            return result_of(result)
        raise call.error or _problem(self.server, TimeoutError(), ())


def _name(item: McpTool | McpPrompt) -> str:
    return item.name


def _uri(item: McpResource) -> str:
    return item.uri


@asynccontextmanager
async def connect(server: McpServer, directory: Path, login: httpx2.Auth | None = None) -> AsyncGenerator[Connection]:
    """Open a connection for the duration of the block. A program is started in the directory, and stopped after the block.

    `login` authenticates the requests to a remote server.

    Raise ConfigError if the program is not installed, ProviderError if the server can't be reached or does not speak MCP.
    """
    lost, connection, calls = anyio.Event(), cast("Connection | None", None), Calls()

    async def roots(_: object) -> mcp_types.ListRootsResult:
        return mcp_types.ListRootsResult(roots=[mcp_types.Root(uri=cast("Any", directory.as_uri()), name=directory.name)])

    async def received(message: object) -> None:
        changes = mcp_types.ToolListChangedNotification | mcp_types.PromptListChangedNotification
        if isinstance(message, changes) and connection is not None:
            connection.announce_change()

    async def asked(_: object, asked: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
        reply = await calls.reply_to(question_of(asked))
        return mcp_types.ElicitResult(action=reply.action, content=cast("Any", reply.content))

    async with AsyncExitStack() as stack:
        complaint: list[str] = []
        client = Client(
            cast("Any", _transport(server, directory, lost, complaint, login)),
            read_timeout_seconds=HANDSHAKE_SECONDS,
            list_roots_callback=cast("Any", roots),
            elicitation_callback=cast("Any", asked),
            message_handler=cast("Any", received),
            client_info=mcp_types.Implementation(name="moot", version=__version__),
            cache=None,
        )
        with _translated(server, complaint):
            await stack.enter_async_context(client)
        connection = Connection(server, client, lost, complaint, calls)
        yield connection


def _transport(
    server: McpServer, directory: Path, lost: anyio.Event, complaint: list[str], login: httpx2.Auth | None
) -> AbstractAsyncContextManager[_Streams]:
    if server.command:
        return _stdio(server, directory, lost, complaint)
    if server.protocol == "sse":
        opened = sse_client(
            server.url, headers=dict(server.headers), sse_read_timeout=_STREAM_SECONDS, httpx_client_factory=_http_client, auth=login
        )
        return cast("AbstractAsyncContextManager[_Streams]", opened)
    return _http(server, complaint, login)


@asynccontextmanager
async def _http(server: McpServer, complaint: list[str], login: httpx2.Auth | None) -> AsyncGenerator[_Streams]:
    async def note(response: httpx2.Response) -> None:
        if str(response.url).rstrip("/") == str(httpx2.URL(server.url)).rstrip("/"):  # not a request of a login
            complaint[:] = _complaint(response)  # the SDK does not report it

    timeout = httpx2.Timeout(HANDSHAKE_SECONDS, read=_STREAM_SECONDS)
    async with _http_client(dict(server.headers), timeout, login) as http:
        http.event_hooks["response"].append(note)
        async with streamable_http_client(server.url, http_client=http, max_sse_event_size=LINE_BYTES) as streams:
            yield streams


def _complaint(response: httpx2.Response) -> list[str]:
    """Return the problems of a response to a message. The list is empty if the response may be valid."""
    if response.status_code >= 300:
        return [f"HTTP {response.status_code}"]
    kind = response.headers.get("content-type", "").lower()
    if response.status_code != 200 or response.request.method != "POST" or kind.startswith(("application/json", _EVENTS)):
        return []
    return [f"content type {kind!r}" if kind else "no content type"]


def _http_client(
    headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    """Return a client that limits the size of response bodies. They must not be compressed, because they could expand too much."""

    async def limit(response: httpx2.Response) -> None:
        request, headers = response.request, response.headers
        is_packed = headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")
        is_event_stream = response.is_success and headers.get("content-type", "").lower().startswith(_EVENTS)
        is_expected = request.method != "DELETE" and _EVENTS in request.headers.get("accept", "")
        if is_packed or not (is_event_stream and is_expected):  # else, the SDK limits each event
            response.stream = _Limited(cast("httpx2.AsyncByteStream", response.stream), is_packed)

    sent = httpx2.Headers(headers)
    sent["Accept-Encoding"] = "identity"
    return httpx2.AsyncClient(headers=sent, timeout=timeout, event_hooks={"response": [limit]}, auth=auth)


class _Limited(httpx2.AsyncByteStream):
    """The body of a response. Reading more than `LINE_BYTES` of it is an error."""

    def __init__(self, stream: httpx2.AsyncByteStream, is_packed: bool) -> None:
        self._stream, self._is_packed = stream, is_packed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._is_packed:
            raise httpx2.StreamError(_PACKED)
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > LINE_BYTES:
                raise httpx2.StreamError(f"The response {_TOO_LONG}.")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def _stdio(server: McpServer, directory: Path, lost: anyio.Event, complaint: list[str]) -> AsyncGenerator[_Streams]:
    """Run the program and exchange messages with it, one per line.

    Unlike the SDK's own transport, it limits the length of a message, skips other output of the program, and kills everything it started.
    """

    async def read(program: Program, to_client: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        async with to_client:
            try:
                async for lines in program.reads():
                    for line in lines:
                        if (message := _message(line)) is not None:
                            await to_client.send(message)
            except ProviderError as error:
                complaint.append(error.message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # the client has closed its end
            finally:
                complaint.append(program.complaint())
                lost.set()

    async def write(program: Program, to_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async for message in to_server:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                await program.write(line.encode() + b"\n")
            except ProviderError:  # it has exited, which `read` notices
                return

    argv, hint = [server.command, *server.args], f"Install it, or correct mcp.{server.name}.command."
    async with Program(argv, cwd=directory, env=server.env, hint=hint, longest=LINE_BYTES) as program:
        to_client, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, to_server = anyio.create_memory_object_stream[SessionMessage](0)
        async with to_client, incoming, outgoing, to_server, anyio.create_task_group() as group:
            group.start_soon(read, program, to_client)
            group.start_soon(write, program, to_server)
            try:
                yield incoming, outgoing
            finally:
                group.cancel_scope.cancel()


def _message(line: bytes) -> SessionMessage | None:
    """Parse a line of a server. Return None for other output, such as log lines, which the protocol forbids but servers print."""
    if not line.strip():
        return None
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        log.debug("skipped a line from an MCP server that is not a message: %r", line[:200])
        return None


@contextmanager
def _translated(server: McpServer, complaint: Sequence[str] = ()) -> Generator[None]:
    """Convert errors of the SDK and its HTTP client to moot's errors."""
    try:
        yield
    except MootError:
        raise
    except Exception as error:
        raise _problem(server, error, complaint) from error


def _problem(server: McpServer, error: BaseException, complaint: Sequence[str]) -> MootError:
    while isinstance(error, BaseExceptionGroup):  # from the task groups of the SDK
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, MootError):
        return error
    where = f"The MCP server {server.name!r}"
    if _TOO_LONG in str(error):
        return ProviderError(f"{where} sent a message of more than {LINE_BYTES >> 20} MiB.", kind="protocol")
    if isinstance(error, OAuthFlowError):  # the rest of its text may quote what the login server has sent
        advice = f"If programs can't register there by themselves, register one and use 'moot mcp login {server.name} --client-id ID'."
        reason = str(error).partition(": ")[0]
        fix = advice if isinstance(error, OAuthRegistrationError) else ""
        return ProviderError(f"The login to the MCP server {server.name!r} failed: {reason}.", kind="auth", fix=fix)
    if isinstance(error, httpx2.HTTPStatusError):
        complaint = (f"HTTP {error.response.status_code}",)
    if (status := next((one for one in complaint if one in ("HTTP 401", "HTTP 403")), "")) and not server.command:
        advice = f"Sign in with 'moot mcp login {server.name}', or check mcp.{server.name}.headers."
        return ProviderError(f"{where} refused access ({status}).", kind="auth", fix=advice)
    if isinstance(error, TimeoutError) or (isinstance(error, MCPError) and error.code == mcp_types.REQUEST_TIMEOUT):
        return ProviderError(f"{where} did not respond in time.", kind="timeout")
    if isinstance(error, MCPError) and error.code != mcp_types.CONNECTION_CLOSED:
        return _reported(server, error, " ".join(complaint) if server.url else "")
    if isinstance(error, ValidationError):
        return ProviderError(f"{where} sent a message that does not follow the protocol.", kind="protocol")
    said = " ".join(filter(None, complaint)) or (clean(str(error)) if not isinstance(error, MCPError) else "")
    return ProviderError(f"{where} closed the connection{f': {said[:_ERROR]}' if said else '.'}", kind="transport")


def _reported(server: McpServer, error: MCPError, complaint: str) -> ProviderError:
    """Return the error for an error response of a server, or of the SDK in the server's place."""
    where, reason = f"The MCP server {server.name!r}", f" ({complaint})" if complaint else ""
    advice = f"Check that mcp.{server.name}.url is the address of an MCP server."
    if _PACKED in error.message:
        return ProviderError(f"{where} sent an unexpected response. {_PACKED}", kind="protocol")
    if "content type" in complaint or error.code == mcp_types.PARSE_ERROR:
        return ProviderError(f"{where} did not respond with a valid protocol message{reason}.", kind="protocol", fix=advice)
    fix = advice if complaint in ("HTTP 404", "HTTP 405") or complaint.startswith("HTTP 3") else ""
    return ProviderError(f"{where} reports an error{reason}: {clean(error.message)[:_ERROR]}", kind="protocol", fix=fix)
