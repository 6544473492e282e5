"""The format `takeout`: Gemini activity in a Google Takeout export, `My Activity/Gemini Apps/MyActivity.html` or `.json`.

The export doesn't say which prompts belong to the same chat, so each prompt and its answer become a conversation. Each entry of the page
contains a prompt, a time and an answer. The words around the prompt and the format of the time depend on the account's language. If moot
doesn't know these words, it recognizes a prompt by the answer that follows it. Google doesn't document the export; this reader is based on
other programs that read it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

from moot.errors import UsageError
from moot.formats.kit.bases import ReadOnly
from moot.formats.kit.fields import milliseconds, obj, objects, text
from moot.formats.kit.files import read_head
from moot.formats.kit.json import array_items, parse_prefix, read_chunks, read_document
from moot.formats.kit.records import SessionRecord, entries_of
from moot.types.canonical import Json, JsonObject
from moot.types.format import Entry, Fidelity, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import text_part

_PRODUCT = re.compile(rb'mdl-typography--title">\s*Gemini')
_CELL = re.compile(rb'<div class="outer-cell\b')
_PROMPTED = re.compile(r"Prompted\s+")
_TIME = re.compile(r"\b\d{4}\b.*\b\d{1,2}[:.]\d{2}[:.]\d{2}\b|\b\d{1,2}[:.]\d{2}[:.]\d{2}\b.*\b\d{4}\b", re.DOTALL)
_ENGLISH = re.compile(r"([A-Z][a-z]{2})[a-z]* (\d{1,2}), (\d{4}), (\d{1,2}):(\d{2}):(\d{2}) ([AP])M (\S+)")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_OFFSET = re.compile(r"(?:GMT|UTC)([+-])(\d{1,2})(?::?(\d{2}))?")
_ZONES: dict[str, float] = {
    "UTC": 0,
    "GMT": 0,
    "WET": 0,
    "WEST": 1,
    "BST": 1,
    "CET": 1,
    "CEST": 2,
    "EET": 2,
    "EEST": 3,
    "MSK": 3,
    "IST": 5.5,
    "SGT": 8,
    "HKT": 8,
    "JST": 9,
    "KST": 9,
    "AEST": 10,
    "AEDT": 11,
    "NZST": 12,
    "NZDT": 13,
    "BRT": -3,
    "EDT": -4,
    "EST": -5,
    "CDT": -5,
    "CST": -6,
    "MDT": -6,
    "MST": -7,
    "PDT": -7,
    "PST": -8,
    "AKDT": -8,
    "AKST": -9,
    "HST": -10,
}
"""Time zone → its offset from UTC in hours."""


@dataclass(frozen=True, slots=True)
class _Activity:
    """One entry of the activity."""

    raw: bytes
    said: str
    """The label of the entry, which contains the prompt."""
    when: str
    """The time, as written in the entry."""
    at: int
    answer: str
    is_exact: bool = True
    """False if the time zone of `at` is unknown."""
    body: Json = None


class Takeout(ReadOnly):
    name = "takeout"
    version = 1
    suffix = ".json"

    def sniff(self, path: Path, head: bytes) -> bool:
        return _is_page(head) or _is_list(head)

    def knows_record(self, body: JsonObject) -> bool:
        return {"header", "title", "time"} <= body.keys()  # checked when it is read

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        head = read_head(path)
        if not _is_page(head) and not _is_list(head):
            raise UsageError(f"{str(path)!r} does not contain Gemini activity from Google Takeout.")
        seen = Counter[str]()
        notes: list[ImportedRecord] = []  # they belong to the conversation before them
        held: ImportedConversation | None = None
        for one in _page(path) if _is_page(head) else _list(path):
            if isinstance(one, ImportedRecord) or not (one.answer or _PROMPTED.match(one.said)):
                notes.append(one if isinstance(one, ImportedRecord) else ImportedRecord(one.raw, one.body))
                continue
            if held is not None:
                yield held
                notes = []
            when = str(one.at) if one.at else one.when
            id = sha256(f"{when}#{seen[when]}".encode()).hexdigest()[:32]
            seen[when] += 1
            held = ImportedConversation(id, _turn(one, notes), started_at=one.at)
        if held is not None:
            yield held
        if notes and held is None:
            yield ImportedConversation(path.stem, entries_of(iter(notes)))


def _turn(one: _Activity, notes: list[ImportedRecord]) -> Iterator[Entry]:
    """Yield the entries for a prompt and its answer, followed by those for the unreadable records in `notes`."""
    prompt = _PROMPTED.sub("", one.said, count=1) if _PROMPTED.match(one.said) else one.said
    records: list[SessionRecord | ImportedRecord | ImportedFacts] = [ImportedFacts(agent="takeout", created_at=one.at, updated_at=one.at)]
    records.append(SessionRecord("prompt", "user", one.raw, (text_part(prompt),), at=one.at))
    if one.answer:
        records.append(SessionRecord("answer", "assistant", one.raw, (text_part(one.answer),), at=one.at))
    if one.at and not one.is_exact:
        count = 2 if one.answer else 1
        records.append(ImportedFacts(Fidelity({"times": -count}, {"times": count})))
    yield from entries_of(iter([*records, *notes]))


def _is_page(head: bytes) -> bool:
    return _CELL.search(head) is not None and _PRODUCT.search(head) is not None


def _is_list(head: bytes) -> bool:
    value = parse_prefix(head)
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and text(first, "header").startswith("Gemini") and "title" in first and "time" in first


def _list(path: Path) -> Iterator[_Activity | ImportedRecord]:
    for element in array_items(read_chunks(path)):
        value = obj(element.value)
        answers = [text(one, "html") for one in objects(value, "safeHtmlItem")]
        is_known = isinstance(value.get("title"), str) and all(answers) and isinstance(value.get("safeHtmlItem", []), list)
        if element.problem or not is_known:
            yield ImportedRecord(element.raw, element.value, element.problem or f"entry {element.number} has an unknown shape")
            continue
        answer = "\n\n".join(_Text.of(html) for html in answers)
        yield _Activity(element.raw, text(value, "title"), text(value, "time"), milliseconds(value, "time"), answer, body=value)


def _page(path: Path) -> Iterator[_Activity | ImportedRecord]:
    data = read_document(path)
    starts = [found.start() for found in _CELL.finditer(data)]
    for number, start in enumerate(starts, 1):
        raw = data[start : starts[number]] if number < len(starts) else data[start:]
        parser = _Cell()
        parser.feed(raw.decode("utf-8", "replace"))
        parser.close()
        at = next((place for place, words in enumerate(parser.lines) if _TIME.search(words)), None)
        if at is None:
            yield ImportedRecord(raw, problem=f"entry {number} has no time")
            continue
        when = " ".join(parser.lines[at].split())
        time, is_exact = _milliseconds(when)
        answer = _Text.of("<br>".join(parser.sources[at + 1 :]))
        yield _Activity(raw, "\n".join(parser.lines[:at]).strip(), when, time, answer, is_exact)


def _milliseconds(when: str) -> tuple[int, bool]:
    """Return a time in ms since the epoch (0 if it can't be read), and whether its time zone is known."""
    found = _ENGLISH.search(when)
    if found is None or found[1] not in _MONTHS:
        return 0, False
    hour = int(found[4]) % 12 + (12 if found[7] == "P" else 0)
    zone = _OFFSET.fullmatch(found[8])
    hours = _ZONES.get(found[8])
    if zone is not None:
        hours = (int(zone[2]) + int(zone[3] or 0) / 60) * (-1 if zone[1] == "-" else 1)
    try:
        offset = timezone(timedelta(hours=hours or 0))
        time = datetime(int(found[3]), _MONTHS.index(found[1]) + 1, int(found[2]), hour, int(found[5]), int(found[6]), tzinfo=offset)
    except ValueError:
        return 0, False
    return round(time.timestamp() * 1000), hours is not None


class _Cell(HTMLParser):
    """Parser for an entry of the page. It divides the first content cell at those line breaks that are not inside other elements."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = [""]
        self.sources: list[str] = [""]
        """The HTML of each line."""
        self._depth = 0
        self._is_over = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._is_over:
            return
        if self._depth == 0:
            self._depth = int(tag == "div" and "content-cell" in (dict(attrs).get("class") or ""))
            return
        if tag == "br" and self._depth == 1:
            self.lines.append("")
            self.sources.append("")
            return
        self.sources[-1] += self.get_starttag_text() or ""
        self._depth += tag not in _EMPTY

    def handle_endtag(self, tag: str) -> None:
        if self._is_over or self._depth == 0 or tag in _EMPTY:
            return
        self._depth -= 1
        self._is_over = self._depth == 0
        if not self._is_over:
            self.sources[-1] += f"</{tag}>"

    def handle_data(self, data: str) -> None:
        if self._depth and not self._is_over:
            self.lines[-1] += data
            self.sources[-1] += data.replace("&", "&amp;").replace("<", "&lt;")


_EMPTY = frozenset({"br", "hr", "img", "input", "meta", "link", "wbr", "source"})
_BLOCKS = frozenset({"p", "div", "ul", "ol", "table", "tr", "blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "hr"})


class _Text(HTMLParser):
    """Converter of an answer's HTML to text with Markdown for headings, lists, code and emphasis."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._lists: list[int] = []
        """For each open list, the number of its last item, or -1 if the list is not numbered."""
        self._code = 0

    @staticmethod
    def of(html: str) -> str:
        """Convert HTML to text."""
        parser = _Text()
        parser.feed(html)
        parser.close()
        return re.sub(r"\n{3,}", "\n\n", "".join(parser.pieces)).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        add = self.pieces.append
        if tag in _BLOCKS:
            add("\n" if self._lists and tag in ("ul", "ol", "p") else "\n\n")
        if tag in ("ul", "ol"):
            self._lists.append(0 if tag == "ol" else -1)
        elif tag == "li":
            if self._lists and self._lists[-1] >= 0:
                self._lists[-1] += 1
            number = self._lists[-1] if self._lists else -1
            add("\n" + "  " * (len(self._lists) - 1) + (f"{number}. " if number > 0 else "* "))
        elif tag == "pre":
            self._code += 1
            add("```\n")
        elif tag[:1] == "h" and tag[1:].isdigit():
            add("#" * int(tag[1:]) + " ")
        else:
            add({"br": "\n", "td": " ", "th": " "}.get(tag, "") or self._mark(tag))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        if tag == "pre" and self._code:
            self._code -= 1
            self.pieces.append("\n```")
        self.pieces.append("\n\n" if tag in _BLOCKS and not self._lists else self._mark(tag))

    def handle_data(self, data: str) -> None:
        self.pieces.append(data if self._code else re.sub(r"\s+", " ", data))

    def _mark(self, tag: str) -> str:
        return "" if self._code else {"code": "`", "b": "**", "strong": "**", "i": "*", "em": "*"}.get(tag, "")
