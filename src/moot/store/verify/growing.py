"""Messages that came in pieces: folded again from all the events that say them."""

from __future__ import annotations

from typing import Any, TypeAlias

from moot.convert.growing import grown, is_growth
from moot.store.connect import Queries
from moot.store.rows import parts_of
from moot.store.verify.findings import Findings
from moot.store.verify.rows import Row, log_rows, read_object
from moot.store.verify.runs import compare_json, message_row
from moot.types.canonical import Json, JsonObject
from moot.types.part import Part

__all__ = ["GrowthJudge", "is_growth"]

_Said: TypeAlias = tuple[tuple[Part, ...], JsonObject]
_FIRST, _LAST = 9, 10
"""Of a row of `MESSAGE`."""


class GrowthJudge:
    """The messages of one conversation that later events go on with."""

    def __init__(self, no: int, findings: Findings) -> None:
        self._no = no
        self._findings = findings
        self._open: dict[str, _Said] = {}

    def begin(self, id: str, row: Row, stored: Any, body: JsonObject) -> None:
        """Compares a message with its row, once its last event has come."""
        self._told(id, row, stored, _said(body))

    def go_on(self, queries: Queries, row: Row, body: JsonObject) -> None:
        """Takes a further event of a message."""
        id = str(body.get("id"))
        stored = message_row(queries, id)
        if stored is None:
            self._findings.add("missing", f"message {id}", f"a row, for event {row.seq} goes on with it", "none", row.seq)
            return
        before = self._open.pop(id, None) or self._again(queries, id, stored[_FIRST], row.seq)
        if before is None:
            self._findings.add("record", f"event {row.seq}", f"the message {id} begun before it", "one that is not", row.seq)
            return
        self._told(id, row, stored, grown(*before, body))

    def finish(self) -> None:
        """At the end of the log."""
        for id in self._open:
            self._findings.add("missing", f"message {id}", "the event that its row ends with", "none")

    def _told(self, id: str, row: Row, stored: Any, said: _Said) -> None:
        if stored[_LAST] > row.seq:
            self._open[id] = said
            return
        compare_json(self._findings, f"message {id}, its parts", list[Json](said[0]), stored[2], row.seq)
        compare_json(self._findings, f"message {id}, its metadata", said[1], stored[3], row.seq)

    def _again(self, queries: Queries, id: str, first: int, before: int) -> _Said | None:
        """What was said of it up to there: it had been compared already when its source went on."""
        found: list[_Said] = []
        for row in log_rows(queries, self._no, first - 1, before - 1):
            if row.kind != "message" or id.encode() not in (row.body or b""):
                continue
            try:
                body = read_object(row.body)
            except ValueError:
                continue  # found on the way
            if body.get("id") == id:
                found.append(grown(*found[-1], body) if found and is_growth(body) else _said(body))
                del found[:-1]
        return found[-1] if found else None


def _said(body: JsonObject) -> _Said:
    metadata = body.get("metadata")
    try:
        parts = parts_of(body.get("parts", []))
    except ValueError:
        parts = ()
    return parts, metadata if isinstance(metadata, dict) else {}
