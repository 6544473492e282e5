"""Pages of hits, newest or best first, out of one snapshot; needs nothing but a connection."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, LiteralString

from moot.errors import UsageError
from moot.store.connect import Connection
from moot.store.searching.expression import expression
from moot.store.searching.query import COLUMNS, Column, Condition, Query
from moot.store.searching.snippets import Marker
from moot.store.searching.vocabulary import Parts
from moot.store.words import apart, phrase
from moot.types.canonical import dumps
from moot.types.search import Hit, SearchPage

__all__ = ["Asked", "Scope", "find", "hits_of", "scope_of", "tally", "whose"]

RANKED = 10_000
"""Matches that are ranked, the newest ones."""
ENOUGH = 50
"""With so many matches of whole words nobody looks inside of longer ones."""
_SOME = 64
"""Words of which some are looked for where nothing has all."""
_IN: LiteralString = " AND c.project_id IN (SELECT value FROM json_each(?))"
_NOT_IN: LiteralString = " AND c.project_id NOT IN (SELECT value FROM json_each(?))"
_CURSOR = re.compile(r"([wp])(?:([0-9a-f]{1,16})|b([0-9a-f]{1,16})\.([0-9]{1,6}))", re.ASCII)
_END = (1 << 63) - 1
_TIE_BITS = 20
_BM25: LiteralString = "bm25(search_words, 1.0, 0.5, 0.5, 0.0, 0.0, 0.0)"
_WHERE: LiteralString = " FROM search_words WHERE search_words MATCH ? AND rowid > ? AND rowid < ?"
_TEXTS: dict[Column, LiteralString] = {"text": "t.text", "tools": "t.tools", "reasoning": "t.reasoning"}
_HIT: LiteralString = "SELECT s.no, c.id, m.id, c.title, m.role, s.at, m.first_seq"
_HITS: LiteralString = (
    " FROM json_each(?) AS e CROSS JOIN search AS s ON s.no = e.value JOIN search_text AS t ON t.no = s.no"
    " JOIN conversation AS c ON c.no = s.conversation JOIN message AS m ON m.no = s.message"
    " WHERE c.deleted_at IS NULL AND m.deleted_at IS NULL"
)
_TOLD_ONCE: LiteralString = (
    " AND (c.forked_from_id IS NULL OR NOT EXISTS (SELECT 1 FROM message AS o JOIN conversation AS oc ON oc.no = o.conversation"
    " WHERE o.id = json_extract(CAST(m.metadata AS TEXT), '$.source.message') AND o.deleted_at IS NULL AND oc.deleted_at IS NULL))"
)
"""Without the copies of messages that are found where they were said."""
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM search_words WHERE search_words MATCH ? LIMIT ?)"
_TALLY = (
    "SELECT (SELECT value FROM tally WHERE name = 'indexed'), (SELECT value FROM tally WHERE name = 'messages')"
    " - (SELECT count(*) FROM run WHERE status IN ('queued', 'running', 'waiting', 'interrupted'))"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is wanted of the hits."""

    limit: int = 50
    cursor: str | None = None
    conversation: str | None = None
    """The only one to look in."""
    but_not: str | None = None
    """The one to leave out."""
    best: bool = False
    owner: str | None = None
    """None = anybody's."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a page begins."""

    parts: bool | None = None
    """Whether words are looked for in longer ones too; None = not decided yet."""
    before: int = _END
    offset: int = 0
    """Of a ranking of what was there before `before`."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One query against one snapshot."""

    connection: Connection
    query: Query
    asked: Asked
    match: str
    between: tuple[int, int]
    checks: LiteralString
    values: tuple[object, ...]
    whole: bool = True
    """Whether pieces of words don't count."""

    @property
    def ranked(self) -> bool:
        return self.asked.best and bool(self.query.terms)


@dataclass(frozen=True, slots=True)
class _Matches:
    """What fits a query."""

    places: list[int]
    """In the order of the answer: of a ranking from its top, else from where the page begins."""
    count: int
    """How many were looked at: of a ranking all that are ranked."""
    newest: int = 0
    """The place of the newest that is ranked."""


def find(connection: Connection, query: Query, asked: Asked) -> SearchPage:
    """A page, without what is deleted. Raises UsageError for a wrong cursor or an unknown project."""
    place = _placed(asked)
    asked = whose(connection, asked)
    done, total = tally(connection, asked.owner)
    if not query:
        return SearchPage((), done, total)
    parts = Parts(connection)
    search = scope_of(connection, query, asked, place.before)
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


def whose(connection: Connection, asked: Asked) -> Asked:
    """Without the owner where everything is theirs: asking each message would only take time."""
    if asked.owner is not None and connection.execute("SELECT id FROM user LIMIT 2").fetchall() == [(asked.owner,)]:
        return replace(asked, owner=None)
    return asked


def hits_of(scope: Scope, places: Sequence[int]) -> tuple[Hit, ...]:
    """What is shown of each, in their order, without what is deleted."""
    return _hits(scope, _rows(scope, places))


def tally(connection: Connection, owner: str | None = None) -> tuple[int, int]:
    """How many messages are indexed, and how many could be: those of runs that have not ended can't."""
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


def _placed(asked: Asked) -> _Place:
    if asked.cursor is None:
        return _Place()
    match = _CURSOR.fullmatch(asked.cursor)
    if match is None or (match[3] is not None) is not asked.best:
        raise UsageError(f"{asked.cursor!r} is no cursor of this search", fix="take it from the page before, unchanged")
    if match[3] is None:
        return _Place(match[1] == "p", int(match[2], 16))
    return _Place(match[1] == "p", int(match[3], 16), int(match[4]))


def scope_of(connection: Connection, query: Query, asked: Asked, before: int = _END) -> Scope:
    """Where to look. Raises UsageError for an unknown project."""
    after = _first(query.after) - 1
    before = before if query.before is None else min(before, _first(query.before))
    checks, values = _checks(connection, query, asked.owner)
    match = _match(connection, query, asked, [[phrase(term)] for term in query.terms])
    return Scope(connection, query, asked, match, (after, before), checks, values)


def _first(ms: int) -> int:
    """The first place of the second that begins there or next."""
    return min(-(-ms // 1000) << _TIE_BITS, _END)


def _match(connection: Connection, query: Query, asked: Asked, terms: Sequence[Sequence[str]]) -> str:
    inside, outside = (None if id is None else _number(connection, id, asked.owner) for id in (asked.conversation, asked.but_not))
    return expression(query, terms, owner=asked.owner, conversation=inside, but_not=outside)


def _number(connection: Connection, conversation: str, owner: str | None) -> int:
    """0 = there is none, and so nothing in it."""
    row = connection.execute(
        "SELECT no FROM conversation WHERE id = ?1 AND (?2 IS NULL OR owner_id = ?2)", (conversation, owner)
    ).fetchone()
    return 0 if row is None else row[0]


def _checks(connection: Connection, query: Query, owner: str | None) -> tuple[LiteralString, tuple[object, ...]]:
    """What FTS5 can't know of a place: conversations move between projects, and costs are exact."""
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
                f"there is no project {value!r}; known: {names}", fix=f'to search for the text, put it in quotes: "project:{value}"'
            )
        found += ids
    return found


def _matches(search: Scope, place: _Place) -> _Matches:
    """Enough for a page, and to tell whether there are enough."""
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


def _shown_of(text: LiteralString, tools: LiteralString, reasoning: LiteralString, *, copies: bool) -> LiteralString:
    once: LiteralString = "" if copies else _TOLD_ONCE
    return f"{_HIT}, {text}, {tools}, {reasoning}{_HITS}{once} ORDER BY e.id"


def _newest(search: Scope, wanted: int, before: int) -> list[int]:
    rows = search.connection.execute(
        _newest_of(search.checks),
        (search.match, search.between[0], min(before, search.between[1]), *search.values, wanted),
    )
    return [row[0] for row in rows]


def _ranking(search: Scope, wanted: int) -> _Matches:
    """The best of what is ranked, the newest of equals first."""
    rows = search.connection.execute(
        _best_of(search.checks),
        (search.match, *search.between, *search.values, RANKED, wanted),
    ).fetchall()
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
    """The ranking is made anew for each page, of what was there at the first one."""
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


def _loosely(search: Scope) -> SearchPage:
    """What has some of the words and all that is between quotes, the best first."""
    quoted = [term for term in search.query.terms if term in search.query.quoted]
    words = list(dict.fromkeys(word for term in search.query.terms if term not in search.query.quoted for word in apart(term)))[:_SOME]
    if not words or len(words) + len(quoted) < 2:
        return SearchPage((), 0, 0)
    words = _telling(search, words)
    query, asked = replace(search.query, terms=(*quoted, *words)), replace(search.asked, best=True)
    phrases = [phrase(term) for term in query.terms]
    match = _match(search.connection, query, asked, [*([each] for each in phrases[: len(quoted)]), phrases])
    search = replace(search, query=query, asked=asked, match=match, whole=True)
    page = _best(search, _Place(), _ranking(search, asked.limit))
    return replace(page, next_cursor=None, loose=bool(page.hits))


def _telling(search: Scope, words: Sequence[str]) -> list[str]:
    """The rarest, as many as all their matches can be ranked: the commonest tell little, and would fill the ranking with what is new."""
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
    """What there is to be shown of each, in their order, without what is deleted or said elsewhere."""
    if not places:
        return []
    texts: list[LiteralString] = [_TEXTS[column] if column in search.query.columns else "''" for column in COLUMNS]
    # where a search looks into a part of what there is, the original may lie outside of it
    copies = search.asked.conversation is not None or any(condition.operator == "project" for condition in search.query.conditions)
    return search.connection.execute(_shown_of(*texts, copies=copies), (dumps(places).decode(),)).fetchall()


def _hits(search: Scope, rows: Sequence[Any]) -> tuple[Hit, ...]:
    return tuple(map(_hit_of(search.query, whole=search.whole), rows))


def _hit_of(query: Query, *, whole: bool) -> Callable[[Any], Hit]:
    marker = Marker(query.terms, whole=whole)

    def hit(row: Any) -> Hit:
        _, conversation, message, title, role, at, seq, *texts = row
        best = marker.best(texts)
        return Hit(conversation, message, title, role, at, marker.snippet(texts[best]), COLUMNS[best], seq)

    return hit
