"""Pages of hits with their snippets, newest or best first, from one snapshot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, LiteralString

from moot.errors import UsageError
from moot.store.database.connection import Connection
from moot.store.log.events import Events
from moot.store.rows import MESSAGE, message_of
from moot.store.search.documents import texts_of
from moot.store.search.query import COLUMNS, Condition, Query, expression
from moot.store.search.text import apart, folded, is_cjk, phrase, tokens
from moot.store.search.vocabulary import Parts
from moot.types.canonical import dumps
from moot.types.search import Hit, SearchPage

_BEFORE, _AFTER = 80, 160
_LOOKED_AT, _NEAR = 200, 12  # number of matches in a text, and of following matches for each, that are considered for the best excerpt


class Marker:
    """A finder of terms in texts by the rules of the index: accents, and punctuation between the words of a phrase, are ignored."""

    def __init__(self, terms: Sequence[str], *, whole: bool = False) -> None:
        # one pattern per term: a pattern that starts with a letter is many times faster than an alternation
        self._each = [re.compile(_pattern(term, whole=whole)) for term in terms]
        self._lowered: list[tuple[str, str]] = []
        """The texts that were compared last, with their lower case."""

    def best(self, texts: Sequence[str]) -> int:
        """Return the index of the text that contains the most terms. If several do, return the first nonempty one."""
        filled = [place for place, text in enumerate(texts) if text]
        if len(filled) < 2:
            return filled[0] if filled else 0
        self._lowered = [(text, text.lower()) for text in texts]
        counts = [self._count(lowered) for _, lowered in self._lowered]
        if max(counts) < len(self._each):  # only then remove accents, which takes long for a large text
            counts = [self._count(self._plain(text)) for text in texts]
        return counts.index(max(counts))

    def _count(self, plain: str) -> int:
        return sum(1 for term in self._each if term.search(plain)) if plain else -1

    def snippet(self, text: str) -> str:
        """Return an excerpt on one line around the densest matches, which are enclosed in U+0002 and U+0003."""
        plain = self._plain(text)
        start = self._densest(plain)
        begin, end = max(start - _BEFORE, 0), min(start + _AFTER, len(text))
        if not text.isascii():
            plain = f"{plain[:begin]}{folded(text[begin:end])}{plain[end:]}"
        pieces: list[str] = []
        at = begin
        for first, last in _joined([match.span() for term in self._each for match in term.finditer(plain, begin, end)]):
            pieces += (text[at:first], "\x02", text[first:last], "\x03")
            at = last
        pieces.append(text[at:end])
        shown = " ".join("".join(pieces).split())
        return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"

    def _plain(self, text: str) -> str:
        """Return the text in lower case, and without accents if needed to find a term; removing accents takes ten times as long."""
        lowered = next((lowered for known, lowered in self._lowered if known is text), None) or text.lower()
        if text.isascii() or (len(lowered) == len(text) and all(term.search(lowered) for term in self._each)):
            return lowered
        return folded(text)

    def _densest(self, plain: str) -> int:
        if len(self._each) == 1:
            first = self._each[0].search(plain)
            return first.start() if first else 0
        found = [(match.start(), term) for term, each in enumerate(self._each) for match in islice(each.finditer(plain), _LOOKED_AT)]
        found.sort()
        best, most = 0, 0
        for at, (start, _) in enumerate(found):
            count = len({term for place, term in found[at : at + _NEAR] if place < start + _AFTER})
            if count > most:
                best, most = start, count
            if most == len(self._each):  # no excerpt can contain more terms
                break
        return best


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    spans.sort()
    for first, last in spans:
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        elif first < last:
            joined.append((first, last))
    return joined


def _pattern(term: str, *, whole: bool) -> str:
    """Return a pattern for the term in a folded text; with `whole`, it does not match inside longer words."""
    plain = folded(term)
    if is_cjk(plain):
        return r"\s*".join(map(re.escape, plain.split()))
    words = tokens(plain)
    if not words:
        return re.escape(plain)
    first, rest = re.escape(words[0]), "".join(rf"[\W_]{{1,40}}{re.escape(word)}" for word in words[1:])
    # the lookbehind follows the first word, which can then be searched for quickly
    return rf"{first}(?<![^\W_]{first}){rest}(?![^\W_])" if whole else first + rest


RANKED = 10_000
"""Maximum number of matches that are ranked. If there are more, the newest are ranked."""
ENOUGH = 50
"""Number of whole-word matches at which partial words are no longer searched."""
_SOME = 64  # maximum number of words in a search for some of the words
_IN: LiteralString = " AND c.project_id IN (SELECT value FROM json_each(?))"
_NOT_IN: LiteralString = " AND c.project_id NOT IN (SELECT value FROM json_each(?))"
_CURSOR = re.compile(r"([wp])(?:([0-9a-f]{1,16})|b([0-9a-f]{1,16})\.([0-9]{1,6}))", re.ASCII)
_END = (1 << 63) - 1
_EVENTS = Events()
"""Reads messages whose parts must be rebuilt from the log."""
_TIE_BITS = 20
_BM25: LiteralString = "bm25(search_words, 1.0, 0.5, 0.5, 0.0, 0.0, 0.0)"
_WHERE: LiteralString = " FROM search_words WHERE search_words MATCH ? AND rowid > ? AND rowid < ?"
_HIT: LiteralString = f"SELECT s.no, c.title, s.at, {MESSAGE}"
_HIT_TABLES: LiteralString = (
    " FROM json_each(?) AS e CROSS JOIN search AS s ON s.no = e.value"
    " JOIN conversation AS c ON c.no = s.conversation JOIN message AS m ON m.no = s.message"
    " WHERE c.deleted_at IS NULL AND m.deleted_at IS NULL"
)
_ORIGINAL: LiteralString = (
    "SELECT 1 FROM import_identity AS i JOIN import_identity AS o ON o.identity = i.identity AND o.is_copy = 0"
    " JOIN message AS om ON om.no = o.message JOIN conversation AS oc ON oc.no = om.conversation"
    " WHERE i.message = m.no AND om.deleted_at IS NULL AND oc.deleted_at IS NULL"
)
_NO_COPIES: LiteralString = (
    f" AND (NOT EXISTS ({_ORIGINAL} AND i.is_copy = 1) OR EXISTS (SELECT 1 FROM import_identity WHERE message = m.no AND is_copy = 0))"
    " AND (c.forked_from_id IS NULL OR NOT EXISTS (SELECT 1 FROM message AS o JOIN conversation AS oc ON oc.no = o.conversation"
    " WHERE o.id = json_extract(CAST(m.metadata AS TEXT), '$.source.message') AND o.deleted_at IS NULL AND oc.deleted_at IS NULL))"
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


@dataclass(frozen=True, slots=True)
class _Place:
    parts: bool | None = None
    """True if partial words match; None = not decided yet."""
    before: int = _END
    offset: int = 0
    """Offset in a ranking of the messages before `before`."""


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
    """True if only whole words match."""

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
    """Return a page of hits, without deleted messages. Raise UsageError for an invalid cursor or an unknown project."""
    place = _placed(asked)
    asked = without_owner_filter(connection, asked)
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


def without_owner_filter(connection: Connection, asked: SearchOptions) -> SearchOptions:
    """Remove the owner condition if all messages belong to that owner, because the check would only take time."""
    if asked.owner is not None and connection.execute("SELECT id FROM user LIMIT 2").fetchall() == [(asked.owner,)]:
        return replace(asked, owner=None)
    return asked


def hits_of(scope: Scope, places: Sequence[int]) -> tuple[Hit, ...]:
    """Return the hits at these places, in order, without deleted messages."""
    return _hits(scope, _rows(scope, places))


def tally(connection: Connection, owner: str | None = None) -> tuple[int, int]:
    """Return the number of indexed messages, and of all messages that can be indexed. Answers of unfinished runs can't."""
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
        raise UsageError(f"Invalid cursor {asked.cursor!r}.", fix="Use next_cursor of the previous page unchanged.")
    if match[3] is None:
        return _Place(match[1] == "p", int(match[2], 16))
    return _Place(match[1] == "p", int(match[3], 16), int(match[4]))


def scope_of(connection: Connection, query: Query, asked: SearchOptions, before: int = _END) -> Scope:
    """Build the scope of a query. Raise UsageError for an unknown project."""
    after = _first(query.after) - 1
    before = before if query.before is None else min(before, _first(query.before))
    checks, values = _checks(connection, query, asked.owner)
    match = _match(connection, query, asked, [[phrase(term)] for term in query.terms])
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
    """Build a page of a ranking. Each page repeats the ranking, without messages that are newer than those of the first page."""
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
    """Find messages with some of the words and every quoted phrase, best first."""
    quoted = [term for term in search.query.terms if term in search.query.quoted]
    words = list(dict.fromkeys(word for term in search.query.terms if term not in search.query.quoted for word in apart(term)))[:_SOME]
    if not words or len(words) + len(quoted) < 2:
        return SearchPage((), 0, 0)
    words = _distinctive(search, words)
    query, asked = replace(search.query, terms=(*quoted, *words)), replace(search.asked, best=True)
    phrases = [phrase(term) for term in query.terms]
    match = _match(search.connection, query, asked, [*([each] for each in phrases[: len(quoted)]), phrases])
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
    marker = Marker(search.query.terms, whole=search.whole)
    hits: list[Hit] = []
    for _, title, at, *row in rows:
        message = _EVENTS.folded(search.connection, message_of(row), row[13])
        texts = [text if column in search.query.columns else "" for column, text in zip(COLUMNS, texts_of(message.parts), strict=True)]
        best = marker.best(texts)
        snippet = marker.snippet(texts[best])
        hits.append(Hit(message.conversation, message.id, title, message.role, at, snippet, COLUMNS[best], message.first_seq))
    return tuple(hits)
