"""Reading sources in a separate process."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import anyio.to_thread
import pytest

from import_stage import HEAD, ONE, USER, source, stored
from moot.formats.agents.claude.format import ClaudeFormat
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.process import PROGRAM, READY, ProcessReader, reader_for
from moot.imports.reader import Piece, PriceSettings, SourceReader, ThreadReader, pieces_of
from moot.imports.report import Report
from moot.imports.sources import Source
from moot.types.message import text_of
from moot.types.store import Store
from talk_format import Talk

pytestmark = pytest.mark.anyio

SESSION = "0d0a7c62-0d6a-4c1b-9f6e-2f3a4b5c6d7e"


def session(path: Path, *texts: str) -> Path:
    """A session file in which each of these is a prompt."""
    file, parent = path / f"{SESSION}.jsonl", None
    with file.open("w") as lines:
        for number, text in enumerate(texts):
            uuid = f"00000000-0000-4000-8000-{number:012}"
            said = {"parentUuid": parent, "isSidechain": False, "sessionId": SESSION, "type": "user", "uuid": uuid}
            lines.write(json.dumps({**said, "message": {"role": "user", "content": text}}) + "\n")
            parent = uuid
    return file


def children() -> set[int]:
    """The reader processes of this process."""
    found = set[int]()
    for task in Path("/proc/self/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            if b"moot.imports.process" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.add(child)
    return found


async def read(reading: SourceReader, source: Source) -> tuple[list[Piece], str]:
    async with pieces_of(source, reading) as pieces:
        found = [piece async for piece in pieces]
    return found, pieces.problem


async def test_a_reader_process_gives_the_same_result_as_a_thread_and_ends(tmp_path: Path) -> None:
    path = session(tmp_path, "first", "x" * 600_000, "and more")
    with path.open("ab") as file:
        file.write(b'{"type":"mode"}\n{"deep":' + b"[" * 900 + b"]" * 900 + b"}\nno json\n")
    whole = source(path, ClaudeFormat())
    here, problem = await read(ThreadReader(), whole)
    async with reader_for([whole], worth=0) as apart:
        for _ in range(2):  # one process reads one source after the other
            told, its_problem = await read(apart, whole)
            assert [piece.arrivals for piece in told] == [piece.arrivals for piece in here]
            assert [piece.facts for piece in told] == [piece.facts for piece in here]
            assert [(piece.is_first, piece.is_last) for piece in told] == [(True, False), (False, True)]
            assert told[0].conversation.source_id == SESSION
            assert problem == its_problem == ""
        assert len(children()) == 1
    assert not children()


async def test_a_reader_process_reports_the_same_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"nothing of the kind\n")
    nothing = source(path, ClaudeFormat())
    async with reader_for([nothing], worth=0) as apart:
        assert await read(apart, nothing) == await read(ThreadReader(), nothing)
        path.unlink()
        assert await read(apart, nothing) == await read(ThreadReader(), nothing)


async def test_a_dying_reader_fails_only_its_current_source(tmp_path: Path) -> None:
    long = source(session(tmp_path, *["x" * 100_000] * 40), ClaudeFormat())
    apart = ProcessReader()
    async with pieces_of(long, apart) as pieces:
        async for _ in pieces:
            for child in children():
                os.kill(child, signal.SIGKILL)
    assert pieces.problem == "The reader process ended by signal 9."
    told, problem = await read(apart, long)
    assert (sum(len(piece.arrivals) for piece in told), problem) == (40, "")
    await apart.close()
    assert not children()


async def test_a_reader_ends_when_its_output_is_closed(tmp_path: Path) -> None:
    order = pickle.dumps((source(session(tmp_path, *["x" * 100_000] * 40), ClaudeFormat()), PriceSettings()))
    for asked in (b"", len(order).to_bytes(8, "little") + order):
        reader = subprocess.Popen([sys.executable, *PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert reader.stdin is not None and reader.stdout is not None
        assert reader.stdout.read(len(READY)) == READY
        reader.stdin.write(asked)
        reader.stdin.flush()
        reader.stdout.close()
        reader.stdin.close()
        assert await anyio.to_thread.run_sync(reader.wait) == 0


async def test_sources_are_read_in_this_process_if_no_reader_can_start(tmp_path: Path) -> None:
    short = source(session(tmp_path, "hello"), ClaudeFormat())
    apart = ProcessReader(program=("-c", "raise SystemExit(1)"))
    for _ in range(2):
        told, problem = await read(apart, short)
        assert (sum(len(piece.arrivals) for piece in told), problem) == (1, "")
    await apart.close()


async def test_stopping_early_leaves_no_process(tmp_path: Path) -> None:
    long = source(session(tmp_path, *["x" * 100_000] * 40), ClaudeFormat())
    apart = ProcessReader()
    with anyio.fail_after(60):
        async with pieces_of(long, apart) as pieces:
            await anext(aiter(pieces))
        assert not children()
        with anyio.CancelScope() as scope:
            async with pieces_of(long, apart) as pieces:
                await anext(aiter(pieces))
                scope.cancel()
                await anyio.sleep_forever()
    assert not children()


async def test_a_format_that_cannot_be_pickled_is_read_in_this_process(tmp_path: Path) -> None:
    class Own(Talk):
        pass

    path = tmp_path / "a.talk"
    path.write_bytes(HEAD + USER + ONE)
    for format in (Own(), Talk()):  # one that can't be pickled, and one whose file the other process does not find
        here = source(path, format)
        async with reader_for([here], worth=0) as apart:
            told, problem = await read(apart, here)
        assert (sum(len(piece.arrivals) for piece in told), problem) == (3, "")


async def test_imports_through_the_reader_process_are_stored_and_updated(tmp_path: Path) -> None:
    texts = ["hello", "long " * 100_000, "the end"]
    file = session(tmp_path, *texts)
    seen = set[int]()

    async def brought(store: Store) -> Report:
        report = Report(on_change=lambda: seen.update(children()))
        await import_sources(store, [source(file, ClaudeFormat())], ImportOptions(), report, worth=0)
        return report

    async with stored(tmp_path / "home") as store:
        report = await brought(store)
        assert (report.counts.added, report.problems, report.failed, len(seen)) == (3, 0, [], 1)
        (conversation,) = (await store.conversations.list()).items
        branch = await store.conversations.branch(conversation.id)
        assert [text_of(message.parts) for message in branch] == texts
        with file.open("ab") as more:
            more.write(file.read_bytes().splitlines(keepends=True)[-1].replace(b"000002", b"000003").replace(b"the end", b"one more"))
        report = await brought(store)
        assert (report.counts.added, report.counts.known, len(seen)) == (1, 3, 2)
        assert ((await brought(store)).unchanged, len(seen)) == (1, 2)  # no process is started without sources
