"""OAuth 2.1 for remote MCP servers, as implemented by the SDK. Imported for servers with a login, and to log in."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from anyio import to_thread
from anyio.abc import SocketAttribute, SocketStream
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth, union_scopes
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel

from moot.convert.vendor import as_text
from moot.errors import ConfigError, ProviderError, UsageError
from moot.mcp.connection import connect
from moot.mcp.logins import LoginFile, has_key
from moot.mcp.servers import first_error
from moot.types.agent import McpServer
from moot.types.canonical import Json, JsonObject

LOGIN_SECONDS = 600.0
"""Time limit for a login."""
_REQUEST_SECONDS = 5.0
_REQUEST_BYTES = 16 * 1024
_PATH = "/callback"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_PAGE = "<!doctype html><meta charset=utf-8><title>moot</title><p>{}</p>"

logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)  # its messages quote the responses of token requests

Show = Callable[[str], Awaitable[None]]
"""Callback that shows the person an address to open."""


class _Storage:
    """The SDK's view of a login file. Nothing is written before there are tokens, so that a failed login changes nothing."""

    def __init__(self) -> None:
        self.login: JsonObject = {}
        self.save: Callable[[], None] = lambda: None

    async def get_tokens(self) -> OAuthToken | None:
        return OAuthToken.model_validate(found) if (found := self.login.get("tokens")) else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        await to_thread.run_sync(self.save)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return OAuthClientInformationFull.model_validate(found) if (found := self.login.get("client")) else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Do nothing: the client's information is stored together with the tokens."""


class _Provider(OAuthClientProvider):
    """The SDK's provider, which also stores where and until when the tokens are valid, and notices when another process logs in or out."""

    def __init__(
        self,
        file: LoginFile,
        server: McpServer,
        redirect_uri: str,
        show: Show | None,
        wait: Callable[[], Awaitable[AuthorizationCodeResult]] | None,
    ) -> None:
        self._storage = _Storage()
        self._storage.save = self._save
        metadata = OAuthClientMetadata(client_name="moot", redirect_uris=[AnyUrl(redirect_uri)])
        super().__init__(server.url, metadata, self._storage, show, wait)
        self._file = file
        self._seen = file.stamp
        self._wanted: str | None = None
        """Rights that the server requires in addition to those of the stored login."""
        self._server = server
        self.client: JsonObject | None = None
        """A client that was registered by a person; None = moot registers itself."""
        self.is_login = False
        """True if a person signs in, so that the stored tokens are not used."""
        self.has_logged_in = False

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if not self.is_login and self._file.stamp != self._seen:
            self._initialized = False
        flow = super().async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                if outgoing is not request:
                    self._check_address(outgoing.url)
                response = yield outgoing
                if outgoing is request and not self.is_login:
                    await self._check_access(response)
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    async def _initialize(self) -> None:
        self._seen = self._file.stamp
        stored = self._file.read() or {}
        self._wanted = as_text(stored.get("wanted")) or None
        registered: JsonObject = {"client": self.client}
        self._storage.login = registered if self.is_login else stored
        login, context = self._storage.login, self.context
        await super()._initialize()
        # the SDK does not restore these: after a restart it would use expired tokens, and guess where to refresh them
        expires = login.get("expires")
        context.token_expiry_time = float(expires) if isinstance(expires, int | float) else None
        context.oauth_metadata = OAuthMetadata.model_validate(found) if (found := login.get("metadata")) else None
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(found) if (found := login.get("resource")) else None
        context.auth_server_url = str(found) if (found := login.get("issuer")) else None

    def _check_address(self, url: httpx2.URL) -> None:
        """Raise ProviderError if a request of the login would not be encrypted, or lets a remote server reach this machine."""
        is_local = urlsplit(self._server.url).hostname in _LOOPBACK and _is_private(str(url))
        if url.scheme != "https" and not is_local:
            where = f"{url.scheme}://{url.host}"
            raise ProviderError(f"The MCP server {self._server.name!r} specifies an unsafe login address: {where!r}.", kind="protocol")

    async def _check_access(self, response: httpx2.Response) -> None:
        """Raise ProviderError if the server refuses the stored login. The server is asked where to sign in only when a person logs in."""
        context = self.context
        is_too_narrow = response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope"
        if response.status_code != 401 and not is_too_narrow:
            return
        if scope := extract_scope_from_www_auth(response):
            granted = context.current_tokens.scope if is_too_narrow and context.current_tokens is not None else None
            earlier = union_scopes(context.client_metadata.scope, granted) if is_too_narrow else None
            context.client_metadata.scope = union_scopes(earlier, scope)
            await to_thread.run_sync(self._remember_scope)
        raise ProviderError(
            f"The login to the MCP server {self._server.name!r} is no longer valid, or lacks a required permission.",
            kind="auth",
            fix=f"Sign in with: moot mcp login {self._server.name}",
        )

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        context = self.context
        context.client_metadata.scope = union_scopes(context.client_metadata.scope, self._wanted)
        supported = (context.oauth_metadata and context.oauth_metadata.token_endpoint_auth_methods_supported) or []
        if self.client is not None and context.client_info is not None and context.client_info.client_secret:
            only_post = "client_secret_post" in supported and "client_secret_basic" not in supported
            context.client_info.token_endpoint_auth_method = "client_secret_post" if only_post else "client_secret_basic"
        return await super()._perform_authorization_code_grant()

    def _remember_scope(self) -> None:
        """Note the rights that the server wants, so that the next login asks for them."""
        wanted = self.context.client_metadata.scope
        with self._file.lock():
            stored = self._file.read()
            if stored is not None and stored.get("wanted") != wanted:
                self._file.write({**stored, "wanted": wanted})

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        if await super()._handle_refresh_response(response):
            return True
        await self._initialize()  # another process may have refreshed them at the same moment
        return self.context.is_token_valid()

    def _save(self) -> None:
        context = self.context
        known: dict[str, BaseModel | None] = {
            "tokens": context.current_tokens,
            "client": context.client_info,
            "metadata": context.oauth_metadata,
            "resource": context.protected_resource_metadata,
        }
        login: JsonObject = {key: cast("Json", one.model_dump(mode="json", exclude_none=True)) for key, one in known.items() if one}
        login = {**login, "expires": context.token_expiry_time, "issuer": context.auth_server_url}
        with self._file.lock():
            stored = self._file.read() or {}
            if self.is_login:
                self._file.write(login)
            elif stored.get("tokens") == self._storage.login.get("tokens"):  # else, another process has refreshed them or signed out
                self._file.write({**login, "wanted": stored.get("wanted")})
            else:
                return
            self._seen = self._file.stamp
        self._storage.login = login
        self.has_logged_in = True


def stored_login(home: Path, server: McpServer) -> httpx2.Auth | None:
    """Return the authentication for requests to the server, or None if there is no login. Tokens are refreshed; a person is never asked."""
    file = LoginFile(home, server)
    if file.read() is None:
        return None
    return _Provider(file, server, f"http://127.0.0.1{_PATH}", None, None)


@dataclass(frozen=True, slots=True)
class RegisteredClient:
    """A client that a person has registered at a server that does not let programs register themselves."""

    id: str
    secret: str = field(default="", repr=False)
    """Client secret; empty if the client has none."""

    def to_json(self) -> JsonObject:
        if not self.secret:
            return {"client_id": self.id, "token_endpoint_auth_method": "none"}
        return {"client_id": self.id, "client_secret": self.secret, "token_endpoint_auth_method": "client_secret_basic"}


async def log_in(home: Path, server: McpServer, directory: Path, show: Show, port: int = 0, client: RegisteredClient | None = None) -> None:
    """Log in to a server and store the login. `show` is called with the address that the person must open in a browser on this machine.

    Raise UsageError if the server doesn't support or need a login, ProviderError if the login fails.
    """
    _check(server)
    try:
        async with _Callback.open(port) as callback:
            provider = await _log_in(home, server, directory, show, callback, client)
    except ExceptionGroup as group:
        raise first_error(group) from group
    if not provider.has_logged_in:
        raise UsageError(f"The MCP server {server.name!r} does not require a login.", fix=f"moot mcp test {server.name}")


async def _log_in(
    home: Path, server: McpServer, directory: Path, show: Show, callback: _Callback, client: RegisteredClient | None
) -> _Provider:
    async def begin(url: str) -> None:
        if not _is_private(url):
            raise ProviderError(f"The MCP server {server.name!r} specifies a login page that is not a safe web address.", kind="protocol")
        callback.state = parse_qs(urlsplit(url).query).get("state", [""])[0]
        await show(url)

    provider = _Provider(LoginFile(home, server), server, callback.url, begin, callback.result)
    provider.is_login, provider.client = True, client.to_json() if client is not None else None
    with anyio.move_on_after(LOGIN_SECONDS):
        async with connect(server, directory, provider) as connection:
            await connection.tools()
        return provider
    raise ProviderError(f"The login to {server.name!r} was not completed within {LOGIN_SECONDS / 60:g} minutes.", kind="timeout")


def _check(server: McpServer) -> None:
    if not server.url:
        raise UsageError(f"The MCP server {server.name!r} is a program on this machine. Only remote servers have a login.")
    if has_key(server):
        raise UsageError(
            f"The MCP server {server.name!r} is configured with a key.",
            fix=f"Remove the header Authorization from mcp.{server.name}.headers.",
        )
    if not _is_private(server.url):
        raise UsageError(f"The address of {server.name!r} is not encrypted, so a login would not be safe.", fix="Use an https address.")


def _is_private(url: str) -> bool:
    """Return whether requests to the address are encrypted or stay on this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


class _Callback:
    """A small HTTP server on this machine, which receives the result of the login from the browser."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}{_PATH}"
        self.state = ""
        """The state of the login that was started. Requests with another one are refused, and the wait continues."""
        self._found: AuthorizationCodeResult | ProviderError | None = None
        self._arrived = anyio.Event()

    @classmethod
    @asynccontextmanager
    async def open(cls, port: int) -> AsyncGenerator[_Callback]:
        try:
            listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)
        except OSError as error:
            raise ConfigError(f"Cannot listen on port {port}: {error.strerror}.", fix="Choose another one with --port.") from error
        callback = cls(listener.extra(SocketAttribute.local_port))
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, callback._answer)
            yield callback
            group.cancel_scope.cancel()

    async def result(self) -> AuthorizationCodeResult:
        """Wait for the browser, and return the result that it sends."""
        await self._arrived.wait()
        if isinstance(self._found, AuthorizationCodeResult):
            return self._found
        raise self._found or ProviderError("The login was cancelled.", kind="auth")

    async def _answer(self, stream: SocketStream) -> None:
        async with stream:
            data = b""
            try:
                with anyio.fail_after(_REQUEST_SECONDS):
                    while b"\r\n\r\n" not in data and len(data) < _REQUEST_BYTES:
                        data += await stream.receive()
                    status, text = self._taken(data.split(b"\r\n", 1)[0].decode("latin-1"))
                    body = _PAGE.format(text).encode()
                    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                    await stream.send(head.encode() + body)
            except (anyio.EndOfStream, anyio.BrokenResourceError, TimeoutError, ValueError):  # ValueError: not an address
                return
            finally:
                if self._found is not None:
                    self._arrived.set()

    def _taken(self, line: str) -> tuple[str, str]:
        """Take the result from the first line of a request. Return the status and the text of the response."""
        method, _, rest = line.partition(" ")
        parts = urlsplit(rest.partition(" ")[0])
        if method != "GET" or parts.path != _PATH:
            return "404 Not Found", "This page does not exist."
        values = {name: found[0] for name, found in parse_qs(parts.query).items()}
        if not self.state or values.get("state") != self.state or self._found is not None:
            return "400 Bad Request", "This login was not started by moot, or is over."
        if code := values.get("code"):
            self._found = AuthorizationCodeResult(code=code, state=self.state, iss=values.get("iss"))
            return "200 OK", "You are signed in. You can close this page."
        self._found = ProviderError("The login was refused.", kind="auth")
        return "200 OK", "The login was refused. You can close this page."
