"""Files of the web page: served from a table, cached according to their names, and nothing else on the disk."""

from __future__ import annotations

import gzip
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from e2e.server.conftest import LiveServer
from moot.server.pages import Pages

pytestmark = pytest.mark.anyio

SCRIPT = b"console.log(1)\n" * 200


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "built"
    for name, content in {
        "index.html": b"<!doctype html><title>the page</title>",
        "assets/app-a1b2c3.js": SCRIPT,
        "favicon.svg": b"<svg/>",
        "frames/shown.html": b"<p>",
        ".vite/manifest.json": b"{}",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (tmp_path / "secret.txt").write_text("hidden words")
    return folder


@asynccontextmanager
async def visiting(server: LiveServer, built: Path) -> AsyncGenerator[aiohttp.ClientSession, None]:
    """Open a browser without a token on a server with that build."""
    server.app.router.default = Pages(built)
    async with server.stranger(auto_decompress=False) as browser:
        yield browser


async def test_every_path_of_the_page_returns_the_page(server: LiveServer, built: Path) -> None:
    async with visiting(server, built) as browser:
        for path in ("/", "/c/0190a5a0", "/settings/models"):
            answer = await browser.get(path)
            assert answer.status == 200 and b"the page" in await answer.read()
            assert answer.headers["cache-control"] == "no-store" and answer.headers["content-type"] == "text/html; charset=utf-8"
            assert "script-src 'self';" in answer.headers["content-security-policy"]
        for path in ("/api/nothing", "/v1/nothing", "/api", "/assets/gone-123.js", "/robots.txt"):
            assert (await browser.get(path)).status == 404
        assert (await browser.post("/settings")).status == 404


async def test_a_file_with_a_hash_in_its_name_is_cached_forever_and_sent_compressed(server: LiveServer, built: Path) -> None:
    async with visiting(server, built) as browser:
        answer = await browser.get("/assets/app-a1b2c3.js", headers={"accept-encoding": "gzip"})
        assert "immutable" in answer.headers["cache-control"] and answer.headers["vary"] == "accept-encoding"
        assert gzip.decompress(await answer.read()) == SCRIPT
        plain = await browser.get("/assets/app-a1b2c3.js", headers={"accept-encoding": "identity"})
        assert await plain.read() == SCRIPT and "content-encoding" not in plain.headers
        again = await browser.get("/assets/app-a1b2c3.js", headers={"if-none-match": plain.headers["etag"]})
        assert (again.status, await again.read()) == (304, b"")
        assert (await browser.head("/favicon.svg")).headers["content-type"] == "image/svg+xml"


@pytest.mark.parametrize(
    "path",
    [
        *("/../secret.txt", "/..%2fsecret.txt", "/assets/..%2f..%2fsecret.txt", "/%2e%2e/secret.txt", "/..%5csecret.txt", "/x%00.js"),
        *("/.vite/manifest.json", "/assets", "//secret.txt", "/..;/secret.txt", "/assets/%2e%2e%2findex.html", "/C:%5csecret.txt"),
    ],
)
@pytest.mark.slow
async def test_no_path_reaches_hidden_files_or_files_outside_the_build(server: LiveServer, built: Path, path: str) -> None:
    async with visiting(server, built) as browser:
        answer = await browser.get(URL(f"{server.url}{path}", encoded=True))
        assert b"hidden words" not in (body := await answer.read()) and body != b"{}"
        assert answer.status == 404 or (path == "/assets" and b"the page" in body)


async def test_model_written_content_is_sandboxed(server: LiveServer, built: Path) -> None:
    async with visiting(server, built) as browser:
        headers = (await browser.get("/frames/shown.html")).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts;") and "connect-src 'none'" in policy
    assert "allow-same-origin" not in policy and headers["x-frame-options"] == "SAMEORIGIN"


async def test_a_new_build_is_served_without_a_restart(server: LiveServer, built: Path) -> None:
    async with visiting(server, built) as browser:
        assert b"the page" in await (await browser.get("/")).read()
        (built / "assets" / "new-1.js").write_bytes(b"new")
        (built / "index.html").write_text("<title>another</title>")
        os.utime(built / "index.html", ns=(1, 1))
        assert b"another" in await (await browser.get("/")).read()
        assert await (await browser.get("/assets/new-1.js")).read() == b"new"


async def test_a_missing_build_is_explained(server: LiveServer, tmp_path: Path) -> None:
    async with visiting(server, tmp_path / "nowhere") as browser:
        answer = await browser.get("/")
        assert answer.status == 200 and b"make web" in await answer.read()
        assert (await browser.get("/docs")).status == 200
