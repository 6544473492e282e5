import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from moot.tools.builtin.fetch_url import FetchUrl, FetchUrlArguments
from moot.tools.html import MAX_CHARACTERS, plain, to_markdown
from moot.types.tool import ToolOutput

PAGE = """<html><head><title>T</title><script>evil()</script><style>p {}</style></head>
<body><h1>Head</h1><p>Some <b>bold</b> <a href="/x">link</a></p><SCRIPT>more</SCRIPT ><ul><li>one</li></ul></body></html>"""


@asynccontextmanager
async def serving(context: Any, body: bytes, media_type: str, status: int = 200) -> AsyncIterator[str]:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=body, headers={"Content-Type": media_type}, status=status)

    async with listening(context, handle) as url:
        yield url


@asynccontextmanager
async def listening(context: Any, handle: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_get("/{path:.*}", handle)
    runner = web.AppRunner(application)
    await runner.setup()
    bound = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, bound).start()
    port = bound.getsockname()[1]
    context.settings = {"allow": ["127.0.0.1/32"], "ports": [port]}
    try:
        yield f"http://127.0.0.1:{port}/page"
    finally:
        await runner.cleanup()


async def fetched(context: Any, body: bytes, media_type: str, status: int = 200) -> ToolOutput:
    async with serving(context, body, media_type, status) as url:
        return await FetchUrl().run(FetchUrlArguments(url=url), context)


@pytest.mark.anyio
async def test_links_in_a_page_are_not_fetched(context: Any):
    asked: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(request.path)
        lead = '<meta http-equiv="refresh" content="0; url=/next"><link rel="stylesheet" href="/style"><script src="/script"></script>'
        page = f'<html><head>{lead}</head><body><img src="/image"><iframe src="/frame"></iframe>Here.</body></html>'
        return web.Response(text=page, content_type="text/html", headers={"Refresh": "0; url=/next", "Link": "</style>; rel=preload"})

    async with listening(context, handle) as url:
        output = await FetchUrl().run(FetchUrlArguments(url=url), context)
    assert "Here." in output.text
    assert asked == ["/page"]


@pytest.mark.anyio
async def test_a_page_becomes_markdown(context: Any):
    output = await fetched(context, PAGE.encode(), "text/html; charset=utf-8")
    head, _, text = output.text.partition("\n\n")
    assert head.endswith("/page (200, text/html)")
    assert "# Head" in text
    assert "Some **bold** [link](/x)" in text
    assert "- one" in text
    assert "evil" not in text
    assert "more" not in text


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "media_type", "text"),
    [
        (b'{"a": [1, 2]}', "application/json", '{"a": [1, 2]}'),
        (b"plain <b>\n", "text/plain", "plain <b>\n"),
        ("grün".encode("latin-1"), "text/plain; charset=iso-8859-1", "grün"),
        ("grün".encode("utf-16"), "text/plain", "grün"),
        ("grün".encode(), "text/plain; charset=no-such-thing", "grün"),
        (b"a: 1", "application/octet-stream", "a: 1"),
        (b"{}", "application/problem+json", "{}"),
    ],
)
async def test_text_is_returned_unchanged(context: Any, body: bytes, media_type: str, text: str):
    output = await fetched(context, body, media_type)
    assert output.text.partition("\n\n")[2] == text
    assert not output.error


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"%PDF-1.7\0\1", "application/pdf"),
        (b"\x89PNG\0", "text/html"),
        (b"\xe9\xfd", "image/x"),
    ],
)
async def test_binary_content_is_an_error(context: Any, body: bytes, media_type: str):
    output = await fetched(context, body, media_type)
    assert output.error
    assert "can't be shown as text" in output.text


@pytest.mark.anyio
async def test_an_error_page_is_shown_as_a_failure(context: Any):
    output = await fetched(context, b"nothing here", "text/plain", 404)
    assert output.error
    assert "(404, text/plain)\n\nnothing here" in output.text


@pytest.mark.anyio
@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://169.254.169.254/", "file:///etc/passwd", "nonsense"])
async def test_a_rejected_url_is_an_error(context: Any, url: str):
    output = await FetchUrl().run(FetchUrlArguments(url=url), context)
    assert output.error


@pytest.mark.anyio
@pytest.mark.parametrize("settings", [{"allow": ["everything"]}, {"ports": ["many"]}])
async def test_an_invalid_setting_is_reported(context: Any, settings: Any):
    context.settings = settings
    output = await FetchUrl().run(FetchUrlArguments(url="http://127.0.0.1/"), context)
    assert "tools.fetch_url" in output.text


@pytest.mark.anyio
@pytest.mark.parametrize("tag", ["div", "blockquote", "table", "b"])
async def test_a_deeply_nested_page_is_shown_quickly(context: Any, tag: str):
    late = 0.0

    async def watch() -> None:
        nonlocal late
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            late = max(late, time.monotonic() - before)

    watching = asyncio.create_task(watch())
    output = await fetched(context, f"{f'<{tag}>' * 100_000}deep".encode(), "text/html")
    watching.cancel()
    assert "deep" in output.text
    assert late < 20


def test_unterminated_scripts_are_handled_quickly():
    begun = time.process_time()
    to_markdown("<script" * 100_000)
    to_markdown("<style></style" * 50_000)
    plain("<" * 1_000_000)
    assert time.process_time() - begun < 30


def test_a_page_that_is_too_long_is_marked_as_truncated():
    assert to_markdown("<p>x</p>" + "x" * MAX_CHARACTERS).endswith("(truncated: the page is too long)")


@given(st.text(alphabet=st.sampled_from("<>/ab \"'=!-&;script\n") | st.characters(exclude_categories=["Cs"]), max_size=200))
def test_arbitrary_pages_never_raise(page: str):
    assert isinstance(to_markdown(page), str)
    assert isinstance(plain(page), str)
