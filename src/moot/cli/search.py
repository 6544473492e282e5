"""`moot search`."""

from __future__ import annotations

import shlex
import shutil
import textwrap
import time
from typing import Annotated

from moot.cli.arguments.parameters import AsJson, Cursor, Limit, Parameter, Plain
from moot.cli.configured import configured, here
from moot.cli.lines import Lines
from moot.cli.numbers import keep_numbers
from moot.cli.times import moment
from moot.config.settings import Settings
from moot.convert.found import found_json
from moot.errors import UsageError
from moot.plugins.registry import attribute
from moot.store.glance import glance
from moot.store.searching.finding import Asked, find
from moot.store.searching.query import parse
from moot.types.search import Hit, SearchPage

_PEOPLE = {"user": "you", "assistant": "agent"}
_PLACES = {"text": "", "tools": " · in a tool call", "reasoning": " · in its reasoning"}
_INDENT = "    "
_READING = 5.0
"""Seconds for what was not read yet, unless the person says otherwise."""
_ID = 18
"""Characters of an id of ours that name it: its time and its place in it."""


def search(
    *query: Annotated[
        str, Parameter(help='Words, "phrases", -not, and role: agent: model: project: in: has: after: before: cost: status:')
    ],
    best: Annotated[bool, Parameter(name="--best", help="The best first; else the newest.")] = False,
    meaning: Annotated[bool, Parameter(help="What was that about …: by what was meant, not by words; the nearest first.")] = False,
    wait: Annotated[float | None, Parameter(help="Seconds that --meaning may first read what was not read yet.  [default: 5]")] = None,
    conversation: Annotated[str | None, Parameter(name=("--conversation", "-c"), kind="conversation", help="Only in this one.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    json: AsJson = False,
    output: Annotated[Lines, Plain],
) -> None:
    """Find messages in all conversations, newest first."""
    words = " ".join(query)
    if not words.strip():
        raise UsageError("there is nothing to search for: the query is empty", fix="Give a word or several.")
    settings = configured(output).settings
    if meaning and (best or cursor):
        raise UsageError("--meaning puts the nearest first, on one page", fix="Leave --best and --cursor out; --limit gives more.")
    asked = Asked(limit, cursor, conversation, best=best)
    if wait is not None and not meaning:
        raise UsageError("--wait is for --meaning", fix="Leave it out: words are indexed in two seconds at most.")
    page = meant(settings, words, asked, _READING if wait is None else wait, output) if meaning else searched(settings, words, asked)
    if json:
        output.json(found_json(page))
        return
    _print(page, settings, output)
    if not page.hits:
        output.say("moot: nothing found" + ("" if meaning or "in:" in words else "; reasoning is searched with in:reasoning"))
    if page.done < page.total:
        far = page.done * 100 // page.total
        read = f"{far} % of the answers were read so far; --wait 600 reads on for ten minutes, moot serve does by itself"
        output.say(f"moot: {read if meaning else f'indexed {far} % so far; search again for the rest'}", "yellow")


def searched(settings: Settings, query: str, asked: Asked) -> SearchPage:
    """A page of hits; in `asked` the conversation is what a person calls it. Raises UsageError, NotFound, StoreError."""
    parsed = parse(query, now=int(time.time() * 1000))
    if asked.conversation is None:
        with glance(settings.database) as connection:
            if connection is not None:
                page = find(connection, parsed, asked)
                if page.done >= page.total:
                    return page
    # no database yet, one of an older moot, an index to complete, or a conversation to be found by what it is called
    found: SearchPage = attribute("moot.cli.seeking:searched")(settings, query, asked, str(here()))
    return found


def meant(settings: Settings, query: str, asked: Asked, wait: float, output: Lines) -> SearchPage:
    """The nearest answers. Raises as `searched`, and UsageError saying what to install or fetch first."""
    found: SearchPage = attribute("moot.cli.seeking:meant")(settings, query, asked, str(here()), wait, output)
    return found


def _print(page: SearchPage, settings: Settings, output: Lines) -> None:
    if page.loose:
        output.say("moot: nothing has all of these words; what has some of them, the best first", "yellow")
    width = max(40, shutil.get_terminal_size().columns) if output.stdout_terminal else 0
    for number, hit in enumerate(page.hits, 1):
        _print_hit(number, hit, width, output)
    if page.hits:
        keep_numbers(settings.home / "state", [hit.conversation for hit in page.hits])
    if page.ranked is not None:
        output.say(f"moot: ranked among the newest {page.ranked:,} matches; older ones with before:", "dim")
    if page.cut:
        output.say("moot: that piece is in very many words; only the most common of them were looked for", "dim")
    if page.next_cursor:
        output.say(f"moot: more with --cursor {page.next_cursor}", "dim")


def _print_hit(number: int, hit: Hit, width: int, output: Lines) -> None:
    who = _PEOPLE.get(hit.role, hit.role)
    about = output.styled(f"  {who} · {moment(hit.at)}{_PLACES[hit.column]}", "dim")
    title = " ".join(output.fit(hit.title or "untitled").split())
    if width:
        title = textwrap.shorten(title, max(20, width - 48), placeholder=" …")
    output.data(f"{number:>2}  {output.styled(title, 'bold')}{about}\n")
    output.data(f"{_snippet(hit, width, output)}\n")
    output.data(f"{_INDENT}{output.styled(output.fit(_command(hit)), 'dim')}\n\n")


def _snippet(hit: Hit, width: int, output: Lines) -> str:
    """The snippet with its matches marked where there is colour, as wide as the screen."""
    pieces = [" ".join(output.fit(piece).split("\n")) for piece in hit.snippet.replace("\x03", "\x02").split("\x02")]
    lines = textwrap.wrap("\x02".join(pieces), width - len(_INDENT) - 1) if width else ["\x02".join(pieces)]
    shown: list[str] = []
    inside = False
    for line in lines:
        marked = ""
        for at, piece in enumerate(line.split("\x02")):
            inside = inside is not bool(at)
            marked += output.styled(output.styled(piece, "bold"), "red") if inside and piece else piece
        shown.append(_INDENT + marked)
    return "\n".join(shown)


def _command(hit: Hit) -> str:
    """What opens it."""
    return f"moot chat show {_short(hit.conversation)} --at {_short(hit.message)}"


def _short(id: str) -> str:
    return id[:_ID] if len(id) == 36 else shlex.quote(id)
