"""Checking messages that grow over several events, by folding them again."""

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

_Content: TypeAlias = tuple[tuple[Part, ...], JsonObject]
_FIRST, _LAST = 9, 10
"""Columns of a row of `MESSAGE`."""


class GrowthJudge:
    """The messages of one conversation that later events extend."""

    def __init__(self, no: int, findings: Findings) -> None:
        self._no = no
        self._findings = findings
        self._open: dict[str, _Content] = {}

    def begin(self, id: str, row: Row, stored: Any, body: JsonObject) -> None:
        """Compare a message with its row, or wait for its last event."""
        self._check(id, row, stored, _content(body))

    def extend(self, queries: Queries, row: Row, body: JsonObject) -> None:
        """Handle a further event of a message."""
        id = str(body.get("id"))
        stored = message_row(queries, id)
        if stored is None:
            self._findings.add("missing", f"message {id}", f"a row, because event {row.seq} extends it", "none", row.seq)
            return
        before = self._open.pop(id, None) or self._again(queries, id, stored[_FIRST], row.seq)
        if before is None:
            self._findings.add("record", f"event {row.seq}", f"an earlier event of message {id}", "none", row.seq)
            return
        self._check(id, row, stored, grown(*before, body))

    def finish(self) -> None:
        """Report incomplete messages at the end of the log."""
        for id in self._open:
            self._findings.add("missing", f"message {id}", "the last event of its row", "none")

    def _check(self, id: str, row: Row, stored: Any, content: _Content) -> None:
        if stored[_LAST] > row.seq:
            self._open[id] = content
            return
        compare_json(self._findings, f"message {id}, its parts", list[Json](content[0]), stored[2], row.seq)
        compare_json(self._findings, f"message {id}, its metadata", content[1], stored[3], row.seq)

    def _again(self, queries: Queries, id: str, first: int, before: int) -> _Content | None:
        """Fold a message's earlier events again, if it was compared already before its source continued."""
        found: list[_Content] = []
        for row in log_rows(queries, self._no, first - 1, before - 1):
            if row.kind != "message" or id.encode() not in (row.body or b""):
                continue
            try:
                body = read_object(row.body)
            except ValueError:
                continue  # already reported
            if body.get("id") == id:
                found.append(grown(*found[-1], body) if found and is_growth(body) else _content(body))
                del found[:-1]
        return found[-1] if found else None


def _content(body: JsonObject) -> _Content:
    metadata = body.get("metadata")
    try:
        parts = parts_of(body.get("parts", []))
    except ValueError:
        parts = ()
    return parts, metadata if isinstance(metadata, dict) else {}
