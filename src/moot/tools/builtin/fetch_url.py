"""fetch_url: fetch a page of the public web as Markdown."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated

import anyio.to_thread
from aiohttp.abc import AbstractResolver
from pydantic import BaseModel, BeforeValidator, Field

from moot.errors import Refused
from moot.guard.urls import PORTS, Page, Policy, fetch
from moot.tools import texts
from moot.tools.basics import LookupTool, ToolSettings, size_word, title
from moot.tools.html import to_markdown
from moot.types.canonical import JsonObject
from moot.types.tool import ToolContext, ToolOutput, View

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT_TYPES = frozenset({"json", "xml", "javascript", "yaml", "x-yaml", "toml", "x-ndjson", "sql", "x-sh", "markdown"})


class FetchUrlArguments(BaseModel):
    url: str = Field(min_length=1, max_length=8000, description="http or https URL")


class FetchUrlSettings(ToolSettings):
    allow: tuple[Annotated[IPv4Network | IPv6Network, BeforeValidator(lambda block: ip_network(str(block), strict=False))], ...] = ()
    """Networks to allow in addition to public ones, such as 10.0.0.0/8."""
    ports: tuple[Annotated[int, Field(ge=1, le=65_535)], ...] = ()
    """Ports to allow in addition to the usual ones."""


class FetchUrl(LookupTool):
    """The `fetch_url` tool. The guard blocks private addresses."""

    name = "fetch_url"
    description = "Fetch a web page, shown as Markdown, or a text or JSON file from the web."
    arguments = FetchUrlArguments
    settings = FetchUrlSettings
    effects = frozenset({"network"})
    needs_folder = False

    def __init__(self, resolver: AbstractResolver | None = None) -> None:
        self._resolver = resolver

    async def call(self, arguments: FetchUrlArguments, context: ToolContext) -> ToolOutput:
        page = await fetch_page(arguments.url, context.settings, self._resolver)
        output = await anyio.to_thread.run_sync(_output, page)
        if output.error:
            return output
        (number,) = await context.cite([(arguments.url, "")])  # not the URL after redirects, so that a search result keeps its number
        return replace(output, text=f"[{number}] {output.text}")

    def doing(self, arguments: FetchUrlArguments) -> View:
        return View(title("Fetch", arguments.url))

    def done(self, arguments: FetchUrlArguments, output: ToolOutput) -> View:
        return View(title("Fetch", arguments.url), body=output.text, language="markdown")


async def fetch_page(url: str, settings: JsonObject, resolver: AbstractResolver | None = None) -> Page:
    """Fetch a URL within the limits of `settings`, the section `tools.fetch_url`. Raise Refused as `fetch` does."""
    own = FetchUrlSettings.of(FetchUrl.name, settings)
    return await fetch(url, policy=Policy(allow=own.allow, ports=PORTS | frozenset(own.ports)), resolver=resolver)


def page_text(page: Page) -> str:
    """Return the text of a page, HTML as Markdown. Raise Refused if it is not text. Blocks."""
    kind = page.media_type
    known = kind.startswith("text/") or kind.endswith(("+json", "+xml")) or kind.rpartition("/")[2] in _TEXT_TYPES
    is_text = known or texts.encoding_of(page.body, whole=not page.cut)[0] != texts.LATIN
    if texts.is_binary(page.body) or not is_text:
        raise Refused(f"{page.url} can't be shown as text ({kind or 'unknown type'}, {size_word(len(page.body))}).")
    text = _text(page)
    return to_markdown(text) if kind in _HTML else text


def _output(page: Page) -> ToolOutput:
    shown = page_text(page)
    head = f"{page.url} ({page.status}, {page.media_type or 'unknown type'}{', truncated' if page.cut else ''})"
    return ToolOutput(f"{head}\n\n{shown}", {"url": page.url, "status": page.status}, error=page.status >= 400)


def _text(page: Page) -> str:
    encoding, mark = texts.encoding_of(page.body, whole=False)
    if page.charset and not mark:
        try:
            return page.body.decode(page.charset, "replace")
        except LookupError:  # unknown charset: detect it from the bytes
            pass
    return page.body[len(mark) :].decode(encoding, "replace")
