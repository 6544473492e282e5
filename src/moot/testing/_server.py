"""The HTTP server behind the doubles: a random port on 127.0.0.1, with all requests recorded, in a common format for all dialects."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import unquote

from aiohttp import web

from moot.config.settings import ProviderSettings
from moot.testing._frames import error_body
from moot.testing.script import Reply

PICTURES, SOUNDS = "pictures", "sounds"
"""OpenAI's endpoints for images and recordings, which have no conversation."""

_GOOGLE = re.compile(r"/models/([^/:]+):\w+$")


_ENDS = {
    "/messages": "anthropic",
    "/responses": "openai-responses",
    "/api/chat": "ollama",
    "/images/generations": PICTURES,
    "/images/edits": PICTURES,
    "/audio/transcriptions": SOUNDS,
}


def _item(item: dict[str, Any]) -> dict[str, Any]:
    kind = str(item.get("type", "message"))
    if kind == "message":
        content = item.get("content")
        return {"role": item.get("role"), "content": content if isinstance(content, str) else _texts(content)}
    if kind.endswith("_output"):
        output = item.get("output")
        return {"role": "tool", "content": output if isinstance(output, str) else _texts(output)}
    return {"role": "assistant", "content": ""}


def _texts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": part["text"]} if "text" in part else part for part in objects(content)]


def _content(content: dict[str, Any]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for part in objects(content.get("parts")):
        answer = part.get("functionResponse")
        if isinstance(answer, dict):
            response = cast("dict[str, Any]", answer).get("response")
            values = list(cast("dict[str, Any]", response).values()) if isinstance(response, dict) else [response]
            output = "\n".join(value if isinstance(value, str) else json.dumps(value) for value in values)
            parts.append({"type": "tool_result", "content": output})
        elif "text" in part:
            parts.append({"type": "text", "text": part["text"]})
    return {"role": "assistant" if content.get("role") == "model" else "user", "content": parts}


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list, or an empty list for any other value."""
    return [cast("dict[str, Any]", item) for item in cast("list[Any]", value) if isinstance(item, dict)] if isinstance(value, list) else []


_POLL = 0.01


@dataclass(slots=True)
class Recorded:
    """A received request and what happened to it."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names are in lower case."""
    body: bytes
    at: float
    """Monotonic seconds."""
    status: int = 0
    """Status of the response; 0 until there is a response."""
    sent: int = 0
    """Number of body bytes written."""
    hung_up: bool = False
    """True if the client disconnected before the end of the response."""
    released: bool = False
    """True if the response must not hang any more."""
    done: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    """Set when the request is finished."""

    @property
    def dialect(self) -> str:
        """The dialect of the path, or `PICTURES` or `SOUNDS`."""
        if _GOOGLE.search(self.path):
            return "google"
        return next((dialect for end, dialect in _ENDS.items() if self.path.endswith(end)), "openai-chat")

    @property
    def model(self) -> str:
        """The requested model."""
        found = _GOOGLE.search(self.path)  # Google's dialect has it in the path
        return unquote(found[1]) if found else str(self.json.get("model", ""))

    @property
    def json(self) -> dict[str, Any]:
        """The parsed body, or an empty object if it is not a JSON object."""
        try:
            value: Any = json.loads(self.body)
        except ValueError:
            return {}
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages with `role` (user, assistant, system, tool) and `content` as in openai-chat or anthropic."""
        body = self.json
        match self.dialect:
            case "openai-responses":
                value = body.get("input", [])
                return [{"role": "user", "content": value}] if isinstance(value, str) else [_item(item) for item in objects(value)]
            case "pictures":
                return [{"role": "user", "content": body.get("prompt", "")}]
            case "google":
                return [_content(content) for content in objects(body.get("contents"))]
            case _:
                return objects(body.get("messages"))

    @property
    def user_text(self) -> str:
        """The text of the last user message, without tool outputs."""
        for message in reversed(self.messages):
            text = text_of(message.get("content")) if message.get("role") == "user" else ""
            if text:
                return text
        return ""


def text_of(content: Any) -> str:
    """Return the text in a message's content, without tool outputs."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in objects(content) if part.get("type") == "text")


class Server:
    """Base class of the doubles, an async context manager. Subclasses implement `respond`."""

    models: tuple[str, ...] = ("scripted",)

    def __init__(self, *, port: int = 0) -> None:
        self.port = port
        self.requests: list[Recorded] = []
        """All POST requests in order of arrival."""
        self._runner: web.AppRunner | None = None
        self._stopping = asyncio.Event()

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, the base URL of the dialects anthropic, google and ollama."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """`http://127.0.0.1:PORT/v1`, the base URL of OpenAI's dialects."""
        return f"{self.url}/v1"

    async def __aenter__(self) -> Self:
        self._stopping.clear()
        app = web.Application(client_max_size=1 << 30)
        for path in ("/v1/models", "/v1beta/models", "/api/tags"):
            app.router.add_route("GET", path, self._list)
        app.router.add_route("GET", "/_requests", self._show)
        app.router.add_route("POST", "/_release", self._let_go)
        app.router.add_route("POST", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopping.set()
        runner, self._runner = self._runner, None
        if runner:
            await runner.cleanup()

    async def respond(self, recorded: Recorded, request: web.Request) -> web.StreamResponse:
        """Return the response to a POST request."""
        raise NotImplementedError

    async def send(
        self, recorded: Recorded, request: web.Request, writes: AsyncIterator[bytes], headers: Mapping[str, str]
    ) -> web.StreamResponse:
        """Send a 200 response with these writes as the body. `BrokenPipeError` from the iterator breaks the connection."""
        response = web.StreamResponse(headers=headers)
        recorded.status = 200
        await response.prepare(request)
        try:
            async for data in writes:
                await response.write(data)
                recorded.sent += len(data)
            await response.write_eof()
        except BrokenPipeError:  # after everything written was sent
            if request.transport is not None:
                request.transport.close()
        except ConnectionError:
            recorded.hung_up = True
        return response

    def refuse(self, recorded: Recorded, reply: Reply) -> web.Response:
        """Return an error response."""
        headers = dict(reply.headers)
        if reply.retry_after is not None:
            after = reply.retry_after
            headers["Retry-After"] = after if isinstance(after, str) else f"{after:.3f}".rstrip("0").rstrip(".")
        body = error_body(reply, recorded.dialect) if reply.raw is None else reply.raw
        recorded.sent = len(body)
        kind = "application/json" if reply.raw is None else reply.content_type or "text/event-stream"
        return web.Response(status=reply.status, body=body, headers={"Content-Type": kind, **headers})

    def provider(self, name: str = "mine", dialect: str = "openai-chat", **more: Any) -> ProviderSettings:
        """Return the settings of a custom provider that uses this server."""
        base_url = self.openai_url if dialect.startswith("openai-") else self.url
        values: dict[str, Any] = {"api_key": "scripted-key", "models": {model: {} for model in self.models}, **more}
        return ProviderSettings(name, dialect=dialect, base_url=base_url, **values)

    def release(self) -> None:
        """Let all requests received so far be answered, whether their responses already hang or would hang later."""
        for recorded in self.requests:
            recorded.released = True

    async def hang(self, recorded: Recorded, request: web.Request) -> bool:
        """Wait until `release` is called or the client disconnects.

        Return False if the client disconnected. Stopping the server breaks the connection.
        """
        while not self._stopping.is_set():
            if recorded.released:
                return True
            if request.transport is None or request.transport.is_closing():
                recorded.hung_up = True
                return False
            await asyncio.sleep(_POLL)
        raise BrokenPipeError

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        recorded = Recorded(request.method, request.path, headers, await request.read(), time.monotonic())
        self.requests.append(recorded)
        try:
            response = await self.respond(recorded, request)
            recorded.status = response.status
        finally:
            recorded.done.set()
        return response

    async def _list(self, request: web.Request) -> web.Response:
        match request.path:
            case "/v1beta/models":
                limits = {"inputTokenLimit": 100_000, "outputTokenLimit": 8_000}
                about = {**limits, "supportedGenerationMethods": ["generateContent", "countTokens"]}
                return web.json_response({"models": [{"name": f"models/{name}", "displayName": name, **about} for name in self.models]})
            case "/api/tags":
                return web.json_response({"models": [{"name": name, "model": name, "size": 1, "details": {}} for name in self.models]})
            case _:
                more = {"object": "model", "type": "model", "owned_by": "moot"}
                rows = [{"id": name, "display_name": name, **more} for name in self.models]
                return web.json_response({"object": "list", "data": rows, "has_more": False})

    async def _let_go(self, _: web.Request) -> web.Response:
        self.release()
        return web.Response(status=204)

    async def _show(self, request: web.Request) -> web.Response:
        rows = [
            {"path": row.path, "headers": dict(row.headers), "body": row.body.decode("utf-8", "replace"), "at": row.at}
            | {"status": row.status, "sent": row.sent, "hung_up": row.hung_up, "done": row.done.is_set()}
            for row in self.requests
        ]
        return web.json_response(rows)
