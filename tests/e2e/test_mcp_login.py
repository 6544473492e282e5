"""Logins at MCP servers: against a real server that issues tokens, with a browser that follows its redirects."""

from __future__ import annotations

import json
import logging
import secrets
import stat
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import anyio
import anyio.to_thread
import httpx2
import pytest
import uvicorn
from aiohttp import web
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken, AuthorizationCode, AuthorizationParams, RefreshToken
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl

from moot.errors import ProviderError, UsageError
from moot.mcp import oauth
from moot.mcp.logins import LoginFile
from moot.mcp.servers import McpServers, first_error
from moot.types.agent import McpServer
from moot.types.canonical import JsonObject

pytestmark = pytest.mark.anyio

Show = Callable[[str], Awaitable[None]]


@dataclass
class Accounts:
    """An authorization server that everyone may use."""

    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict[str, OAuthClientInformationFull])
    codes: dict[str, AuthorizationCode] = field(default_factory=dict[str, AuthorizationCode])
    access: set[str] = field(default_factory=set[str])
    refresh: set[str] = field(default_factory=set[str])
    refreshed: int = 0
    denies: bool = False

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[str(client_info.client_id)] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self.denies:
            return f"{params.redirect_uri}?{urlencode({'error': 'access_denied', 'state': params.state or ''})}"
        code = secrets.token_urlsafe(24)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=[],
            expires_at=time.time() + 60,
            client_id=str(client.client_id),
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return f"{params.redirect_uri}?{urlencode({'code': code, 'state': params.state or ''})}"

    async def load_authorization_code(self, client: OAuthClientInformationFull, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issued()

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        known = refresh_token in self.refresh
        return RefreshToken(token=refresh_token, client_id=str(client.client_id), scopes=[]) if known else None

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.refresh.discard(refresh_token.token)
        self.refreshed += 1
        return self._issued()

    async def load_access_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="any", scopes=[], expires_at=None) if token in self.access else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.discard(token.token)

    def _issued(self) -> OAuthToken:
        access, refresh = f"canary-access-{secrets.token_hex(8)}", f"canary-refresh-{secrets.token_hex(8)}"
        self.access.add(access)
        self.refresh.add(refresh)
        return OAuthToken(access_token=access, expires_in=3600, refresh_token=refresh)


@asynccontextmanager
async def serving(port: int, path: str = "/mcp", protocol: str = "http") -> AsyncGenerator[tuple[McpServer, Accounts]]:
    accounts, place = Accounts(), AnyHttpUrl(f"http://127.0.0.1:{port}")
    settings = AuthSettings(
        issuer_url=place,
        resource_server_url=AnyHttpUrl(f"{place}{path.lstrip('/')}"),
        client_registration_options=ClientRegistrationOptions(enabled=True),
        validate_token_resource=False,
    )
    app = MCPServer("vault", auth_server_provider=cast("Any", accounts), auth=settings)

    @app.tool()
    def look() -> str:
        """Look around."""
        return "a treasure"

    served = app.streamable_http_app() if protocol == "http" else app.sse_app()
    server = uvicorn.Server(uvicorn.Config(served, host="127.0.0.1", port=port, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            await anyio.sleep(0.01)
        yield McpServer("vault", url=f"http://127.0.0.1:{port}{path}", protocol=protocol), accounts  # type: ignore[arg-type]
    finally:
        server.should_exit = True
        await anyio.to_thread.run_sync(thread.join)


async def browse(url: str) -> None:
    """Open an address in a browser that follows redirects."""
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert response.status == 200, await response.text()


async def ignore(_: str) -> None:
    """Do nothing with a report or an address."""


@asynccontextmanager
async def connections(home: Path) -> AsyncGenerator[McpServers]:
    try:
        async with anyio.create_task_group() as group:
            yield McpServers(home, group)
            group.cancel_scope.cancel()
    except ExceptionGroup as errors:
        raise first_error(errors) from errors


async def looked(home: Path, server: McpServer) -> str:
    """Call the tool of the server in what could be a new process."""
    async with connections(home) as servers:
        (tool,) = (await servers.fetch(server, str(home))).usable
        return (await servers.call(server, tool, {}, str(home), ignore)).text


def login_of(home: Path) -> Any:
    return json.loads((home / "state" / "logins" / "vault.json").read_bytes())


@pytest.mark.parametrize(("path", "protocol"), [("/mcp", "http"), ("/sse", "sse")])
async def test_a_login_is_stored_used_and_refreshed(
    tmp_path: Path, free_tcp_port: int, path: str, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(free_tcp_port, path, protocol) as (server, accounts):
        with pytest.raises(ProviderError, match="refused access") as refused:
            await looked(tmp_path, server)
        assert "moot mcp login vault" in refused.value.fix
        with anyio.fail_after(60):
            await oauth.log_in(tmp_path, server, tmp_path, browse)
        file = tmp_path / "state" / "logins" / "vault.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert await looked(tmp_path, server) == "a treasure"
        login = login_of(tmp_path)
        assert login["tokens"]["access_token"] in accounts.access
        LoginFile(tmp_path, server).write({**login, "expires": time.time() - 10})
        assert await looked(tmp_path, server) == "a treasure"
        assert accounts.refreshed == 1 and login_of(tmp_path)["tokens"] != login["tokens"]
        assert login_of(tmp_path)["expires"] > time.time()
        assert "canary-" not in caplog.text


async def test_a_login_that_is_no_longer_valid_is_an_error_and_not_a_hang(tmp_path: Path, free_tcp_port: int) -> None:
    async with serving(free_tcp_port) as (server, accounts):
        await oauth.log_in(tmp_path, server, tmp_path, browse)
        async with connections(tmp_path) as servers:
            (tool,) = (await servers.fetch(server, str(tmp_path))).usable
            accounts.access.clear()
            with anyio.fail_after(20), pytest.raises(ProviderError) as ended:
                await servers.call(server, tool, {}, str(tmp_path), ignore)
            assert ended.value.kind == "auth" and "moot mcp login vault" in ended.value.fix, ended.value
        accounts.refresh.clear()
        LoginFile(tmp_path, server).write({**login_of(tmp_path), "expires": time.time() - 10})
        with anyio.fail_after(20), pytest.raises(ProviderError, match="no longer valid") as again:
            await looked(tmp_path, server)
        assert again.value.kind == "auth" and "moot mcp login vault" in again.value.fix
        assert "canary-" not in f"{ended.value.message} {again.value.message}"
        await oauth.log_in(tmp_path, server, tmp_path, browse)
        assert await looked(tmp_path, server) == "a treasure"


async def test_a_login_ends_the_pause_after_a_refused_connection(tmp_path: Path, free_tcp_port: int) -> None:
    async with serving(free_tcp_port) as (server, _), connections(tmp_path) as servers:
        for _ in range(2):  # the second time, it is not asked again
            with pytest.raises(ProviderError, match="refused access"):
                await servers.fetch(server, str(tmp_path))
        await oauth.log_in(tmp_path, server, tmp_path, browse)
        assert [tool.name for tool in (await servers.fetch(server, str(tmp_path))).usable] == ["look"]


async def test_another_address_does_not_get_the_login(tmp_path: Path, free_tcp_port: int) -> None:
    async with serving(free_tcp_port) as (server, _):
        await oauth.log_in(tmp_path, server, tmp_path, browse)
        assert oauth.stored_login(tmp_path, server) is not None
        assert oauth.stored_login(tmp_path, McpServer("vault", url="http://127.0.0.1:9/mcp")) is None


async def test_a_connection_notices_a_logout_and_a_refresh_of_another_process(tmp_path: Path, free_tcp_port: int) -> None:
    async with serving(free_tcp_port) as (server, accounts), connections(tmp_path) as servers:
        await oauth.log_in(tmp_path, server, tmp_path, browse)
        (tool,) = (await servers.fetch(server, str(tmp_path))).usable
        old = login_of(tmp_path)
        LoginFile(tmp_path, server).write({**old, "expires": time.time() - 10})
        assert await looked(tmp_path, server) == "a treasure"  # refreshes, so that the old refresh token is used up
        accounts.access.discard(old["tokens"]["access_token"])
        assert (await servers.call(server, tool, {}, str(tmp_path), ignore)).text == "a treasure"
        assert LoginFile(tmp_path, server).delete()
        with anyio.fail_after(20), pytest.raises(ProviderError) as ended:
            await servers.call(server, tool, {}, str(tmp_path), ignore)
        assert ended.value.kind == "auth"


async def test_a_refused_or_forged_login_stores_nothing(tmp_path: Path, free_tcp_port: int) -> None:
    async with serving(free_tcp_port) as (server, accounts):

        async def forge(url: str) -> None:
            """Send a code with another state first, as a page of an attacker could."""
            values = parse_qs(urlsplit(url).query)
            callback = values["redirect_uri"][0]
            async with aiohttp.ClientSession() as session:
                for place in (f"{callback}?code=evil&state=other", f"{callback}?code=evil", callback.replace("/callback", "/")):
                    async with session.get(place) as response:
                        assert response.status in (400, 404)
            await browse(url)

        accounts.denies = True
        with anyio.fail_after(60), pytest.raises(ProviderError, match="was refused"):
            await oauth.log_in(tmp_path, server, tmp_path, forge)
        assert not (tmp_path / "state" / "logins" / "vault.json").exists()
        accounts.denies = False
        with anyio.fail_after(60):
            await oauth.log_in(tmp_path, server, tmp_path, forge)
        assert await looked(tmp_path, server) == "a treasure"


async def test_a_client_that_a_person_has_registered_is_used(tmp_path: Path, free_tcp_port: int, free_tcp_port_factory: Any) -> None:
    async with serving(free_tcp_port) as (server, accounts):
        port = free_tcp_port_factory()
        accounts.clients["mine"] = OAuthClientInformationFull(
            client_id="mine",
            client_secret="canary-secret",
            redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}/callback")],
            token_endpoint_auth_method="client_secret_basic",
        )
        with pytest.raises(ProviderError, match=r"failed: Token exchange failed \(401\)\.$"):
            await oauth.log_in(tmp_path, server, tmp_path, browse, port, oauth.RegisteredClient("mine", "wrong"))
        await oauth.log_in(tmp_path, server, tmp_path, browse, port, oauth.RegisteredClient("mine", "canary-secret"))
        LoginFile(tmp_path, server).write({**login_of(tmp_path), "expires": time.time() - 10})
        assert await looked(tmp_path, server) == "a treasure"
        assert (accounts.refreshed, list(accounts.clients)) == (1, ["mine"])


async def test_a_login_that_no_one_finishes_ends(tmp_path: Path, free_tcp_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth, "LOGIN_SECONDS", 1.0)
    async with serving(free_tcp_port) as (server, _):
        with anyio.fail_after(30), pytest.raises(ProviderError, match="was not completed"):
            await oauth.log_in(tmp_path, server, tmp_path, ignore)


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (McpServer("a", command="true"), "a program on this machine"),
        (McpServer("a", url="http://example.org/mcp"), "not encrypted"),
        (McpServer("a", url="https://example.org/mcp", headers={"authorization": "Bearer x"}), "configured with a key"),
    ],
)
async def test_servers_without_a_safe_login_are_refused(tmp_path: Path, server: McpServer, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        await oauth.log_in(tmp_path, server, tmp_path, browse)


def expired(home: Path, server: McpServer, endpoint: str) -> JsonObject:
    """Store a login at a server that has to be refreshed at an address."""
    issuer = "https://login.example"
    metadata: JsonObject = {"issuer": issuer, "authorization_endpoint": f"{issuer}/a", "token_endpoint": endpoint}
    login: JsonObject = {
        "tokens": {"access_token": "a", "token_type": "Bearer", "refresh_token": "r"},
        "client": {"client_id": "c", "redirect_uris": ["http://127.0.0.1/callback"]},
        "metadata": {**metadata, "response_types_supported": ["code"]},
        "expires": 1.0,
    }
    LoginFile(home, server).write(login)
    return login


@pytest.mark.parametrize(
    ("url", "endpoint", "is_safe"),
    [
        ("https://docs.example/mcp", "https://login.example/token", True),
        ("https://docs.example/mcp", "http://login.example/token", False),
        ("https://docs.example/mcp", "http://127.0.0.1:9/token", False),
        ("http://127.0.0.1:9/mcp", "http://127.0.0.1:8/token", True),
        ("http://127.0.0.1:9/mcp", "http://login.example/token", False),
    ],
)
async def test_a_login_is_refreshed_only_at_a_safe_address(tmp_path: Path, url: str, endpoint: str, is_safe: bool) -> None:
    server = McpServer("vault", url=url)
    expired(tmp_path, server, endpoint)
    login = oauth.stored_login(tmp_path, server)
    assert login is not None
    flow = login.async_auth_flow(httpx2.Request("POST", url))
    if is_safe:
        assert str((await anext(flow)).url) == endpoint
    else:
        with pytest.raises(ProviderError, match="unsafe login address"):
            await anext(flow)
    await flow.aclose()


@pytest.mark.parametrize("change", ["wanted", "logout", "refresh"])
async def test_a_refresh_keeps_what_another_process_has_changed_meanwhile(tmp_path: Path, change: str) -> None:
    server = McpServer("vault", url="https://docs.example/mcp")
    stored, file = expired(tmp_path, server, "https://login.example/token"), LoginFile(tmp_path, server)
    login = oauth.stored_login(tmp_path, server)
    assert login is not None
    flow = login.async_auth_flow(httpx2.Request("POST", server.url))
    request = await anext(flow)
    other: JsonObject = {"access_token": "b", "token_type": "Bearer"}
    if change == "logout":
        assert file.delete()
    else:
        file.write({**stored, "wanted": "read"} if change == "wanted" else {**stored, "tokens": other})
    await flow.asend(httpx2.Response(200, json={"access_token": "n", "token_type": "Bearer"}, request=request))
    await flow.aclose()
    found: Any = file.read()
    if change == "wanted":
        assert (found["tokens"]["access_token"], found["wanted"]) == ("n", "read")
    else:
        assert found is None if change == "logout" else found["tokens"] == other


@pytest.mark.parametrize(
    ("status", "challenge", "wanted"), [(401, "", None), (403, 'error="insufficient_scope", scope="write", ', "read write")]
)
async def test_without_a_person_a_server_does_not_say_where_to_sign_in(
    tmp_path: Path, status: int, challenge: str, wanted: str | None
) -> None:
    server = McpServer("vault", url="https://docs.example/mcp")
    stored = expired(tmp_path, server, "https://login.example/token")
    tokens: JsonObject = {"access_token": "a", "token_type": "Bearer", "scope": "read"}
    LoginFile(tmp_path, server).write({**stored, "tokens": tokens, "expires": time.time() + 900})
    login = oauth.stored_login(tmp_path, server)
    assert login is not None
    request = httpx2.Request("POST", server.url)
    flow = login.async_auth_flow(request)
    assert await anext(flow) is request
    headers = {"WWW-Authenticate": f'Bearer {challenge}resource_metadata="http://127.0.0.1:9/secret"'}
    with pytest.raises(ProviderError, match="no longer valid, or lacks a required permission") as refused:
        await flow.asend(httpx2.Response(status, headers=headers, request=request))
    assert refused.value.kind == "auth" and "moot mcp login vault" in refused.value.fix
    assert (LoginFile(tmp_path, server).read() or {}).get("wanted") == wanted


async def test_a_login_refuses_unsafe_addresses_of_the_server(tmp_path: Path) -> None:
    app, asked = web.Application(), list[str]()

    async def refuse(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=401, headers={"WWW-Authenticate": 'Bearer resource_metadata="http://192.0.2.1/secret"'})

    app.router.add_route("*", "/{path:.*}", refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        server = McpServer("vault", url=f"http://127.0.0.1:{runner.addresses[0][1]}/mcp")
        with anyio.fail_after(20), pytest.raises(ProviderError, match=r"unsafe login address: 'http://192\.0\.2\.1'"):
            await oauth.log_in(tmp_path, server, tmp_path, browse)
        assert set(asked) == {"/mcp"}
    finally:
        await runner.cleanup()


async def test_a_login_whose_caller_is_cancelled_is_not_pending(tmp_path: Path, free_tcp_port: int) -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=free_tcp_port)  # accepts connections and never answers
    server = McpServer("vault", url=f"http://127.0.0.1:{free_tcp_port}/mcp")
    async with listener, connections(tmp_path) as servers, anyio.create_task_group() as group:
        group.start_soon(servers.logins.start, server, str(tmp_path))
        await anyio.wait_all_tasks_blocked()
        assert servers.status([server])[0].login.state == "pending"
        group.cancel_scope.cancel()
    assert servers.status([server])[0].login.state == "none"
