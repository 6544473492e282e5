"""Routes for the search engine of the tool `web_search`: show it, test and save it, and remove it."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated, Literal

from anyio import to_thread
from pydantic import Field

from moot.config.changes import remove_value
from moot.config.loader import FILE
from moot.errors import MootError, UsageError
from moot.server.auth import Operator, Reader, Router
from moot.server.models import In, Out
from moot.server.problems import Problem
from moot.server.routes.settings.config import changed, is_saved, write
from moot.server.state import CurrentServer, Server
from moot.tools.builtin.web_search import EngineName, SearchResult, WebSearch, WebSearchSettings, check_complete, search
from moot.types.canonical import Json

SECTION = f"tools.{WebSearch.name}"

QUERY = "weather"
"""The query of a test."""


class SearchEngineOut(Out):
    """The search engine of the tool `web_search`."""

    provider: Literal["", EngineName]
    """Empty if none is configured."""
    base_url: str
    """Address of your own server, or a custom URL. Empty = the provider's own address, and for other users."""
    key: str
    """Source of the API key: a file and line, or an environment variable. Empty if there is no key, and for other users."""
    is_available: bool
    """True if the configuration is complete, so that agents can search."""
    is_saved: bool
    """True if the configuration file has these settings."""


class SearchEngineIn(In):
    """A search engine with its key and address."""

    provider: EngineName
    api_key: Annotated[str, Field(pattern=r"^[\x21-\x7e]*$", max_length=4000)] = ""
    """Empty = the current key, if provider and address don't change."""
    base_url: Annotated[str, Field(pattern=r"^(https?://\S+)?$", max_length=2000)] = ""
    """For `custom`, a URL that contains `{query}`. Empty = the provider's own address, if it has one."""


class SearchResultOut(Out, of=SearchResult, fields="title url snippet"):
    """A web page that a search found."""


class SearchTestOut(Out):
    """The results of a test."""

    query: str
    results: list[SearchResultOut]


router = Router(prefix="/api/web-search", tags=["agents and tools"])


@router.get("")
async def get_search_engine(server: CurrentServer, caller: Reader) -> SearchEngineOut:
    """Get the search engine of the tool `web_search`."""
    settings = _current(server)
    return SearchEngineOut(
        provider=settings.provider,
        base_url=settings.base_url if caller.is_home_owner else "",
        key=_place(server, "api_key") if caller.is_home_owner and settings.api_key else "",
        is_available=is_available(server),
        is_saved=is_saved(server, SECTION),
    )


@router.put("")
async def set_search_engine(server: CurrentServer, _: Operator, body: SearchEngineIn) -> SearchTestOut:
    """Test a search engine with a search for one word, then save it in the configuration file, which only its owner can read.

    Nothing is saved if the search fails or finds nothing. The stored key is never sent to another provider or address.
    """
    current = _current(server)
    is_same = body.provider == current.provider and body.base_url.rstrip("/") == current.base_url.rstrip("/")
    key = body.api_key or (current.api_key if is_same else "")
    entered = WebSearchSettings(provider=body.provider, api_key=key, base_url=current.base_url if is_same else body.base_url)
    check_complete(entered)
    # unchanged values stay as they are in the file, where they may contain variables
    values = {name: value for name, value in entered.model_dump().items() if value != getattr(current, name)}
    for name in values:
        _check_place(server, name)
    results = await _tested(entered)
    if values:
        escaped: dict[str, Json] = {f"{SECTION}.{name}": str(value).replace("${", "$${") for name, value in values.items()}
        await write(server, escaped)
    return SearchTestOut(query=QUERY, results=[SearchResultOut.of(result) for result in results])


@router.delete("", status_code=204)
async def remove_search_engine(server: CurrentServer, _: Operator) -> None:
    """Remove the search engine with its key and address from the configuration file."""
    await to_thread.run_sync(partial(remove_value, server.engine.settings.home / FILE, SECTION, os.environ))
    await changed(server)


def is_available(server: Server) -> bool:
    """Return True if the tool `web_search` can be offered to agents."""
    return WebSearch().available(server.engine.runtime.settings.tools.get(WebSearch.name, {}))


def _current(server: Server) -> WebSearchSettings:
    return WebSearchSettings.of(WebSearch.name, server.engine.runtime.settings.tools.get(WebSearch.name, {}))


def _place(server: Server, name: str) -> str:
    return server.configuration.loaded.origin.get(f"{SECTION}.{name}", "")


def _check_place(server: Server, name: str) -> None:
    """Raise UsageError if a value is set in a place that takes precedence over the configuration file."""
    place = _place(server, name)
    if place and not place.startswith(("default", f"user {server.engine.settings.home / FILE}")):
        raise UsageError(f"{SECTION}.{name} can't be changed here, because it is set by: {place}", fix="Change it there.")


async def _tested(settings: WebSearchSettings) -> list[SearchResult]:
    """Return the results of a search. Raise Problem if it fails or finds nothing."""
    try:
        results = await search(settings, QUERY, 3)
    except MootError as error:
        raise Problem(422, error.message, fix=error.fix, code="search_failed") from error
    if not results:
        raise Problem(422, f"The search engine found nothing for {QUERY!r}.", fix="Check the address.", code="search_failed")
    return results
