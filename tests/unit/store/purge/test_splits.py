"""A secret split over events, frames and reads: no event keeps a part of it, and the message shows the mark instead."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moot.convert.fold import Folder
from moot.store.log.rows import Row, before_redaction, checked
from moot.store.maintenance.purge.events import Scan
from moot.store.maintenance.purge.redactor import Redactor
from moot.types.canonical import dumps, loads
from moot.types.maintenance import REDACTION_MARK, Secret

SECRET = 'Zq7"xK\\w9é'
NEEDLES = Redactor(Secret((SECRET,)))
AROUND = st.text("abc dé.", max_size=12)


def split(text: Any, cuts: Sequence[int]) -> list[Any]:
    borders = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[start:end] for start, end in pairwise(borders)]


def rows(pieces: Sequence[tuple[bytes | None, list[dict[str, Any]]]]) -> list[Row]:
    return [
        checked(Row(seq, 1, 1, ":0.0", "raw", dumps(chunks), raw, None, None, None, b"")) for seq, (raw, chunks) in enumerate(pieces, 1)
    ]


def redacted(stored: Sequence[Row]) -> list[Row]:
    scan = Scan(NEEDLES)
    for row in stored:
        scan.row(row)
    scan.end()
    return [scan.changed(row, 7) if row.seq in scan.hits else row for row in stored]


def shown(stored: Sequence[Row]) -> str:
    folder = Folder()
    folder.feed_all(({"type": "text-start", "id": "0"},))
    for row in stored:
        folder.feed_all(tuple(loads(before_redaction(row).chunks)))  # type: ignore[arg-type]
    return "".join(str(part.get("text", "")) for part in folder.parts())


@given(AROUND, AROUND, st.lists(st.integers(0, 60), max_size=12), st.booleans())
def test_a_string_split_over_deltas_is_redacted_in_chunks_and_raw(before: str, behind: str, cuts: list[int], twice: bool) -> None:
    text = before + SECRET + behind + (SECRET if twice else "")
    pieces = split(text, cuts)
    frames: list[tuple[bytes | None, list[dict[str, Any]]]] = [
        (
            b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": piece}}]}).encode() + b"\n\n",
            [{"type": "text-delta", "id": "0", "delta": piece}],
        )
        for piece in pieces
    ]
    stored = rows(frames)
    left = redacted(stored)
    assert [row.seq for row in left] == [row.seq for row in stored] and all(row.is_sound() for row in left)
    assert shown(left) == before + REDACTION_MARK + behind + (REDACTION_MARK if twice else "")
    said = "".join(loads(row.raw.removeprefix(b"data: "))["choices"][0]["delta"]["content"] for row in left if row.raw)  # type: ignore[index,call-overload]
    assert SECRET not in said and not set(SECRET) - set("é") & set(said)
    for row, was in zip(left, stored, strict=True):
        assert (row.kind == "tombstone") is (row != was)


@given(AROUND, AROUND, st.lists(st.integers(0, 200), max_size=12))
def test_a_string_split_over_socket_reads_is_redacted(before: str, behind: str, cuts: list[int]) -> None:
    body = json.dumps({"error": before + SECRET + behind}, ensure_ascii=False).encode()
    left = redacted(rows([(piece, []) for piece in split(body, cuts)]))
    assert "Zq7" not in b"".join(row.raw or b"" for row in left).decode("utf-8", "replace")
    assert b"xK" not in b"".join(row.raw or b"" for row in left)


@given(AROUND, AROUND, st.lists(st.integers(0, 80), max_size=12), st.integers(0, 2))
def test_a_string_split_over_tool_arguments_is_redacted(before: str, behind: str, cuts: list[int], depth: int) -> None:
    arguments = json.dumps({"command": before + SECRET + behind})
    for _ in range(depth):
        arguments = json.dumps({"inner": arguments})
    chunks = [{"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": piece} for piece in split(arguments, cuts)]
    left = redacted(rows([(None, [chunk]) for chunk in chunks]))
    said: Any = "".join(loads(before_redaction(row).chunks)[0]["inputTextDelta"] for row in left)  # type: ignore[index,call-overload]
    for _ in range(depth):
        said = json.loads(said)["inner"]
    assert json.loads(said)["command"] == before + REDACTION_MARK + behind


@given(st.integers(1, 40), st.data())
def test_text_buffered_by_the_translator_is_redacted_in_frames_too(size: int, data: st.DataObject) -> None:
    pieces = split(SECRET, data.draw(st.lists(st.integers(0, 20), max_size=size)))
    frames: list[tuple[bytes | None, list[dict[str, Any]]]] = [
        (json.dumps({"delta": {"text": piece}}).encode() + b"\n", []) for piece in pieces
    ]
    left = redacted(rows([*frames, (b'{"stop": true}\n', [{"type": "text-delta", "id": "0", "delta": SECRET}])]))
    assert not any(row.raw for row in left[:-1]) and shown(left) == REDACTION_MARK


def test_repeated_redaction_keeps_earlier_redactions() -> None:
    first = redacted(rows([(b"data: x", [{"type": "text-delta", "id": "0", "delta": f"{SECRET} and other words"}])]))
    other = Redactor(Secret(("other",)))
    scan = Scan(other)
    scan.row(first[0])
    scan.end()
    assert scan.hits == {1}
    again = scan.changed(first[0], 8)
    assert shown([again]) == f"{REDACTION_MARK} and {REDACTION_MARK} words" and before_redaction(again).kind == "raw"
