"""A page in the browser with a record of every request and error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Page, Request

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
SHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
"""Folder of screenshots; its path is printed after the tests."""

_OWN = ("data:", "blob:", "about:")


OUTAGE = ("net::ERR_(CONNECTION|CONTENT_LENGTH|INCOMPLETE|INTERNET|NETWORK|SOCKET)_|net::ERR_EMPTY_RESPONSE", "Failed to fetch")
"""Errors of a cut connection. Chromium has several names for them, which depend on the moment of the cut."""


@dataclass
class Visit:
    """One tab of one signed-in browser."""

    page: Page
    context: BrowserContext
    origin: str
    allowed: tuple[str, ...] = ()
    """Patterns of expected errors."""
    requests: list[str] = field(default_factory=list[str])
    stopped: list[str] = field(default_factory=list[str])
    """Requests blocked by a Content-Security-Policy."""
    errors: list[str] = field(default_factory=list[str])
    dialogs: list[str] = field(default_factory=list[str])

    def watch(self) -> Visit:
        self.page.on("console", self._said)
        self.page.on("pageerror", self._broke)
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.context.on("request", self._asked)
        self.context.on("requestfailed", self._failed)
        return self

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _broke(self, error: Error) -> None:
        self.errors.append(f"{error.name}: {error.message}")

    def _asked(self, request: Request) -> None:
        self.requests.append(request.url)

    def _failed(self, request: Request) -> None:
        if "csp" in (request.failure or "").lower():
            self.stopped.append(request.url)

    @property
    def foreign(self) -> list[str]:
        """Requests to any address other than the server."""
        return [url for url in self.requests if not url.startswith((f"{self.origin}/", *_OWN)) and url not in self.stopped]

    def go(self, path: str = "/") -> Page:
        self.page.goto(self.origin + path)
        self.page.locator("main h1").first.wait_for()
        return self.page

    def shot(self, name: str) -> None:
        """Save a screenshot."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png")

    def verdict(self) -> list[str]:
        """Forbidden things that the page did."""
        errors = [*self.errors, *(f"a request that the policy stopped: {url}" for url in self.stopped)]
        unexpected = [error for error in errors if not any(re.search(pattern, error) for pattern in self.allowed)]
        return [
            *(f"a request to another origin: {url}" for url in self.foreign),
            *(f"an error: {error}" for error in unexpected),
            *(f"a dialog: {dialog}" for dialog in self.dialogs),
        ]


_AXE = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
_WEIGHTY = ("serious", "critical")


def inaccessible(page: Page, axe: str) -> list[str]:
    """Violations that axe rates serious or critical on the current page, with the first elements."""
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate(axe)  # through the debugger, because the page's own policy would block a script
    violations: Sequence[dict[str, Any]] = page.evaluate(_AXE)
    return [
        f"{one['id']}: {one['help']}: {[node['target'] for node in one['nodes'][:3]]}" for one in violations if one["impact"] in _WEIGHTY
    ]
