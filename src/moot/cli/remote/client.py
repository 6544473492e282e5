"""HTTP client for a moot server. Requests are sent again after the connection was lost, and streams continue where they were cut off."""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn, cast

import aiohttp
import anyio
from yarl import URL

from moot import __version__
from moot.cli.console.lines import Lines
from moot.cli.remote.address import TOKEN_FILE, remote_url
from moot.convert.dialects.frames import Frames, read
from moot.errors import HostError, MootError, ProviderError, UsageError
from moot.features.remote import VERSION, decode, error_of
from moot.types.canonical import JsonObject, dumps
from moot.types.event import Event
from moot.types.ids import new_id

PATIENCE = 60.0
"""Seconds during which a lost connection is tried again."""
_CONNECT, _SILENCE = 15.0, 60.0
"""Maximum number of seconds until a connection is established, and between two reads. Servers send something more often."""
_PAUSES = (0.1, 0.3, 1.0, 2.0)
"""Seconds before each new attempt. The last pause repeats."""
_AWAY = frozenset({502, 503, 504})
"""HTTP statuses of a server that is starting or stopping, or of a proxy in front of it."""
_LARGEST = 1 << 30
_TRANSPORT = (aiohttp.ClientError, asyncio.TimeoutError, ConnectionError)

_AT_ONCE = (MootError, aiohttp.ClientConnectorError, asyncio.TimeoutError)
"""Errors that are reported at once if they concern the first request. A prompt may have arrived if the connection was lost later."""


class Unreachable(HostError):
    """The server could not be reached, or the connection was lost."""


class Client:
    """One connection to a server."""

    def __init__(self, session: aiohttp.ClientSession, url: str, output: Lines) -> None:
        self.url = url
        self._session = session
        self._output = output
        self._reached = False
        """True once the server has answered. Before that, errors are reported at once."""
        self._said = False
        """True if the loss of the connection was reported."""

    @property
    def name(self) -> str:
        """A short name for files on this machine that belong to the server."""
        return f"{URL(self.url).host}-{sha256(self.url.encode()).hexdigest()[:12]}"

    async def read(self, operation: str, arguments: Mapping[str, object]) -> object:
        """Return the exact result of a read operation."""
        return await self.exact("/api/remote/read", {"operation": operation, "arguments": _plain(arguments)}, key="")

    async def exact(self, path: str, body: JsonObject, *, key: str | None = None) -> object:
        """Send a request and return the exact value in its response. Without a key, use a new one."""
        data = await self.post(path, body, key=new_id() if key is None else key)
        try:
            return cast("Mapping[str, object]", decode(data))["value"]
        except (ValueError, KeyError, TypeError) as error:
            raise _strange(self.url) from error

    async def post(self, path: str, body: JsonObject, *, key: str) -> bytes:
        """Send a POST request. A key makes sure that it has its effect only once. Raise the server's error."""
        return await self.send("POST", path, dumps(body), key=key)

    async def send(self, method: str, path: str, body: bytes = b"", *, key: str = "") -> bytes:
        """Send a request until there is a response, and return its body. Raise the server's error."""
        headers = {"idempotency-key": key} if key else {}
        since = anyio.current_time()
        attempt = 0
        while True:
            try:
                data = io.BytesIO(body) if body else None  # not bytes, because aiohttp warns about those over 1 MiB
                async with self._session.request(method, self._target(path), data=data, headers=headers, allow_redirects=False) as response:
                    if not self._is_away(response):
                        return await self._body(response)
                    lost: Exception = self._unavailable(response)
            except _TRANSPORT as error:
                lost = error
            await self._pause(lost, attempt, since)
            attempt += 1

    async def events(self, conversation: str, after: int) -> AsyncGenerator[tuple[Event, ...]]:
        """Yield all events of a conversation after a position, once and in order, across lost connections."""
        since, attempt = anyio.current_time(), 0
        while True:
            lost: Exception | None = None
            try:
                async for events in self._stream(conversation, after):
                    fresh = tuple(event for event in events if event.seq > after)
                    since, attempt = anyio.current_time(), 0
                    if fresh:
                        after = fresh[-1].seq
                        yield fresh
            except (*_TRANSPORT, Unreachable) as error:
                lost = error
            await self._pause(lost or Unreachable(f"The server at {self.url} ended the stream."), attempt, since)
            attempt += 1

    async def _stream(self, conversation: str, after: int) -> AsyncGenerator[tuple[Event, ...]]:
        target = self._target(f"/api/conversations/{conversation}/events").update_query({"exact": "true", "after": str(after)})
        frames = Frames(max_body=_LARGEST)
        async with self._session.get(target, headers={"last-event-id": str(after)}, allow_redirects=False) as response:
            if response.status != 200:
                if self._is_away(response):
                    raise self._unavailable(response)
                await self._body(response)
            while data := await response.content.readany():
                self._said = False
                try:
                    found = [read(raw) for raw in frames.feed(data)]
                    events = tuple(decode(text) for frame in found if frame is not None and (text := frame[1]) and text != b"[DONE]")
                except (ValueError, ProviderError) as error:
                    raise _strange(self.url) from error
                yield cast("tuple[Event, ...]", events)

    async def _pause(self, error: Exception, attempt: int, since: float) -> None:
        """Wait before the next attempt. Raise the error if the server was never reached, or has been away for too long."""
        first = not self._reached and (isinstance(error, _AT_ONCE) or attempt >= len(_PAUSES) - 1)
        if first or anyio.current_time() - since > PATIENCE:
            _refuse(self.url, error)
        if not self._said and attempt == len(_PAUSES) - 1:
            self._said = True
            self._output.say(f"moot: the connection to {self.url} was lost; trying again", "yellow")
        await anyio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])

    def _is_away(self, response: aiohttp.ClientResponse) -> bool:
        """Return True if a server that was reached before is restarting, or a proxy can't reach it."""
        broken = response.status >= 500 and response.content_type != "application/problem+json"
        return self._reached and (broken or response.status in _AWAY)

    def _unavailable(self, response: aiohttp.ClientResponse) -> Unreachable:
        return Unreachable(f"The server at {self.url} is not available (status {response.status}).")

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the body of a successful response. Raise the server's error for any other."""
        data = await response.read()
        if 200 <= response.status < 300:
            self._reached = True
            return data
        raise _error(self.url, response, data)

    def _target(self, path: str) -> URL:
        return URL(f"{self.url}{path}", encoded=True)


def _plain(arguments: Mapping[str, object]) -> JsonObject:
    """Return arguments as JSON: sets and tuples become lists."""
    found: dict[str, object] = {}
    for name, value in arguments.items():
        found[name] = list(cast("tuple[object, ...]", value)) if isinstance(value, tuple | frozenset | set) else value
    return cast("JsonObject", found)


def _error(url: str, response: aiohttp.ClientResponse, data: bytes) -> MootError:
    """Return the error that a response reports."""
    if 300 <= response.status < 400:
        return UsageError(f"{url} redirects to another address.", fix="Use the address of the moot server itself in --url.")
    try:
        problem = json.loads(data)
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        return HostError(f"{url} is not a moot server (status {response.status}).", fix="Check the address in --url or MOOT_URL.")
    found = cast("JsonObject", problem)
    code, detail, fix = (str(found.get(name) or "") for name in ("code", "detail", "fix"))
    if response.status == 401:
        made = "Create one on the server with 'moot tokens create NAME', and put it into MOOT_TOKEN or the file of --token-file."
        return UsageError(f"The server at {url} doesn't accept the token.", fix=made)
    if response.status in (404, 405) and "/api/remote/" in detail and URL(url).path != "/":
        return HostError(f"There is no moot server at {url}.", fix="Check the path in --url or MOOT_URL.")
    if response.status in (404, 405) and "/api/remote/" in detail:
        older = f"The server at {url} runs an older version of moot; your machine runs {__version__}."
        return UsageError(older, fix="Install the same version on both machines.")
    return error_of(code, detail, fix) or (UsageError if response.status < 500 else HostError)(
        detail or f"Status {response.status}.", fix=fix
    )


def _refuse(url: str, error: Exception) -> NoReturn:
    """Raise the error for a server that can't be reached."""
    where = f"The server at {url}"
    match error:
        case MootError():
            raise error
        case aiohttp.ClientConnectorCertificateError():
            fix = "If you trust it, point SSL_CERT_FILE at the certificate of its authority."
            raise Unreachable(f"{where} has an untrusted certificate: {error.certificate_error}.", fix=fix) from error
        case aiohttp.ClientSSLError():
            fix = "Check that it supports HTTPS, or use http:// in --url."
            raise Unreachable(f"{where} could not establish a secure connection.", fix=fix) from error
        case aiohttp.ClientConnectorDNSError():
            raise Unreachable(f"{where} can't be reached: its host name can't be resolved.", fix="Check the address.") from error
        case aiohttp.ClientConnectorError():
            number = error.os_error.errno  # the text of asyncio is not that of the system
            reason = os.strerror(number) if number else str(error.os_error)
            raise Unreachable(f"{where} can't be reached: {reason}.", fix="Check the address, and that 'moot serve' is running.") from error
        case asyncio.TimeoutError():
            raise Unreachable(f"{where} did not answer in time.", fix="Check the address and the network.") from error
        case _:
            raise Unreachable(f"The connection to the server at {url} was lost.", fix="Check the network, then try again.") from error


def _strange(url: str) -> HostError:
    return HostError(f"The server at {url} sent a response that this version of moot ({__version__}) can't read.")


def _address() -> URL:
    """Return the server's address. Raise UsageError if it is not valid."""
    text = remote_url()
    try:
        url = URL(text)
        valid = url.scheme in ("http", "https") and bool(url.host)
    except ValueError:
        url, valid = URL(), False
    if not valid:
        raise UsageError("The server's address is not valid.", fix="Use an address such as https://moot.example.com in --url or MOOT_URL.")
    if url.user or url.password:
        raise UsageError("The server's address must not contain a password.", fix="Put the token into MOOT_TOKEN or use --token-file.")
    return url.with_query(None).with_fragment(None)


def _token() -> str:
    """Return the token. Raise UsageError if there is none, without repeating any of it."""
    fix = "Create one on the server with 'moot tokens create NAME', and put it into MOOT_TOKEN or a file for --token-file."
    if path := os.environ.get(TOKEN_FILE, ""):
        try:
            token = Path(path).expanduser().read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"The token file {path!r} can't be read: {getattr(error, 'strerror', None) or 'not text'}.") from error
    else:
        token = os.environ.get("MOOT_TOKEN", "").strip()
    if not token:
        raise UsageError("No token for the server.", fix=fix)
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise UsageError("The token is not valid: it must be one word of ASCII characters.", fix=fix)
    return token


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@asynccontextmanager
async def connect(output: Lines) -> AsyncGenerator[Client]:
    """Open a client for the server of the command line for the duration of the block. Nothing is sent yet."""
    url, token = _address(), _token()
    output.hide([*output.secrets, token])
    if url.scheme == "http" and not _is_loopback(url.host or ""):
        output.say(f"moot: the connection to {url.host} is not encrypted, so others can read your token; use https", "yellow")
    headers = {"authorization": f"Bearer {token}", VERSION: __version__, "content-type": "application/json"}
    timeout = aiohttp.ClientTimeout(total=None, connect=_CONNECT, sock_read=_SILENCE)
    async with aiohttp.ClientSession(
        headers=headers, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), read_bufsize=1 << 20
    ) as session:
        yield Client(session, str(url).rstrip("/"), output)
