from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from import_stage import only, source, stored, take
from moot.formats.agents.claude.format import ClaudeFormat
from moot.imports.arrivals import encode_arrival
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.plugins import FORMATS
from moot.types.format import ImportedRecord
from moot.types.message import text_of
from talk_format import Talk, line
from unit.formats.claude_lines import call, model, text, user


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


class NewerTalk(Talk):
    """A version of the format that reads the same."""

    version = 2


@pytest.mark.anyio
async def test_messages_with_the_same_id_are_all_kept_when_a_newer_version_reads_them(tmp_path: Path) -> None:
    file, base = tmp_path / "t.talk", line(talk="t1") + line(id="u", role="user", text="hello")
    file.write_bytes(base)
    async with stored(tmp_path / "home") as store:
        await take(store, file)
        answers = line(id="a", parent="u", role="assistant", text="first") + line(id="v", parent="a", role="user", text="again")
        file.write_bytes(base + answers + line(id="a", parent="v", role="assistant", text="second"))
        await import_sources(store, [source(file, NewerTalk())], ImportOptions(), Report())
        conversation = await only(store)
        nodes = await store.tree.nodes(conversation.id)
        texts = [text_of((await store.conversations.message(node.id)).parts) for node in nodes]
        assert sorted(texts) == ["again", "first", "hello", "second"]


@pytest.mark.anyio
async def test_a_dry_run_of_an_unchanged_session_with_an_unanswered_call_reports_no_growth(tmp_path: Path) -> None:
    file = tmp_path / "5f0c1a52-7d0e-4c53-9d2c-1f6a3f0b7c11.jsonl"
    file.write_bytes(user(1, None, "hi") + model(2, 1, "m1", text("x"), call("t1")) + user(3, 2, "next") + model(4, 3, "m2", text("y")))
    async with stored(tmp_path / "home") as store:
        for dry_run in (False, True, True):
            os.utime(file, ns=(1, file.stat().st_mtime_ns + 10**9))
            report = Report()
            await import_sources(store, [source(file, ClaudeFormat())], ImportOptions(dry_run=dry_run), report)
            assert (report.counts.grown, report.counts.known) == ((0, 4) if dry_run else (0, 0))
