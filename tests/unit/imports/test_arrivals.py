from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from import_stage import only, source, stored
from moot.imports.arrivals import encode_arrival
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.plugins import FORMATS
from moot.types.format import ImportedRecord


def test_a_record_is_known_again_when_its_lines_end_was_written_later() -> None:
    early, late = encode_arrival(ImportedRecord(b'{"a":1}')), encode_arrival(ImportedRecord(b'{"a":1}\r\n'))
    assert (early.key, early.digest) == (late.key, late.digest)
    assert encode_arrival(ImportedRecord(b'{"a":1}'), 1).key != early.key
    assert (
        encode_arrival(ImportedRecord(b"", problem="line 3 is too long")).key
        != encode_arrival(ImportedRecord(b"", problem="line 4 is too long")).key
    )


@pytest.mark.anyio
async def test_parts_that_no_client_can_read_are_kept_inside_unknown_parts(tmp_path: Path) -> None:
    odd: list[Any] = [{"type": "hologram", "beam": 1}, {"kind": "typeless"}, {"type": "text", "text": 5}]
    denied = {"type": "tool-shell", "toolCallId": "c", "state": "output-denied", "input": {}}
    path = tmp_path / "messages.json"
    rows = [
        {"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]},
        {"id": "a", "role": "assistant", "parts": [*odd, denied]},
    ]
    path.write_text(json.dumps(rows))
    async with stored(tmp_path / "home") as store:
        await import_sources(store, [source(path, FORMATS.make("ui"))], ImportOptions(), Report())
        conversation = await only(store)
        message = await store.conversations.message(conversation.head or "")
    assert message.parts == (
        *({"type": "data-unknown", "data": part} for part in odd),
        {**denied, "approval": {"id": "c", "approved": False}},
    )
