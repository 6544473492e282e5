"""Verification during other work, with other converters and of broken files; and the command."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from e2e.cli_process import MootProcess, make
from e2e.verify.homes import PIECE, Store, altered, named
from moot.errors import StoreCorrupt
from moot.store.database.connection import sqlite
from moot.store.database.transaction import SEQ_BITS
from moot.testing.script import Reply
from verification import verify

pytestmark = pytest.mark.anyio

damaged = pytest.mark.damaged
fixing = pytest.mark.parametrize("fixed", [False, True], ids=["check-left", "check-fixed"])


async def test_a_changed_converter_is_found(stored: Store) -> None:
    receipt = await stored.verified(translators=altered())
    assert {damage.kind for damage in receipt.damages} == {"chunks"} and receipt.damaged >= 5


async def test_a_converter_that_raises_is_reported_and_affects_nothing_else(stored: Store) -> None:
    receipt = await stored.verified(translators=altered(raises=True))
    assert {damage.kind for damage in receipt.damages} == {"unreadable"} and "KeyError" in receipt.damages[0].found


async def test_exchanges_of_other_versions_are_counted_and_are_not_damage(stored: Store, dialect: str) -> None:
    receipt = await stored.verified(translators=altered(version=2))
    assert receipt.damages == [] and receipt.rebuilt == 0 and receipt.not_rebuilt == {named(dialect, 1): receipt.exchanges}
    receipt = await verify(stored.home, lambda _: None)
    assert receipt.damages == [] and receipt.not_rebuilt == {named(dialect, 1): receipt.exchanges}


@fixing
@damaged
async def test_exchanges_of_other_versions_are_still_checked_against_their_message(stored: Store, fixed: bool) -> None:
    row = stored.streamed()
    stored.change(row, fixed=fixed, chunks=row["chunks"].upper().replace(b"TYPE", b"type").replace(b"TEXT-DELTA", b"text-delta"))
    assert await stored.kinds(translators=altered(version=2)) == ({"message"} if fixed else {"changed", "message"})


async def test_a_live_run_is_verified_up_to_its_last_fold(stage: Any, tmp_path: Path) -> None:
    async with stage([Reply(text="A long answer " * 30, chunk_size=3, delay=0.002), Reply(text="so far", hang_at=4)]) as on:
        submitted = await on.submit("go")
        lives = 0
        while (await on.engine.store.records.run(submitted.run.id)).status == "running":
            receipt = await verify(tmp_path / "home")
            assert receipt.damages == []
            lives += receipt.live
        assert lives
        assert (await verify(tmp_path / "home")).live == 0
        hanging = await on.submit("and on")
        receipt = await verify(tmp_path / "home", conversation=hanging.conversation.id)
        assert (receipt.damages, receipt.live, receipt.conversations) == ([], 1, 1)


@damaged
@settings(max_examples=25)
@given(st.data())
def test_verification_continues_after_a_broken_page(
    homes: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    home = shutil.copytree(homes["openai-chat"], tmp_path_factory.mktemp("broken") / "home")
    stored = Store(home)
    stored.run("UPDATE log_head SET next_seq = next_seq")
    stored.database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    pages = stored.database.execute("PRAGMA page_count").fetchone()[0]
    stored.database.close()
    file = home / "data" / "moot.db"
    content = bytearray(file.read_bytes())
    page = data.draw(st.integers(8, pages - 1)) * 4096
    content[page : page + 4096] = bytes(4096) if data.draw(st.booleans()) else Random(data.draw(st.integers(0, 1 << 32))).randbytes(4096)
    file.write_bytes(content)
    with suppress(StoreCorrupt):  # reported as such if it can't even be opened
        asyncio.run(verify(home))


@pytest.fixture
def process(homes: dict[str, Path], tmp_path: Path) -> MootProcess:
    moot = make(tmp_path)
    shutil.copytree(homes["anthropic"], moot.home, dirs_exist_ok=True)
    return moot


@pytest.mark.slow
def test_the_command_reports_what_it_checked(process: MootProcess) -> None:
    done = process.run("verify")
    assert (done.returncode, done.stderr) == (0, b""), done
    assert b"rebuilt from raw" in done.stdout and done.stdout.endswith(b"ok\n")
    told = json.loads(process.run("verify", "1", "--json").stdout)
    assert told["ok"] is True and told["conversations"] == 1 and told["damages"] == []


@damaged
@pytest.mark.slow
def test_the_command_lists_each_difference_and_a_fix(process: MootProcess) -> None:
    stored = Store(process.home)
    row = stored.streamed()
    stored.change(row, fixed=True, raw=row["raw"].replace(PIECE, b"its own"))
    stored.database.close()
    seq = row["id"] & (1 << SEQ_BITS) - 1
    done = process.run("verify", "--all")
    assert done.returncode == 1 and f"event {seq} (chunks)".encode() in done.stdout and b"expected" in done.stdout
    assert b"doesn't match the raw data" in done.stdout
    done = process.run("verify", "--json")
    (damage,) = json.loads(done.stdout)["damages"]
    assert done.returncode == 1 and damage["seq"] == seq and damage["kind"] == "chunks"


@pytest.mark.slow
def test_verifying_an_unknown_conversation_fails(process: MootProcess) -> None:
    assert process.run("verify", "1", "--all").returncode == 2
    assert process.run("verify", "nothing of that name").returncode == 2
    assert process.run("verify", "--upgrade").returncode == 2


@pytest.mark.slow
def test_verifying_changes_nothing(process: MootProcess) -> None:
    def dumped() -> dict[str, list[Any]]:
        database = sqlite.connect(str(process.home / "data" / "moot.db"))
        try:
            tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
            return {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in tables if not name.startswith("search")}
        finally:
            database.close()

    before = dumped()
    assert process.run("verify").returncode == 0
    assert dumped() == before
