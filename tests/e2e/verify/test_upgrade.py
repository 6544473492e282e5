"""Old runs translated by a newer converter: stored next to the log, shown to readers, and the first translation kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import make
from e2e.verify.homes import PIECE, Altered, Store, altered, named
from moot.config.settings import Settings
from moot.convert.exchanges import translator_of
from moot.store import SqliteStore, open_store
from moot.testing.script import Reply
from moot.types.message import text_of
from moot.types.verify import Upgrade
from verification import verify

pytestmark = pytest.mark.anyio

LOUDER = altered(version=2)
SAID = "Everything is in its place, and so am I."


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[SqliteStore]:
    store = await open_store(Settings(home))
    try:
        yield store
    finally:
        await store.close()


async def upgraded(into: SqliteStore, translators: Any = LOUDER, **more: Any) -> list[Upgrade]:
    return [upgrade async for upgrade in into.translations.upgrade(translators, **more)]


async def texts(store: SqliteStore) -> list[str]:
    (conversation,) = (await store.conversations.list()).items
    return [text_of(message.parts) for message in await store.conversations.branch(conversation.id) if message.role == "assistant"]


async def test_readers_get_the_newer_translation_and_the_log_is_unchanged(stored: Store, dialect: str) -> None:
    before = stored.events()
    async with opened(stored.home) as store:
        first = await texts(store)
        runs = await upgraded(store)
        assert {upgrade.converters for upgrade in runs} == {(f"{named(dialect, 1)} → {named(dialect, 2)}",)}
        assert sum(len(upgrade.exchanges) for upgrade in runs) == (await verify(stored.home, LOUDER)).exchanges
        last = next(upgrade for upgrade in reversed(runs) if upgrade.run)
        assert (last.events, last.chunks[0]) == (5, last.chunks[1]) and not last.endings and not last.skipped
        (shown,) = last.differences
        assert shown[0].endswith(".text") and SAID in shown[1] and SAID.upper() in shown[2]
        assert SAID in first and await texts(store) == [text.upper() for text in first]
        (conversation,) = (await store.conversations.list()).items
        branch = await store.conversations.branch(conversation.id)
        assert [text_of(m.parts) for m in await store.translations.first(branch) if m.role == "assistant"] == first
        assert set((await store.translations.converters(conversation.id)).values()) == {named(dialect, 2)}
        for newest, said in ((False, SAID), (True, SAID.upper())):
            events = await store.log.read(conversation.id, newest=newest)
            assert said in "".join(event.text for event in events)
    assert stored.events() == before


async def test_upgraded_exchanges_verify_with_both_converters(stored: Store) -> None:
    async with opened(stored.home) as store:
        await upgraded(store)
    for translators in (LOUDER, translator_of):
        receipt = await verify(stored.home, translators)
        assert receipt.damages == [] and receipt.translated == receipt.rebuilt == receipt.exchanges
    receipt = await verify(stored.home, altered(version=3))
    assert receipt.damages == [] and receipt.rebuilt == 0


async def test_upgrades_run_once_and_a_dry_run_does_nothing(stored: Store) -> None:
    async with opened(stored.home) as store:
        first = await texts(store)
        told = await upgraded(store, store=False)
        assert told and await texts(store) == first
        assert stored.database.execute("SELECT count(*) FROM translation").fetchone() == (0,)
        assert await upgraded(store) == told
        rows = stored.database.execute("SELECT * FROM translation").fetchall()
        assert await upgraded(store) == []
        assert stored.database.execute("SELECT * FROM translation").fetchall() == rows


async def test_a_third_version_is_stored_with_the_second(stored: Store, dialect: str) -> None:
    async with opened(stored.home) as store:
        first = await texts(store)
        await upgraded(store)
        assert await upgraded(store, lambda name: Altered(translator_of(name), 3, change=str.title))
        assert await texts(store) != [text.upper() for text in first]
        kept = stored.database.execute("SELECT DISTINCT converter FROM translation ORDER BY 1").fetchall()
        assert kept == [(named(dialect, 2),), (named(dialect, 3),)]
        assert await upgraded(store) == []
    receipt = await verify(stored.home, lambda name: Altered(translator_of(name), 3, change=str.title))
    assert receipt.damages == [] and receipt.rebuilt == receipt.exchanges


async def test_an_upgrade_without_changes_is_remembered_too(stored: Store) -> None:
    async with opened(stored.home) as store:
        first = await texts(store)
        told = await upgraded(store, lambda name: Altered(translator_of(name), 2, change=str))
        assert told and not any(upgrade.events or upgrade.differences for upgrade in told)
        assert await texts(store) == first
    receipt = await verify(stored.home, lambda name: Altered(translator_of(name), 2, change=str))
    assert receipt.damages == [] and receipt.rebuilt == receipt.exchanges


@pytest.mark.damaged
async def test_a_damaged_run_is_reported_and_not_upgraded(stored: Store) -> None:
    row = stored.streamed()
    stored.change(row, fixed=False, raw=row["raw"].replace(PIECE, b"its own"))
    async with opened(stored.home) as store:
        (left,) = [upgrade for upgrade in await upgraded(store) if upgrade.skipped]
        assert "damaged" in left.skipped and f"I look and do.{SAID}" in await texts(store)
        assert len(await upgraded(store)) == 1


async def test_upgrades_never_lose_tool_outputs(stored: Store) -> None:
    async with opened(stored.home) as store:
        told = await upgraded(store, lambda name: Altered(translator_of(name), 2, calls="other-"))
        (left,) = [upgrade for upgrade in told if upgrade.skipped]
        assert "calls would lose" in left.skipped
    assert (await verify(stored.home)).damages == []


async def test_a_live_run_is_not_upgraded(stage: Any, tmp_path: Path) -> None:
    async with stage([Reply(text="It goes on and on", hang_at=4)]) as on:
        submitted = await on.submit("go")
        assert await upgraded(on.engine.store) == []
        await on.engine.runs.cancel(submitted.run.id)


async def test_a_search_finds_the_new_text_and_not_the_old(stored: Store) -> None:
    async with opened(stored.home) as store:
        assert (await store.search.search("place")).hits
        await upgraded(store, lambda name: Altered(translator_of(name), 2, change=lambda text: text.replace("its pla", "no spa")))
        assert not (await store.search.search("place")).hits
        assert (await store.search.search("space")).hits


@pytest.mark.damaged
async def test_a_changed_translation_is_found(stored: Store) -> None:
    async with opened(stored.home) as store:
        await upgraded(store)
    no, chunks = stored.database.execute(
        "SELECT rowid, chunks FROM translation WHERE instr(chunks, 'ITS PLA') ORDER BY first_seq"
    ).fetchone()
    stored.run("UPDATE translation SET chunks = ? WHERE rowid = ?", chunks.replace(b"ITS PLA", b"ITS OWN"), no)
    assert await stored.kinds(translators=LOUDER) == {"chunks", "message"}


PACKAGE = """
from moot.convert.dialects.openai_chat_stream import OpenAIStream


class Loud(OpenAIStream):
    name, version = "loud", 2

    def feed(self, state, raw):
        state, chunks = super().feed(state, raw)
        return state, tuple({**c, "delta": c["delta"].upper()} if c["type"] == "text-delta" else c for c in chunks)
"""


@pytest.mark.damaged  # its converter is renamed directly in the database
@pytest.mark.slow
def test_the_command_shows_differences(homes: dict[str, Path], tmp_path: Path) -> None:
    moot = make(tmp_path)
    shutil.copytree(homes["openai-chat"], moot.home, dirs_exist_ok=True)
    stored = Store(moot.home)
    stored.database.execute("UPDATE exchange SET converter = 'loud/1'")
    stored.database.close()
    site = tmp_path / "site"
    (site / "loud-1.dist-info").mkdir(parents=True)
    (site / "loud-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1\n")
    (site / "loud-1.dist-info" / "entry_points.txt").write_text("[moot.translators]\nloud = loud:Loud\n")
    (site / "loud.py").write_text(PACKAGE)
    moot.more["PYTHONPATH"] = str(site)
    done = moot.run("verify", "--upgrade", "--all")
    assert done.returncode == 0, done
    assert b"loud/1 \xe2\x86\x92 loud/2" in done.stdout and f"+ {json.dumps(SAID.upper())}".encode() in done.stdout
    assert SAID.encode() in moot.run("chat", "show", "1", "--first").stdout
