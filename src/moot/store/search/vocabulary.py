"""The vocabulary of all words, and finding words that contain a given part.

A trigram index of all texts would find partial words too, but would take eight times the time and four times the space of the word index.
Texts repeat the same words, so texts are indexed by words, and only the distinct words are indexed by trigrams.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from moot.store.database.connection import Queries
from moot.store.search.text import is_cjk, phrase, quoted, tokens
from moot.types.canonical import dumps

_LONGEST = 40  # maximum length of a word; longer ones are keys or encoded data
_GRAM = 3
_DIGITS = 5  # number of digits from which a word counts as an id or a number; only the beginning of those is found
_COUNTED = str.maketrans("", "", "0123456789")
_MOST = 400  # maximum number of words that replace a partial word; the most common come first
_ID_BEGINS = 4  # minimum length of the beginning of an id that is searched for
_ENDS, _BEGINNINGS = 12, 32  # maximum number of words that replace the first or the last word of a phrase
_BEGINS = "SELECT term FROM search_term WHERE term >= ? AND term < ? ORDER BY no LIMIT ?"
_HOLDS = (
    "SELECT t.term FROM search_infix AS i JOIN search_term AS t ON t.no = i.rowid"
    " WHERE i.search_infix MATCH ? AND instr(t.term, ?) > 0 ORDER BY i.rowid LIMIT ?"
)
_JOINS = (
    "SELECT t.term FROM search_infix AS i JOIN search_term AS t ON t.no = i.rowid"
    " WHERE i.search_infix MATCH ? AND instr(t.term, ?) > 0 AND t.term GLOB '*[^ -~]*' ORDER BY i.rowid LIMIT ?"
)
_ENDS_SO = (
    "SELECT t.term FROM search_infix AS i JOIN search_term AS t ON t.no = i.rowid"
    " WHERE i.search_infix MATCH ?1 AND substr(t.term, -length(?2)) = ?2 ORDER BY i.rowid LIMIT ?3"
)


def learn(queries: Queries, words: Iterable[str]) -> None:
    """Add new words to the vocabulary."""
    # sorted, so that neighbors in the vocabulary are written together
    fitting = sorted([word for word in words if 1 < len(word) <= _LONGEST and not _is_id(word) and (word.isascii() or not is_cjk(word))])
    if not fitting:
        return
    (last,) = queries.execute("SELECT coalesce(max(no), 0) FROM search_term").fetchall()[0]
    queries.execute(
        "INSERT INTO search_term (term) SELECT value FROM json_each(?) WHERE true ON CONFLICT (term) DO NOTHING", (dumps(fitting).decode(),)
    )
    queries.execute(
        "INSERT INTO search_infix (rowid, term) SELECT no, term FROM search_term WHERE no > ? AND length(term) > ?", (last, _GRAM)
    )


def _is_id(word: str) -> bool:
    """Return True for ids, hashes and numbers. They would make up most of the vocabulary, because each of them occurs only a few times."""
    return len(word) >= _DIGITS and len(word) - len(word.translate(_COUNTED)) >= _DIGITS


def unlearn(queries: Queries, words: Iterable[str]) -> None:
    """Remove words that occur in no text anymore."""
    for word in words:
        rows = queries.execute("SELECT no FROM search_term WHERE term = ?", (word,)).fetchall()
        if not rows or queries.execute("SELECT 1 FROM search_words WHERE search_words MATCH ? LIMIT 1", (quoted(word),)).fetchall():
            continue
        if len(word) > _GRAM:
            queries.execute("INSERT INTO search_infix (search_infix, rowid, term) VALUES ('delete', ?, ?)", (rows[0][0], word))
        queries.execute("DELETE FROM search_term WHERE no = ?", (rows[0][0],))


class Parts:
    """The expansion of terms to longer words that contain them."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self.cut = False
        """True if more words matched than were used."""

    def phrases(self, term: str) -> list[str]:
        """Return FTS5 phrases for the term, the term itself first."""
        words = tokens(term)
        if is_cjk(term) or not words:
            return [phrase(term)]
        left, right = term[0].isalnum(), term[-1].isalnum()
        if len(words) == 1:
            found = self._terms(words[0], left=left, right=right, most=_MOST) if len(words[0]) >= _GRAM else []
            begins = [f"{quoted(words[0])} *"] if len(words[0]) >= _ID_BEGINS and any(map(str.isdigit, words[0])) else []
            return list(dict.fromkeys([phrase(term), *begins, *map(quoted, found)]))
        firsts = [words[0], *(self._terms(words[0], left=True, right=False, most=_ENDS) if left and len(words[0]) >= _GRAM else ())]
        lasts = [words[-1], *(self._terms(words[-1], left=False, right=True, most=_BEGINNINGS) if right else ())]
        middle = words[1:-1]
        spelled = (quoted(" ".join((first, *middle, last))) for first, last in product(dict.fromkeys(firsts), dict.fromkeys(lasts)))
        return list(dict.fromkeys([phrase(term), *spelled]))

    def joined(self, word: str) -> list[str]:
        """Return FTS5 phrases for an ASCII word and for the longer words in which non-ASCII letters are joined to it.

        The result is empty if some of these words may be unknown: the vocabulary lacks numbers, ids and long words.
        """
        if len(word) >= _LONGEST or _is_id(word):
            return []
        rows = self._queries.execute(_JOINS, (_grams(word), word, _MOST + 1)).fetchall()
        return [] if len(rows) > _MOST else [quoted(word), *(quoted(row[0]) for row in rows)]

    def _terms(self, piece: str, *, left: bool, right: bool, most: int) -> list[str]:
        """Return the most common words that contain the piece. `left` allows text before it, `right` text after it."""
        if not left:
            end = f"{piece}{chr(0x10FFFF)}" if right else f"{piece}\0"
            rows = self._queries.execute(_BEGINS, (piece, end, most + 1)).fetchall()
        else:
            rows = self._queries.execute(_HOLDS if right else _ENDS_SO, (_grams(piece), piece, most + 1)).fetchall()
        self.cut = self.cut or len(rows) > most
        return [row[0] for row in rows[:most]]


def _grams(piece: str) -> str:
    """Return an FTS5 expression for the first, the middle and the last trigram of a piece of at least three characters."""
    last = len(piece) - _GRAM
    return " AND ".join(dict.fromkeys(quoted(piece[start : start + _GRAM]) for start in (0, last // 2, last)))
