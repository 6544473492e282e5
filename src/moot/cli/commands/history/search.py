"""The command `moot search`."""

from __future__ import annotations

import shlex
import shutil
import textwrap
import time
from pathlib import Path
from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Cursor, Limit, Parameter, Plain
from moot.cli.console.format import moment
from moot.cli.console.lines import Lines
from moot.cli.context.configuration import configured, here
from moot.cli.context.numbers import keep_numbers
from moot.cli.remote.address import remote_url
from moot.config.settings import Settings
from moot.convert.hits import found_json
from moot.errors import UsageError
from moot.plugins.registry import attribute
from moot.store.database.snapshot import open_snapshot
from moot.store.search.matches import SearchOptions, find
from moot.store.search.query import CONTEXT, parse
from moot.types.search import Hit, SearchPage

_ROLES = {"user": "you", "assistant": "agent"}
_PLACES = {"text": "", "tools": " · in a tool call", "reasoning": " · in the reasoning"}
_INDENT = "    "
_STORE = "moot.cli.commands.history.search_store"
_READING = 5.0
"""Default time limit for embedding new answers, in seconds."""
_SCANNING = 20.0
"""Time limit for comparing messages with a regular expression, in seconds."""
_ID = 18
"""Number of characters of an id to print. They contain the id's timestamp and sequence, so they are unique in practice."""


def search(
    *query: Annotated[str, Parameter(help="Search query.")],
    best: Annotated[bool, Parameter(help="Sort by relevance instead of date.")] = False,
    meaning: Annotated[bool, Parameter(help="Search answers by meaning instead of words. Requires an embedding model.")] = False,
    wait: Annotated[
        float | None,
        Parameter(
            metavar="SECONDS",
            help="With --meaning: maximum number of seconds to spend embedding new answers before the search. Defaults to 5.",
        ),
    ] = None,
    conversation: Annotated[
        str | None, Parameter(name=("--conversation", "-c"), kind="conversation", help="Search only this conversation.")
    ] = None,
    context: Annotated[int, Parameter(metavar="N", help="Print N lines before and after each match.")] = 0,
    limit: Limit = 50,
    cursor: Cursor = None,
    json: AsJson = False,
    output: Annotated[Lines, Plain],
) -> None:
    """Print matching messages, newest first."""
    words = " ".join(query)
    if not words.strip():
        raise UsageError("The query is empty.", fix="Enter at least one word.")
    settings = configured(output).settings
    if meaning and (best or cursor):
        raise UsageError("--meaning cannot be combined with --best or --cursor.", fix="Use --limit for more results.")
    if not 0 <= context <= CONTEXT:
        raise UsageError(f"--context must be between 0 and {CONTEXT}.")
    if meaning and context:
        raise UsageError("--context cannot be combined with --meaning.")
    asked = SearchOptions(limit, cursor, conversation, best=best, context=context, seconds=_SCANNING)
    if wait is not None and not meaning:
        raise UsageError("--wait requires --meaning.")
    state = settings.home / "state"
    if remote_url():
        page, state = attribute("anyio:run")(attribute(f"{_STORE}:find_on_server"), words, asked, meaning, output)
    else:
        page = _with_store("find_by_meaning", settings, words, asked, _READING if wait is None else wait, output) if meaning else None
        page = page or _find_messages(settings, words, asked)
    if json:
        output.json(found_json(page))
        return
    _print(page, state, output)
    if not page.hits and page.stopped_at is None:
        output.say("moot: no results" + ("" if meaning or "in:" in words else "; add in:reasoning to search reasoning"))
    if page.done < page.total:
        share = page.done * 100 // page.total
        embedded = f"{share} % of the answers are embedded; use --wait 600 to continue for ten minutes, or run 'moot serve'"
        output.say(f"moot: {embedded if meaning else f'{share} % is indexed; search again for complete results'}", "yellow")


def _find_messages(settings: Settings, query: str, asked: SearchOptions) -> SearchPage:
    parsed = parse(query, now=int(time.time() * 1000))
    if asked.conversation is None:
        with open_snapshot(settings.database) as connection:
            if connection is not None:
                page = find(connection, parsed, asked)
                if page.done >= page.total:
                    return page
    # there is no database yet, it has an older schema, the index is incomplete, or a conversation reference must be resolved
    return _with_store("find_messages", settings, query, asked)


def _with_store(name: str, settings: Settings, query: str, asked: SearchOptions, *more: object) -> SearchPage:
    """Run a search from the module `search_store`, which needs an event loop."""
    found: SearchPage = attribute("anyio:run")(attribute(f"{_STORE}:{name}"), settings, query, asked, str(here()), *more)
    return found


def _print(page: SearchPage, state: Path, output: Lines) -> None:
    if page.loose:
        output.say("moot: no message has all of these words; showing partial matches by relevance", "yellow")
    width = max(40, shutil.get_terminal_size().columns) if output.stdout_terminal else 0
    for number, hit in enumerate(page.hits, 1):
        _print_hit(number, hit, width, output)
    if page.hits:
        keep_numbers(state, [hit.conversation for hit in page.hits])
    if page.ranked is not None:
        output.say(f"moot: ranked the newest {page.ranked:,} matches; use before: for older ones", "dim")
    if page.cut:
        output.say("moot: this partial word matches too many words; only the most common ones were searched", "dim")
    if page.stopped_at is not None:
        output.say(f"moot: searched back to {moment(page.stopped_at)} before the time limit; the next page continues there", "yellow")
    if page.next_cursor:
        output.say(f"moot: next page: --cursor {page.next_cursor}", "dim")


def _print_hit(number: int, hit: Hit, width: int, output: Lines) -> None:
    who = _ROLES.get(hit.role, hit.role)
    about = output.styled(f"  {who} · {moment(hit.at)}{_PLACES[hit.column]}", "dim")
    title = " ".join(output.fit(hit.title or "untitled").split())
    if width:
        title = textwrap.shorten(title, max(20, width - 48), placeholder=" …")
    output.data(f"{number:>2}  {output.styled(title, 'bold')}{about}\n")
    output.data(f"{_snippet(hit, width, output)}\n")
    conversation, message = (id[:_ID] if len(id) == 36 else shlex.quote(id) for id in (hit.conversation, hit.message))
    command = f"moot chat show {conversation} --at {message}"
    output.data(f"{_INDENT}{output.styled(output.fit(command), 'dim')}\n\n")


def _fitted(text: str, output: Lines) -> str:
    """Return the text on one line, safe to print, with each match enclosed in U+0002 characters."""
    return "\x02".join(" ".join(output.fit(piece).split("\n")) for piece in text.replace("\x03", "\x02").split("\x02"))


def _snippet(hit: Hit, width: int, output: Lines) -> str:
    """Return the context of the match if there is one, otherwise the snippet, wrapped to the width. Matches are highlighted."""
    if hit.context:
        lines = [_fitted(line, output) for line in hit.context.split("\n")]
    else:
        found = _fitted(hit.snippet, output)
        lines = textwrap.wrap(found, width - len(_INDENT) - 1) if width else [found]
    shown: list[str] = []
    inside = False
    for line in lines:
        marked = ""
        for at, piece in enumerate(line.split("\x02")):
            inside = inside is not bool(at)
            marked += output.styled(output.styled(piece, "bold"), "red") if inside and piece else piece
        shown.append(_INDENT + marked)
    return "\n".join(shown)
