"""Chromium of the system, the built page, and a server with a scripted model. Tests are skipped if one is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from browser.moot_server import Served, served
from browser.visits import DESKTOP, Visit
from lanes import missing

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
PAGE = ROOT / "src/moot/server/page/index.html"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-device-for-media-stream",
]

Visitor = Callable[..., Visit]

expect.set_options(timeout=20_000)  # enough time for a busy machine; usually it is visible at once


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(170, func_only=True))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a worker; each test has its own profile."""
    program = shutil.which("chromium")
    if program is None:
        missing("browser", "there is no program `chromium`: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    if not AXE.is_file():
        missing("browser", "axe-core is not installed: make web")
    return AXE.read_text()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests of a worker; each test creates the conversations it needs."""
    if not PAGE.is_file():
        missing("browser", "the page is not built: make web")
    with served(tmp_path_factory.mktemp("served")) as one:
        yield one


@pytest.fixture
def visit(browser: Browser, server: Served) -> Iterator[Visitor]:
    """Open a signed-in tab: `visit("/c/…", viewport=PHONE, theme="dark")`. The test fails if the page does anything forbidden."""
    visits: list[Visit] = []
    with ExitStack() as stack:

        def open_tab(
            path: str = "/",
            *,
            viewport: dict[str, int] = DESKTOP,
            theme: str = "light",
            locale: str = "en-US",
            allowed: tuple[str, ...] = (),
            at: Served = server,
            beside: Visit | None = None,
            signed_in: bool = True,
            worker: bool = False,
        ) -> Visit:
            if beside is not None:
                context = beside.context
            else:
                context = browser.new_context(
                    viewport={"width": viewport["width"], "height": viewport["height"]},
                    locale=locale,
                    color_scheme="dark" if theme == "dark" else "light",
                    contrast="more" if theme == "contrast" else None,
                    has_touch=viewport["width"] < 600,
                    reduced_motion="reduce",
                    service_workers="allow" if worker else "block",  # with a worker, tests can't hold or change requests for files
                )
                stack.callback(_close, context)
            tab = Visit(context.new_page(), context, at.url, allowed).watch()
            visits.append(tab)
            if signed_in and beside is None:
                # without loading the page a second time; test_cross_origin.py signs in through the address
                response = context.request.post(f"{at.url}/api/login", data={"code": at.login().partition("#code=")[2]})
                assert response.ok, response.text()
            tab.go(path)
            return tab

        yield open_tab
    server.stop_runs()
    wrong = [line for one in visits for line in one.verdict()]
    assert not wrong, "\n".join(wrong)


def _close(context: BrowserContext) -> None:
    """Close the tabs. A handler of a request that is still running would otherwise fail in the next test."""
    if context.is_closed():  # a test that stops its server closes the tabs first
        return
    for page in context.pages:
        page.unroute_all(behavior="ignoreErrors")
    context.unroute_all(behavior="ignoreErrors")
    context.close()
