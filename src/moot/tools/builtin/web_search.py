"""web_search: search the web with Brave, Tavily, SearXNG or a custom endpoint. The tool is not available until one is configured."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, urlencode

from pydantic import BaseModel, Field

from moot.errors import MootError, Refused, UsageError
from moot.guard.secrets import redact
from moot.guard.urls import Page, Policy, fetch
from moot.tools.basics import LookupTool, ToolSettings, title
from moot.tools.html import plain
from moot.types.canonical import Json, JsonObject, dumps, loads
from moot.types.tool import ToolContext, ToolOutput, View

_SNIPPET_CHARACTERS = 500
_TITLE_CHARACTERS = 200
_ADDRESS = re.compile(r"https?://\S{1,2000}")
_POLICY = Policy(bytes=2_000_000, seconds=20.0, anywhere=True)


class WebSearchArguments(BaseModel):
    query: str = Field(min_length=1, max_length=400, description="What to search for")
    count: int = Field(default=5, ge=1, le=20, description="How many results")


EngineName = Literal["brave", "tavily", "searxng", "custom"]


class WebSearchSettings(ToolSettings):
    provider: Literal["", EngineName] = ""
    api_key: str = ""
    base_url: str = ""
    """Base URL of the search engine. For `custom`, a URL that contains `{query}`."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    title: str
    url: str
    snippet: str


@dataclass(frozen=True, slots=True)
class _Question:
    url: str
    headers: dict[str, str]
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class _Engine:
    """A kind of search engine: its requests, and the path of the results in its responses."""

    ask: Callable[[str, int, str, str], _Question]
    """Return the request for a query, a number of results, a base URL and a key."""
    base_url: str
    """Default base URL; empty if one must be configured."""
    needs_key: bool
    results: tuple[str, ...] = ("results",)


class WebSearch(LookupTool):
    """The `web_search` tool."""

    name = "web_search"
    description = "Search the web. Returns numbered titles, URLs and snippets; use fetch_url to read a page."
    arguments = WebSearchArguments
    settings = WebSearchSettings
    effects = frozenset({"network"})
    needs_folder = False

    def available(self, settings: JsonObject) -> bool:
        """Return True if a search engine is completely configured."""
        try:
            found = WebSearchSettings.of(self.name, settings)
        except UsageError:  # `moot config check` reports invalid settings
            return False
        engine = _ENGINES.get(found.provider)
        if engine is None or (engine.needs_key and not found.api_key):
            return False
        return bool(engine.base_url or found.base_url)

    async def call(self, arguments: WebSearchArguments, context: ToolContext) -> ToolOutput:
        if not self.available(context.settings):
            raise Refused("No search engine is configured.", fix=f"Set tools.web_search.provider to one of {', '.join(_ENGINES)}.")
        results = await search(WebSearchSettings.of(self.name, context.settings), arguments.query, arguments.count)
        numbers = await context.cite([(result.url, result.title) for result in results])
        lines = [f"[{number}] {one.title}\n   {one.url}\n   {one.snippet}" for number, one in zip(numbers, results, strict=True)]
        values: list[Json] = [{"title": one.title, "url": one.url, "snippet": one.snippet} for one in results]
        return ToolOutput("\n".join(lines) or f"No results for {arguments.query!r}.", values, empty=not lines)

    def doing(self, arguments: WebSearchArguments) -> View:
        return View(title("Search the web for", arguments.query))

    def done(self, arguments: WebSearchArguments, output: ToolOutput) -> View:
        return View(title("Search the web for", arguments.query), body=output.text, language="markdown")


def check_complete(settings: WebSearchSettings) -> None:
    """Raise UsageError if the settings of a search engine lack a key or an address."""
    engine = _ENGINES[settings.provider]
    if settings.provider == "custom" and "{query}" not in settings.base_url:
        raise UsageError("base_url must contain {query}.", fix="For example: https://search.example.com/?q={query}")
    if not (settings.base_url or engine.base_url):
        raise UsageError(f"The base_url of the {settings.provider} server is required.", fix="For example: http://127.0.0.1:8888")
    if engine.needs_key and not settings.api_key:
        raise UsageError(
            f"The api_key of {settings.provider} is required.", fix="A stored key is not used for another provider or address."
        )


async def search(settings: WebSearchSettings, query: str, count: int) -> list[SearchResult]:
    """Return the results of a complete configuration. Raise MootError, without the key in its texts, if the search fails."""
    engine, key = _ENGINES[settings.provider], settings.api_key
    question = engine.ask(query, count, (settings.base_url or engine.base_url).rstrip("/"), key)
    try:
        page = await fetch(question.url, headers=question.headers, body=question.body, policy=_POLICY)
        return _results(page, engine)[:count]
    except MootError as error:
        message = error.message.replace(key, "***") if key else error.message
        raise Refused(redact(message), fix=error.fix) from None  # the original may quote the key


def _brave(query: str, count: int, base: str, key: str) -> _Question:
    parameters = urlencode({"q": query, "count": count})
    return _Question(f"{base}/res/v1/web/search?{parameters}", {"Accept": "application/json", "X-Subscription-Token": key})


def _tavily(query: str, count: int, base: str, key: str) -> _Question:
    headers = {**_bearer(key), "Content-Type": "application/json"}
    return _Question(f"{base}/search", headers, dumps({"query": query, "max_results": count}))


def _searxng(query: str, count: int, base: str, key: str) -> _Question:
    return _Question(f"{base}/search?{urlencode({'q': query, 'format': 'json'})}", _bearer(key))


def _custom(query: str, count: int, base: str, key: str) -> _Question:
    url = base.replace("{query}", quote(query, safe="")).replace("{count}", str(count))
    return _Question(url, {"Accept": "application/json", **_bearer(key)})


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


_ENGINES: dict[str, _Engine] = {
    "brave": _Engine(_brave, "https://api.search.brave.com", needs_key=True, results=("web", "results")),
    "tavily": _Engine(_tavily, "https://api.tavily.com", needs_key=True),
    "searxng": _Engine(_searxng, "", needs_key=False),
    "custom": _Engine(_custom, "", needs_key=False),
}


_FIXES = {
    401: "Check the key.",
    403: "Check the key. A SearXNG server must list `json` in `search.formats` of its settings.",
    404: "Check the address.",
    429: "The search engine limits your requests. Wait, or use a key with a higher limit.",
}
"""Advice for status codes."""


def _results(page: Page, engine: _Engine) -> list[SearchResult]:
    if page.status >= 400:
        fix = _FIXES.get(page.status, "")
        raise Refused(f"The search engine responded with status {page.status}: {page.body[:200].decode('utf-8', 'replace')}", fix=fix)
    try:
        found: Json = loads(page.body)
    except ValueError as error:
        raise Refused("The search engine's answer is not valid JSON.", fix="Check tools.web_search.base_url.") from error
    for name in engine.results:
        found = found.get(name) if isinstance(found, dict) else found
    if not isinstance(found, list):
        raise Refused(f"The search engine's response has no list of results at {'.'.join(engine.results)!r}.")
    return [_result(item) for item in found if isinstance(item, dict) and _ADDRESS.fullmatch(str(item.get("url")))]


def _result(item: JsonObject) -> SearchResult:
    snippet = next((str(item[name]) for name in ("snippet", "content", "description") if isinstance(item.get(name), str)), "")
    title = " ".join(plain(str(item.get("title") or "")).split())[:_TITLE_CHARACTERS]
    return SearchResult(title, str(item["url"]), plain(snippet)[:_SNIPPET_CHARACTERS])
