"""Pages of hits with their snippets, newest or best first, from one snapshot."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, LiteralString

from moot.errors import UsageError
from moot.plugins.registry import attribute
from moot.store.database.connection import Connection
from moot.store.log.events import Events
from moot.store.rows import MESSAGE, message_of
from moot.store.search.documents import texts_of
from moot.store.search.excerpts import Marker
from moot.store.search.query import COLUMNS, CONTEXT, Condition, Query, expression
from moot.store.search.text import apart, phrase, quoted
from moot.store.search.vocabulary import Parts
from moot.types.canonical import dumps
from moot.types.message import Message
from moot.types.search import Hit, SearchPage

RANKED = 10_000
"""Maximum number of matches that are ranked. If there are more, the newest are ranked."""
ENOUGH = 50
"""Number of whole-word matches from which partial words are not searched."""
_SOME = 64  # maximum number of words in a search for some of the words
_IN: LiteralString = " AND c.project_id IN (SELECT value FROM json_each(?))"
_NOT_IN: LiteralString = " AND c.project_id NOT IN (SELECT value FROM json_each(?))"
_CURSOR = re.compile(r"([wp])(?:([0-9a-f]{1,16})|b([0-9a-f]{1,16})\.([0-9]{1,6}))", re.ASCII)
_REGEXES = "moot.store.search.regexes"
"""Loaded by path, because most queries have no regular expression."""
_SCAN_SECONDS = 2.0
"""Seconds after which a search with a regular expression stops and returns its matches."""
_AT_ONCE = 256
_END = (1 << 63) - 1
_EVENTS = Events()
"""The reader of messages whose parts must be rebuilt from the log."""
_TIE_BITS = 20
_BM25: LiteralString = "bm25(search_words, 1.0, 0.5, 0.5, 0.0, 0.0, 0.0)"
_WHERE: LiteralString = " FROM search_words WHERE search_words MATCH ? AND rowid > ? AND rowid < ?"
_HIT: LiteralString = f"SELECT s.no, c.title, s.at, {MESSAGE}"
_HIT_TABLES: LiteralString = (
    " FROM json_each(?) AS e CROSS JOIN search AS s ON s.no = e.value"
    " JOIN conversation AS c ON c.no = s.conversation JOIN message AS m ON m.no = s.message"
    " WHERE c.deleted_at IS NULL AND c.expires_at IS NULL AND m.deleted_at IS NULL"
)
_ORIGINAL: LiteralString = (
    "SELECT 1 FROM import_identity AS i JOIN import_identity AS o ON o.identity = i.identity AND o.is_copy = 0"
    " JOIN message AS om ON om.no = o.message JOIN conversation AS oc ON oc.no = om.conversation"
    " WHERE i.message = m.no AND om.deleted_at IS NULL AND oc.deleted_at IS NULL AND oc.expires_at IS NULL"
)
_NO_COPIES: LiteralString = (
    f" AND (NOT EXISTS ({_ORIGINAL} AND i.is_copy = 1) OR EXISTS (SELECT 1 FROM import_identity WHERE message = m.no AND is_copy = 0))"
    " AND (c.forked_from_id IS NULL OR NOT EXISTS (SELECT 1 FROM message AS o JOIN conversation AS oc ON oc.no = o.conversation"
    " WHERE o.id = iif(json_valid(CAST(m.metadata AS TEXT)), CAST(m.metadata AS TEXT) ->> '$.source.message', NULL)"
    " AND o.deleted_at IS NULL AND oc.deleted_at IS NULL AND oc.expires_at IS NULL))"
)
"""Excludes messages that were copied by a fork, here or in the program they were imported from, if the original still exists."""
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM search_words WHERE search_words MATCH ? LIMIT ?)"
_TALLY = (
    "SELECT (SELECT value FROM tally WHERE name = 'indexed'), (SELECT value FROM tally WHERE name = 'messages')"
    " - (SELECT count(*) FROM run WHERE status IN ('queued', 'running', 'waiting', 'interrupted'))"
)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The parameters of a search."""

    limit: int = 50
    cursor: str | None = None
    conversation: str | None = None
    """The only conversation to search."""
    exclude: str | None = None
    """A conversation to exclude."""
    best: bool = False
    owner: str | None = None
    """None = all owners."""
    context: int = 0
    """Number of lines before and after a match to return."""
    seconds: float | None = None
    """Maximum seconds for comparing messages with a regular expression; None = the default."""


@dataclass(frozen=True, slots=True)
class _Place:
    parts: bool | None = None
    """True if partial words match; None = not yet decided."""
    before: int = _END
    offset: int = 0
    """Offset in the ranking of the messages before `before`."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A query on one snapshot."""

    connection: Connection
    query: Query
    asked: SearchOptions
    match: str
    between: tuple[int, int]
    checks: LiteralString
    values: tuple[object, ...]
    whole: bool = True
    """True if only whole words are searched."""

    @property
    def ranked(self) -> bool:
        return self.asked.best and bool(self.query.terms)


@dataclass(frozen=True, slots=True)
class _Matches:
    places: list[int]
    """Places of the matches in result order: from the top of a ranking, otherwise from the start of the page."""
    count: int
    """Number of matches examined; for a ranking, of all ranked matches."""
    newest: int = 0
    """Place of the newest ranked match."""


def find(connection: Connection, query: Query, asked: SearchOptions) -> SearchPage:
    """Return a page of hits, without deleted messages.

    Raise UsageError for an invalid cursor, an unknown project or too many context lines.
    """
    if not 0 <= asked.context <= CONTEXT:
        raise UsageError(f"`context` must be between 0 and {CONTEXT} lines.")
    if query.patterns:
        asked = replace(asked, best=False)
    place = _placed(asked)
    asked = without_owner_filter(connection, asked)
    done, total = tally(connection, asked.owner)
    if not query:
        return SearchPage((), done, total)
    parts = Parts(connection)
    search = scope_of(connection, query, asked, place.before)
    if query.patterns:
        return replace(_scanned(search), done=done, total=total)
    matches = None if place.parts else _matches(search, place)
    if place.parts is None:
        place = replace(place, parts=bool(query.terms) and matches is not None and matches.count < ENOUGH)
    if place.parts:
        terms = [parts.phrases(term) for term in query.terms]
        if matches is None or any(len(phrases) > 1 for phrases in terms):
            search = replace(search, match=_match(connection, query, asked, terms), whole=False)
            matches = None
    matches = _matches(search, place) if matches is None else matches
    page = _best(search, place, matches) if search.ranked else _by_time(search, place, matches)
    if asked.cursor is None and not page.hits:
        page = _loosely(search)
    return replace(page, done=done, total=total, cut=parts.cut)


def without_owner_filter(connection: Connection, asked: SearchOptions) -> SearchOptions:
    """Remove the owner condition if all messages belong to that owner, because checking it would only take time."""
    if asked.owner is not None and connection.execute("SELECT id FROM user LIMIT 2").fetchall() == [(asked.owner,)]:
        return replace(asked, owner=None)
    return asked


def hits_of(scope: Scope, places: Sequence[int]) -> tuple[Hit, ...]:
    """Return the hits at these places, in order, without deleted messages."""
    return _hits(scope, _rows(scope, places))


def tally(connection: Connection, owner: str | None = None) -> tuple[int, int]:
    """Return the number of indexed messages and of all indexable messages. Answers of unfinished runs are not indexable."""
    if owner is None:
        done, could = connection.execute(_TALLY).fetchone()
        return done, could
    total = connection.execute("SELECT coalesce(sum(message_count), 0) FROM conversation WHERE owner_id = ?", (owner,)).fetchone()[0]
    missing: dict[bool, int] = dict(
        connection.execute(
            "SELECT m.status IN ('finished', 'failed', 'cancelled'), count(*) FROM message AS m"
            " JOIN conversation AS c ON c.no = m.conversation"
            " WHERE m.is_indexed = 0 AND m.deleted_at IS NULL AND c.owner_id = ? GROUP BY 1",
            (owner,),
        ).fetchall()
    )
    could = max(total - missing.get(False, 0), 0)
    return max(could - missing.get(True, 0), 0), could


def _placed(asked: SearchOptions) -> _Place:
    if asked.cursor is None:
        return _Place()
    match = _CURSOR.fullmatch(asked.cursor)
    if match is None or (match[3] is not None) is not asked.best:
        raise UsageError(f"Invalid cursor {asked.cursor!r}.", fix="Use the unchanged `next_cursor` from the previous page.")
    if match[3] is None:
        return _Place(match[1] == "p", int(match[2], 16))
    return _Place(match[1] == "p", int(match[3], 16), int(match[4]))


def scope_of(connection: Connection, query: Query, asked: SearchOptions, before: int = _END) -> Scope:
    """Build the scope of a query. Raise UsageError for an unknown project."""
    after = _first(query.after) - 1
    before = before if query.before is None else min(before, _first(query.before))
    checks, values = _checks(connection, query, asked.owner)
    terms = [[phrase(term)] for term in query.terms]
    for word in (word for pattern in query.patterns for word in attribute(f"{_REGEXES}:words_of")(pattern)):
        spelled = [quoted(word.text)] if word.is_whole else Parts(connection).joined(word.text)
        terms += [spelled] if spelled else []
    match = _match(connection, query, asked, terms)
    return Scope(connection, query, asked, match, (after, before), checks, values)


def _first(ms: int) -> int:
    """Return the first index position of the first full second at or after `ms`."""
    return min(-(-ms // 1000) << _TIE_BITS, _END)


def _match(connection: Connection, query: Query, asked: SearchOptions, terms: Sequence[Sequence[str]]) -> str:
    sql = "SELECT no FROM conversation WHERE id = ?1 AND (?2 IS NULL OR owner_id = ?2)"
    rows = {id: connection.execute(sql, (id, asked.owner)).fetchone() for id in (asked.conversation, asked.exclude) if id is not None}
    numbers: dict[str | None, int] = {id: 0 if row is None else row[0] for id, row in rows.items()}  # 0 = unknown, which matches nothing
    inside, outside = numbers.get(asked.conversation), numbers.get(asked.exclude)
    return expression(query, terms, owner=asked.owner, conversation=inside, exclude=outside)


def _checks(connection: Connection, query: Query, owner: str | None) -> tuple[LiteralString, tuple[object, ...]]:
    """Return SQL for conditions that FTS5 can't check: projects, because conversations move between them, and exact costs."""
    checks: LiteralString = ""
    values: tuple[object, ...] = ()
    for condition in query.conditions:
        if condition.operator == "project":
            ids = _projects(connection, condition, owner)
            checks += _NOT_IN if condition.negated else _IN
            values = (*values, dumps(ids).decode())
    if query.cost.least is not None:
        checks += " AND s.cost >= ?"
        values = (*values, query.cost.least)
    if query.cost.most is not None:
        checks += " AND s.cost <= ?"
        values = (*values, query.cost.most)
    if not checks:
        return "", ()
    exists: LiteralString = "SELECT 1 FROM search AS s JOIN conversation AS c ON c.no = s.conversation WHERE s.no = search_words.rowid"
    return f" AND EXISTS ({exists}{checks})", values


def _projects(connection: Connection, condition: Condition, owner: str | None) -> list[str]:
    rows = connection.execute("SELECT id, name FROM project WHERE ?1 IS NULL OR owner_id = ?1 ORDER BY name", (owner,)).fetchall()
    found: list[str] = []
    for value in condition.values:
        ids = [id for id, name in rows if value in (id, name)] or [id for id, name in rows if name.lower() == value.lower()]
        if not ids:
            names = ", ".join(name for _, name in rows[:20])
            raise UsageError(
                f"Project {value!r} not found. Known projects: {names}.", fix=f'To search for the text, put it in quotes: "project:{value}"'
            )
        found += ids
    return found


def _matches(search: Scope, place: _Place) -> _Matches:
    if search.ranked:
        return _ranking(search, place.offset + search.asked.limit)
    places = _newest(search, max(ENOUGH, search.asked.limit + 1), place.before)
    return _Matches(places, len(places))


def _newest_of(checks: LiteralString) -> LiteralString:
    return f"SELECT rowid{_WHERE}{checks} ORDER BY rowid DESC LIMIT ?"


def _best_of(checks: LiteralString) -> LiteralString:
    return (
        f"WITH ranked AS MATERIALIZED (SELECT rowid AS no, {_BM25} AS score{_WHERE}{checks} ORDER BY rowid DESC LIMIT ?)"
        " SELECT no, (SELECT count(*) FROM ranked), (SELECT max(no) FROM ranked) FROM ranked ORDER BY score, no DESC LIMIT ?"
    )


def _shown_of(*, copies: bool) -> LiteralString:
    once: LiteralString = "" if copies else _NO_COPIES
    return f"{_HIT}{_HIT_TABLES}{once} ORDER BY e.id"


def _newest(search: Scope, wanted: int, before: int) -> list[int]:
    rows = search.connection.execute(
        _newest_of(search.checks), (search.match, search.between[0], min(before, search.between[1]), *search.values, wanted)
    )
    return [row[0] for row in rows]


def _ranking(search: Scope, wanted: int) -> _Matches:
    rows = search.connection.execute(_best_of(search.checks), (search.match, *search.between, *search.values, RANKED, wanted)).fetchall()
    return _Matches([row[0] for row in rows], *(rows[0][1:] if rows else (0,)))


def _by_time(search: Scope, place: _Place, matches: _Matches) -> SearchPage:
    limit, places = search.asked.limit, matches.places[: search.asked.limit + 1]
    rows = _rows(search, places)
    while len(rows) <= limit < len(places):  # some are deleted
        places = _newest(search, limit + 1, places[-1])
        rows += _rows(search, places)
    cursor = f"{_letter(place)}{rows[limit - 1][0]:x}" if len(rows) > limit else None
    return SearchPage(_hits(search, rows[:limit]), 0, 0, cursor)


def _best(search: Scope, place: _Place, matches: _Matches) -> SearchPage:
    """Build a page of a ranking. Each page repeats the ranking but leaves out messages newer than those of the first page."""
    limit, taken = search.asked.limit, place.offset
    rows: list[Any] = []
    while len(rows) < limit and taken < matches.count:
        if taken >= len(matches.places):  # some are deleted
            matches = _ranking(search, matches.count)
        some = matches.places[taken : taken + limit - len(rows)]
        rows += _rows(search, some)
        taken += len(some)
    top = matches.newest + 1 if matches.count and place.before == _END else place.before
    cursor = f"{_letter(place)}b{top:x}.{taken}" if taken < matches.count else None
    return SearchPage(_hits(search, rows), 0, 0, cursor, ranked=matches.count if matches.count == RANKED else None)


def _scanned(search: Scope) -> SearchPage:
    """Match the regular expressions against the messages that meet all other conditions, newest first, until the time limit."""
    until = time.monotonic() + (search.asked.seconds or _SCAN_SECONDS)
    patterns = _compiled(search.query)
    found: list[Any] = []
    before = search.between[1]
    while places := _newest(search, _AT_ONCE, before):
        for place in places:
            rows = _rows(search, [place])
            found += [row for row in rows if any(all(each.search(text) for each in patterns) for text in _texts(search, row)[1])]
            before = place
            if len(found) == search.asked.limit:
                return SearchPage(_hits(search, found), 0, 0, f"w{before:x}")
            if time.monotonic() > until:
                at = (before >> _TIE_BITS) * 1000
                return SearchPage(_hits(search, found), 0, 0, f"w{before:x}", stopped_at=at)
    return SearchPage(_hits(search, found), 0, 0)


def _compiled(query: Query) -> list[re.Pattern[str]]:
    return [attribute(f"{_REGEXES}:compiled")(pattern) for pattern in query.patterns]


def _texts(search: Scope, row: Any) -> tuple[Message, list[str]]:
    """Return a row's message and its columns. Columns that are not searched are empty."""
    message = _EVENTS.folded(search.connection, message_of(row[3:]), row[16])
    texts = zip(COLUMNS, texts_of(message.parts), strict=True)
    return message, [text if column in search.query.columns else "" for column, text in texts]


def _loosely(search: Scope) -> SearchPage:
    """Find messages with some of the words and every quoted phrase, best first."""
    whole = [term for term in search.query.terms if term in search.query.quoted]
    words = list(dict.fromkeys(word for term in search.query.terms if term not in search.query.quoted for word in apart(term)))[:_SOME]
    if not words or len(words) + len(whole) < 2:
        return SearchPage((), 0, 0)
    words = _distinctive(search, words)
    query, asked = replace(search.query, terms=(*whole, *words)), replace(search.asked, best=True)
    phrases = [phrase(term) for term in query.terms]
    match = _match(search.connection, query, asked, [*([each] for each in phrases[: len(whole)]), phrases])
    search = replace(search, query=query, asked=asked, match=match, whole=True)
    page = _best(search, _Place(), _ranking(search, asked.limit))
    return replace(page, next_cursor=None, loose=bool(page.hits))


def _distinctive(search: Scope, words: Sequence[str]) -> list[str]:
    """Return the rarest words, as many as can be ranked together; common words would fill the ranking with new messages."""
    columns = f"{{{' '.join(search.query.columns)}}}"
    counts = [(search.connection.execute(_COUNT, (f"{columns} : {phrase(word)}", RANKED)).fetchone()[0], word) for word in words]
    found: list[str] = []
    room = RANKED
    for count, word in sorted(counts):
        room -= count
        if found and room < 0:
            break
        found += [word] if count else []
    return found or list(words)


def _letter(place: _Place) -> str:
    return "p" if place.parts else "w"


def _rows(search: Scope, places: Sequence[int]) -> list[Any]:
    if not places:
        return []
    # if only a part of the store is searched, the original may be in another part
    copies = search.asked.conversation is not None or any(condition.operator == "project" for condition in search.query.conditions)
    return search.connection.execute(_shown_of(copies=copies), (dumps(places).decode(),)).fetchall()


def _hits(search: Scope, rows: Sequence[Any]) -> tuple[Hit, ...]:
    patterns = _compiled(search.query)
    marker = Marker(search.query.terms, whole=search.whole, patterns=patterns)
    hits: list[Hit] = []
    for row in rows:
        message, texts = _texts(search, row)
        if patterns:
            texts = [text if all(each.search(text) for each in patterns) else "" for text in texts]
        best = marker.best(texts)
        of = (message.conversation, message.id, row[1], message.role, row[2], marker.snippet(texts[best]))
        context = marker.context(texts[best], search.asked.context) if search.asked.context else ""
        hits.append(Hit(*of, COLUMNS[best], message.first_seq, context))
    return tuple(hits)
