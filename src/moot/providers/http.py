"""The HTTP client of the providers. It sends requests, yields frames as they arrive, and translates all aiohttp errors.

The body of a response with a success status is passed on, whatever it is: HTML, a JSON error, or nothing. It is logged as raw bytes and
interpreted by the translator. Any other status raises ProviderError before the first frame.
"""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

import aiohttp

from moot.config.settings import ProviderSettings
from moot.convert.dialects.frames import KEPT, Frames
from moot.errors import ConfigError, ProviderError
from moot.providers.catalogue import describe, parse_list
from moot.providers.refusals import refusal_error
from moot.providers.shapes import SHAPES, shape_of
from moot.types.event import Raw
from moot.types.model import Model
from moot.types.provider import Facts, ModelRequest
from moot.types.telemetry import OUTGOING, TRACEPARENT

_SHORTEST = 8
"""Minimum length of a masked value. Shorter ones (`none`, `ollama`) are not secrets, and masking them would damage ordinary words."""

_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)


class Mask:
    """Masks the provider's secrets in texts and bytes with asterisks of the same length, so that offsets stay valid."""

    def __init__(self, api_key: str, headers: Mapping[str, str]) -> None:
        values = [api_key, *(value for name, value in headers.items() if _SECRET_HEADER.search(name))]
        words = [value.strip().removeprefix("Bearer ").strip() for value in values]
        self._secrets = sorted({word.encode() for word in words if len(word) >= _SHORTEST}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """Return the text with secrets masked."""
        return self.raw(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace") if self._secrets else text

    def raw(self, raw: bytes) -> bytes:
        """Return the bytes with secrets masked. The length stays the same."""
        for secret in self._secrets:
            raw = raw.replace(secret, b"*" * len(secret))
        return raw

    def frames(self, frames: tuple[Raw, ...]) -> tuple[Raw, ...]:
        """Return the frames with secrets masked. This is the only change ever made to a vendor's data."""
        joined = b"".join(frames)
        if any(secret in joined for secret in self._secrets):
            return tuple(map(self.raw, frames))
        return frames


READ_BUFFER = 1 << 18
"""Size of the read buffer in bytes. With a smaller one, aiohttp pauses and resumes the socket for each of many small HTTP chunks."""

READ_INTERVAL = 0.03
"""Interval in seconds. A stream of small reads is read once per interval, together with all other streams, so that the cost of
logging and publishing a read is shared by several frames, and commits of many streams coincide. The delay is not noticeable."""

BURST = 16 * 1024
"""Minimum number of bytes in one read for a stream to count as fast, so that it is read again without waiting."""

CONNECT_SECONDS = 10.0
"""Time limit for name lookup, connection and TLS handshake together."""

ERROR_SECONDS = 10.0
"""Time limit for reading an error response, unless the provider's timeout is shorter. The data that has arrived by then is used."""

WHOLE_BYTES = 64 * 1024 * 1024
"""Maximum size of a response that is not a stream, such as a few images in base64."""

_HEADER_BYTES = 64 * 1024
_ERRORS = (aiohttp.ClientError, OSError, asyncio.TimeoutError, ValueError)


class HttpProvider:
    """Base class of providers that use HTTP. A subclass sets `facts`; paths and authentication depend on the dialect.

    Each instance has one session and connector, created on the first request. Only the provider's option `proxy` sets a proxy, because
    environment variables must not change where a key is sent. Redirects are never followed, so a key is sent only to the base URL's host.
    """

    facts: ClassVar[Facts]
    options: ClassVar[tuple[str, ...]] = ("proxy", "vendor_tools")
    """Names of options in the provider's configuration, in addition to those that every provider has."""

    def __init__(self, settings: ProviderSettings) -> None:
        self.name = settings.name or self.facts.name
        self.dialect = settings.dialect or self.facts.dialect
        self.settings = settings
        tools = settings.options.get("vendor_tools", [])
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            expected = "Expected a list of mappings in the vendor's format, such as [{type: web_search}]."
            raise ConfigError(f"The option providers.{self.name}.vendor_tools is {tools!r}. {expected}")
        self.quirks = replace(self.facts.quirks, vendor_tools=tuple(tools)) if tools else self.facts.quirks
        shape = shape_of(self.dialect)
        if shape is None:
            known = ", ".join(sorted(SHAPES))
            raise ConfigError(f"The provider {self.name!r} has an unknown dialect {self.dialect!r}. Known dialects: {known}.")
        self.shape = shape
        self.base = self._base_url()
        self.live = 0
        """Number of open streams."""
        self._ticker = _Ticker()
        self._mask = Mask(settings.api_key, settings.headers)
        self._session: aiohttp.ClientSession | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[Raw, ...], None]:
        """Yield the raw frames of the response, one tuple per socket read. See `moot.types.provider.Provider.stream`."""
        response = await self._post(request)
        frames = self.shape.frames()
        failure: ProviderError | None = None
        self.live += 1
        try:
            while True:
                try:
                    data = await response.content.readany()
                except _ERRORS as error:
                    failure = self._connection_error(error, "while answering")
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
        """Wait for the next read interval. Data that arrives meanwhile stays in the kernel and is then read together."""
        transport = response.connection.transport if response.connection is not None else None
        if transport is None:
            return
        transport.pause_reading()
        await self._ticker.next()
        transport.resume_reading()

    async def models(self) -> Sequence[Model]:
        """Return the models that the endpoint lists. Raise ProviderError if the request fails."""
        return parse_list(self.name, self.facts, self.settings, await self._get(self.shape.models))

    def describe(self, name: str) -> Model:
        """Return the known facts about a model without a request. An unknown model has only its name."""
        return describe(self.name, self.facts, self.settings, name)

    async def ask(self, path: str, body: bytes, *, media_type: str = "application/json", seconds: float = 300.0) -> bytes:
        """Send a POST request to a path below the base URL and return the complete response body. Raise ProviderError on failure."""
        headers = {"Accept": "application/json", "Content-Type": media_type}
        return await self._whole("POST", path, "while processing the request", seconds, body, headers)

    async def close(self) -> None:
        """Close all connections. Open streams fail."""
        session, self._session = self._session, None
        if session:
            await session.close()

    async def _get(self, path: str, *, seconds: float = 30.0) -> bytes:
        """Send a GET request to a path below the base URL and return the response body. Raise ProviderError on failure."""
        return await self._whole("GET", path, "while listing its models", seconds)

    async def _whole(
        self, method: str, path: str, when: str, seconds: float, sent: bytes | None = None, more: Mapping[str, str] | None = None
    ) -> bytes:
        timeout = aiohttp.ClientTimeout(total=seconds, connect=min(seconds, CONNECT_SECONDS))
        headers = {**self._headers(), **(more or {})}
        data = None if sent is None else io.BytesIO(sent)
        try:
            async with self._client().request(
                method, self._url(path), data=data, headers=headers, timeout=timeout, allow_redirects=False, proxy=self._proxy()
            ) as response:
                limits, body = Frames(max_frame=WHOLE_BYTES, max_body=WHOLE_BYTES), bytearray()
                while data := await response.content.readany():
                    limits.feed(data)
                    body += data
        except _ERRORS as error:
            raise self._connection_error(error, when) from error
        if not 200 <= response.status < 300:
            raise self._refused(response, bytes(body))
        return bytes(body)

    async def _post(self, request: ModelRequest) -> aiohttp.ClientResponse:
        headers = {**self._headers(), "Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
        if request.idempotency_key:
            headers["Idempotency-Key"] = request.idempotency_key
        if trace := OUTGOING.get():
            headers[TRACEPARENT] = trace
        try:
            response = await self._client().post(
                self._url(self.shape.post.replace("{model}", quote(request.model, safe=""))),
                data=io.BytesIO(request.body),  # aiohttp warns about bytes over 1 MiB
                headers=headers,
                allow_redirects=False,
                proxy=self._proxy(),
            )
        except _ERRORS as error:
            raise self._connection_error(error, "before answering") from error
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
        headers = {"User-Agent": "moot", **self.shape.authentication(self.settings.api_key), **self.settings.headers}
        for name, value in headers.items():
            if not value.isascii() or not value.isprintable():
                raise ConfigError(
                    f"The header {name!r} of the provider {self.name!r} contains characters that are not allowed in a header."
                )
        return headers

    def _proxy(self) -> str | None:
        proxy = self.settings.options.get("proxy")
        return proxy if isinstance(proxy, str) and proxy else None

    def _base_url(self) -> SplitResult:
        plan, plans = self.settings.plan, self.facts.plans
        if plan and plan not in plans:
            known = f"Known plans: {', '.join(sorted(plans))}." if plans else "It has no plans."
            raise ConfigError(f"The provider {self.name!r} has no plan {plan!r}. {known}")
        text = self.settings.base_url or plans.get(plan, "") or self.facts.base_url
        if not text:
            raise ConfigError(f"The provider {self.name!r} has no base_url.", fix=f"Set providers.{self.name}.base_url.")
        try:
            url = urlsplit(text.strip())
            # a password would be sent with every request
            valid = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0 and "@" not in url.netloc
        except ValueError:
            url, valid = SplitResult("", "", "", "", ""), False
        if not valid:
            head, at, tail = text.rpartition("@")
            shown = f"{head.partition('://')[0]}://***@{tail}" if at else text
            raise ConfigError(f"The base_url of the provider {self.name!r} is {shown!r}. Expected http(s)://host[:port][/path].")
        return url._replace(path=url.path.rstrip("/").removesuffix(self.shape.version), fragment="")

    def _url(self, path: str) -> str:
        path, _, query = path.partition("?")
        return urlunsplit(self.base._replace(path=self.base.path + path, query=query or self.base.query))

    def _refused(self, response: aiohttp.ClientResponse, body: bytes) -> ProviderError:
        error = refusal_error(self.name, response.status, response.headers, self._mask.raw(body))
        if "Location" in response.headers and 300 <= response.status < 400:
            host = urlsplit(response.headers["Location"]).netloc or self.base.netloc
            error.fix = f"{error.fix} The new host is {host}."
        return error

    def _connection_error(self, error: Exception, when: str) -> ProviderError:
        kind = "timeout" if isinstance(error, asyncio.TimeoutError) else "transport"
        what, fix = _explanation(error, self.settings.timeout)
        message = f"The provider {self.name} at {self.base.netloc} {what} {when}."
        return ProviderError(self._mask.text(message), fix=fix, kind=kind, retryable=True)


async def _error_body(response: aiohttp.ClientResponse, seconds: float) -> bytes:
    """Return at most `KEPT` bytes of an error response. The body only explains the error, so failing to read it is ignored."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while len(body) < KEPT and (data := await response.content.readany()):
                body += data
    except _ERRORS as error:
        body += b"" if body else f"(its body could not be read: {type(error).__name__})".encode()
    return bytes(body[:KEPT])


class _Ticker:
    """A clock shared by all streams of a provider, with one timer that only runs while a stream is waiting."""

    def __init__(self) -> None:
        self._next: asyncio.Event | None = None

    async def next(self) -> None:
        if self._next is None or self._next.is_set():
            self._next = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.call_at((loop.time() // READ_INTERVAL + 1) * READ_INTERVAL, self._next.set)
        await self._next.wait()


def _explanation(error: Exception, silence: float) -> tuple[str, str]:
    """Return the endpoint's failure, worded to follow its name in a sentence, and how to fix it."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return f"could not be reached within {CONNECT_SECONDS:g} s", "Check the address and the network."
        case asyncio.TimeoutError():
            return f"sent nothing for {silence:g} s", "Try again, or raise the provider's timeout."
        case aiohttp.ClientConnectorCertificateError():
            fix = "Install the system's CA certificates (Debian: ca-certificates), or point SSL_CERT_FILE at them."
            return f"has an untrusted certificate ({error.certificate_error})", fix
        case aiohttp.ClientSSLError():
            return f"could not establish a secure connection ({error.os_error})", "Check that the server supports HTTPS."
        case aiohttp.ClientConnectorDNSError():
            return "has a host name that can't be resolved", "Check the address and the network."
        case aiohttp.ClientConnectorError():
            fix = "Check that it is running and the address is right."
            return f"could not be reached ({error.os_error.strerror or error.os_error})", fix
        case aiohttp.ServerDisconnectedError() | ConnectionError():
            return "closed the connection", "Try again."
        case aiohttp.ClientPayloadError():
            return "broke the connection", "Try again."
        case _:
            return f"sent an invalid HTTP response ({type(error).__name__}: {error})", "Check the base_url."
