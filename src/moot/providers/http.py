"""The one HTTP client of the providers: a POST, its frames as they come, and every foreign error translated.

A success is handed through whatever its body is: HTML, a JSON error under status 200, nothing at all are raw bytes like any other, kept
in the log and judged by the translator. Anything but a success is a ProviderError before the first frame.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

import aiohttp

from moot.config.settings import ProviderSettings
from moot.errors import ConfigError, ProviderError
from moot.providers._mask import Mask
from moot.providers._refusals import refused
from moot.providers._shapes import SHAPES, Shape, shape_of
from moot.providers._sse import KEPT, Frames
from moot.providers.catalogue import describe, listed
from moot.types.event import Raw
from moot.types.facts import Facts
from moot.types.model import Model
from moot.types.provider import ModelRequest, Quirks

READ_BUFFER = 1 << 18
"""Bytes that may wait for us: with fewer, a burst of small HTTP chunks makes the client stop and start the socket for each of them."""

BEAT = 0.03
"""Seconds. A stream of small reads is read once a beat, and all streams on the same one: what a read costs on its way to the log and the
watchers is then paid for several frames at once, and commits of many streams fall together. Nobody sees the wait."""

BURST = 16 * 1024
"""Bytes in a read that show a stream to be faster than that; the next one is not waited for."""

CONNECT_SECONDS = 10.0
"""For name, connection and TLS together."""

ERROR_SECONDS = 10.0
"""For the body of a refusal, unless the provider's timeout is shorter; what has come by then is what we have."""

WHOLE_BYTES = 64 * 1024 * 1024
"""Of an answer that is no stream: a few pictures in base64."""

_NONE: Mapping[str, str] = {}
_HEADER_BYTES = 64 * 1024
_ERRORS = (aiohttp.ClientError, OSError, asyncio.TimeoutError, ValueError)


class HttpProvider:
    """Base of every endpoint that is spoken to over HTTP. A subclass states its `facts`; paths and authentication follow the dialect.

    One session and connector an instance, made at the first request. No proxy is used but `proxy` of the entry: variables of the
    environment must not change where a key is sent. Redirects are never followed, so a key goes to the base URL's host alone.
    """

    facts: ClassVar[Facts]

    def __init__(self, settings: ProviderSettings) -> None:
        self.name = settings.name or self.facts.name
        self.dialect = settings.dialect or self.facts.dialect
        self.settings = settings
        self.quirks = self._with_tools(self.facts.quirks)
        self.shape = self._shape()
        self.base = self._base_url()
        self.live = 0
        """Streams that are open now."""
        self._beat = _Beat()
        self._mask = Mask(settings.api_key, settings.headers)
        self._session: aiohttp.ClientSession | None = None

    def authentication(self) -> Mapping[str, str]:
        """The headers that prove who asks; none without a key."""
        return self.shape.authentication(self.settings.api_key)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[Raw, ...], None]:
        """The answer's raw frames, one tuple per socket read. See `moot.types.provider.Provider.stream`."""
        response = await self._post(request)
        frames = self.shape.frames()
        failure: ProviderError | None = None
        self.live += 1
        try:
            while True:
                try:
                    data = await response.content.readany()
                except _ERRORS as error:
                    failure = self._broken(error, "while it was answering")
                    failure.__cause__ = error
                    break
                if not data:
                    break
                if raws := frames.feed(data):
                    yield self._mask.frames(raws)
                if len(data) < BURST and not response.content.at_eof():
                    await self._pause(response)
            if tail := frames.rest():
                yield self._mask.frames((tail,))
            if failure:
                raise failure
        finally:
            self.live -= 1
            response.close()

    async def _pause(self, response: aiohttp.ClientResponse) -> None:
        """Until the next beat; what comes meanwhile stays in the kernel, whence one read gets all of it."""
        transport = response.connection.transport if response.connection is not None else None
        if transport is None:
            return
        transport.pause_reading()
        await self._beat.next()
        transport.resume_reading()

    async def models(self) -> Sequence[Model]:
        """What the endpoint says it has. Raises ProviderError."""
        return listed(self.name, self.facts, self.settings, await self._get(self.shape.models))

    def describe(self, name: str) -> Model:
        """What is known of one of its models, without asking it; a name that nobody knows is described by that name alone."""
        return describe(self.name, self.facts, self.settings, name)

    async def ask(self, path: str, body: bytes, *, media_type: str = "application/json", seconds: float = 300.0) -> bytes:
        """The whole answer to a POST below the base URL that is no stream. Raises ProviderError."""
        headers = {"Accept": "application/json", "Content-Type": media_type}
        return await self._whole("POST", path, "while it was working", seconds, io.BytesIO(body), headers)

    async def close(self) -> None:
        """Lets go of the connections; streams that are open break."""
        session, self._session = self._session, None
        if session:
            await session.close()

    async def _get(self, path: str, *, seconds: float = 30.0) -> bytes:
        """The body of a small GET below the base URL. Raises ProviderError."""
        return await self._whole("GET", path, "when asked for its models", seconds)

    async def _whole(
        self,
        method: str,
        path: str,
        when: str,
        seconds: float,
        data: io.BytesIO | None = None,
        more: Mapping[str, str] = _NONE,
    ) -> bytes:
        timeout = aiohttp.ClientTimeout(total=seconds, connect=min(seconds, CONNECT_SECONDS))
        headers = {**self._headers(), **more}
        try:
            async with self._client().request(
                method, self._url(path), data=data, headers=headers, timeout=timeout, allow_redirects=False, proxy=self._proxy()
            ) as response:
                body = await _read(response, Frames(max_frame=WHOLE_BYTES, max_body=WHOLE_BYTES))
        except _ERRORS as error:
            raise self._broken(error, when) from error
        if not 200 <= response.status < 300:
            raise self._refused(response, body)
        return body

    async def _post(self, request: ModelRequest) -> aiohttp.ClientResponse:
        headers = {**self._headers(), "Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
        if request.idempotency_key:
            headers["Idempotency-Key"] = request.idempotency_key
        try:
            response = await self._client().post(
                self._url(self.shape.post.replace("{model}", quote(request.model, safe=""))),
                data=io.BytesIO(request.body),  # bytes over 1 MiB draw a warning from aiohttp
                headers=headers,
                allow_redirects=False,
                proxy=self._proxy(),
            )
        except _ERRORS as error:
            raise self._broken(error, "before it answered") from error
        if 200 <= response.status < 300:
            return response
        try:
            raise self._refused(response, await _error_body(response, min(ERROR_SECONDS, self.settings.timeout or ERROR_SECONDS)))
        finally:
            response.close()

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            timeout = self.settings.timeout
            self._session = aiohttp.ClientSession(
                read_bufsize=READ_BUFFER,
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_read=timeout if timeout > 0 else None),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                max_line_size=_HEADER_BYTES,
                max_field_size=_HEADER_BYTES,
            )
        return self._session

    def _headers(self) -> dict[str, str]:
        headers = {"User-Agent": "moot", **self.authentication(), **self.settings.headers}
        for name, value in headers.items():
            if not value.isascii() or not value.isprintable():
                raise ConfigError(f"the value of header {name!r} for provider {self.name!r} has characters that no header can carry")
        return headers

    def _with_tools(self, quirks: Quirks) -> Quirks:
        """The quirks with `vendor_tools` of the entry. Raises ConfigError."""
        given = self.settings.options.get("vendor_tools", [])
        tools = [tool for tool in given if isinstance(tool, dict)] if isinstance(given, list) else []
        if not isinstance(given, list) or len(tools) != len(given):
            where = f"providers.{self.name}.vendor_tools"
            raise ConfigError(f"{where} is {given!r}; expected a list of maps in the vendor's own words, as [{{type: web_search}}]")
        return replace(quirks, vendor_tools=tuple(tools)) if tools else quirks

    def _proxy(self) -> str | None:
        proxy = self.settings.options.get("proxy")
        return proxy if isinstance(proxy, str) and proxy else None

    def _shape(self) -> Shape:
        shape = shape_of(self.dialect)
        if shape is None:
            raise ConfigError(f"provider {self.name!r} has the unknown dialect {self.dialect!r}; known: {', '.join(sorted(SHAPES))}")
        return shape

    def _base_url(self) -> SplitResult:
        plan, plans = self.settings.plan, self.facts.plans
        if plan and plan not in plans:
            known = f"known: {', '.join(sorted(plans))}" if plans else "it has none"
            raise ConfigError(f"provider {self.name!r} has no plan {plan!r}; {known}")
        text = self.settings.base_url or plans.get(plan, "") or self.facts.base_url
        if not text:
            raise ConfigError(f"provider {self.name!r} has no base_url", fix=f"set providers.{self.name}.base_url")
        url = _sound(text.strip())
        if url is None:
            where = f"the base_url of provider {self.name!r}"
            raise ConfigError(f"{where} is {_without_password(text)!r}; expected http(s)://host[:port][/path]")
        return url._replace(path=url.path.rstrip("/").removesuffix(self.shape.version), fragment="")

    def _url(self, path: str) -> str:
        path, _, query = path.partition("?")
        return urlunsplit(self.base._replace(path=self.base.path + path, query=query or self.base.query))

    def _refused(self, response: aiohttp.ClientResponse, body: bytes) -> ProviderError:
        error = refused(self.name, response.status, response.headers, self._mask.raw(body))
        if "Location" in response.headers and 300 <= response.status < 400:
            host = urlsplit(response.headers["Location"]).netloc or self.base.netloc
            error.fix = f"{error.fix}: {host}"
        return error

    def _broken(self, error: Exception, when: str) -> ProviderError:
        timeout = isinstance(error, asyncio.TimeoutError)
        words, fix = _words(error, self.settings.timeout)
        message = f"{self.name} at {self.base.netloc} {words} {when}"
        return ProviderError(self._mask.text(message), fix=fix, kind="timeout" if timeout else "transport", retryable=True)


def _sound(text: str) -> SplitResult | None:
    """The URL when a request can be sent there; a password in it would travel with every request, so it is refused."""
    try:
        url = urlsplit(text)
        sound = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0 and "@" not in url.netloc
    except ValueError:
        return None
    return url if sound else None


def _without_password(text: str) -> str:
    head, at, tail = text.rpartition("@")
    return f"{head.partition('://')[0]}://***@{tail}" if at else text


async def _error_body(response: aiohttp.ClientResponse, seconds: float) -> bytes:
    """What can be had of a refusal's body, at most `KEPT` bytes: it only explains, so nothing about it is an error of its own."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while len(body) < KEPT and (data := await response.content.readany()):
                body += data
    except _ERRORS as error:
        body += b"" if body else f"(its body could not be read: {type(error).__name__})".encode()
    return bytes(body[:KEPT])


class _Beat:
    """A clock that all streams of a process wait for together: one timer for all of them, and none while nobody waits."""

    def __init__(self) -> None:
        self._next: asyncio.Event | None = None

    async def next(self) -> None:
        if self._next is None:
            self._next = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.call_at((loop.time() // BEAT + 1) * BEAT, self._strike)
        await self._next.wait()

    def _strike(self) -> None:
        beat, self._next = self._next, None
        if beat is not None:
            beat.set()


async def _read(response: aiohttp.ClientResponse, frames: Frames) -> bytes:
    parts: list[bytes] = []
    while data := await response.content.readany():
        frames.feed(data)  # only for its limits
        parts.append(data)
    return b"".join(parts)


def _words(error: Exception, silence: float) -> tuple[str, str]:
    """What happened, as a predicate of the endpoint, and the next move."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return f"could not be reached within {CONNECT_SECONDS:g} s", "check the address and the network"
        case asyncio.TimeoutError():
            return f"sent nothing for {silence:g} s", "try again, or raise the provider's timeout"
        case aiohttp.ClientConnectorCertificateError():
            fix = "install the system's CA certificates (Debian: ca-certificates), or point SSL_CERT_FILE at them"
            return f"showed a certificate that is not trusted ({error.certificate_error})", fix
        case aiohttp.ClientSSLError():
            return f"could not agree on a secure connection ({error.os_error})", "check that the address speaks https"
        case aiohttp.ClientConnectorDNSError():
            return "has a name that is not found", "check the address and the network"
        case aiohttp.ClientConnectorError():
            return (
                f"could not be reached ({error.os_error.strerror or error.os_error})",
                "check that it is running and the address is right",
            )
        case aiohttp.ServerDisconnectedError() | ConnectionError():
            return "closed the connection", "try again"
        case aiohttp.ClientPayloadError():
            return "broke off", "try again"
        case _:
            return f"spoke no proper HTTP ({type(error).__name__}: {error})", "check the base_url"
