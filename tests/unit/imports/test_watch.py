"""Messages are imported while a program writes them, whatever happens to its files and folders."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from import_stage import HEAD, NEXT, ONE, TWO, USER, only, source, stored
from moot.formats.agents.claude.format import ClaudeFormat
from moot.formats.agents.droid import Droid
from moot.formats.agents.gptme import Gptme
from moot.imports.conversations import ImportOptions
from moot.imports.report import Report
from moot.imports.sources import Places
from moot.imports.watcher import Watcher
from moot.types.message import text_of
from moot.types.store import Store
from talk_format import line
from unit.formats.claude_lines import user

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def watched(store: Store, place: Path) -> AsyncGenerator[list[Report], None]:
    reports: list[Report] = []
    places = Places(lambda: [place], lambda: [source(file) for file in sorted(place.rglob("*.talk"))])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Watcher(store, places, ImportOptions(), reports.append).run)
        yield reports
        tasks.cancel_scope.cancel()


async def until(store: Store, holds: Callable[[dict[str, str]], bool]) -> None:
    """Wait until the conversations, by title, have these texts."""
    while True:
        listed = (await store.conversations.list()).items
        said = {one.title: " ".join([text_of(part.parts) for part in await store.conversations.branch(one.id)]) for one in listed}
        if holds(said):
            return
        await anyio.sleep(0.05)


@pytest.mark.slow
async def test_existing_growing_and_new_sources_are_imported(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "a.talk").write_bytes(HEAD + USER)
    async with stored(tmp_path / "home") as store, watched(store, place):
        await until(store, lambda said: said == {"Lines": "hello"})
        with (place / "a.talk").open("ab") as file:
            file.write(ONE[:20])
            file.flush()
            await anyio.sleep(0.3)
            file.write(ONE[20:] + TWO)
        await until(store, lambda said: said == {"Lines": "hello onetwo"})
        deep = place / "later" / "still"
        deep.mkdir(parents=True)
        (deep / "b.talk").write_bytes(line(talk="t2", title="Second") + USER)
        await until(store, lambda said: said.get("Second") == "hello")
        await anyio.sleep(0.5)
        with (deep / "b.talk").open("ab") as file:
            file.write(line(id="x", parent="u1", role="user", text="more"))
        await until(store, lambda said: said.get("Second") == "hello more")


async def test_a_change_of_a_file_next_to_a_source_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "place" / "s1.jsonl"
    path.parent.mkdir()
    said = [{"type": "message", "id": role, "message": {"role": role, "content": "hello"}} for role in ("user", "assistant")]
    path.write_text("".join(json.dumps(one) + "\n" for one in ({"type": "session_start", "id": "s1"}, *said)))
    places = Places(lambda: [path.parent], lambda: [source(path, Droid())])
    async with stored(tmp_path / "home") as store, anyio.create_task_group() as tasks:
        ready = anyio.Event()
        tasks.start_soon(Watcher(store, places, ImportOptions(), lambda _: None).run, None, lambda _: ready.set())
        await ready.wait()
        for tokens in (900, 1860):
            path.with_suffix(".settings.json").write_text(json.dumps({"model": "m", "tokenUsage": {"inputTokens": tokens}}))
            while (await only(store)).usage.input != tokens:
                await anyio.sleep(0.05)
        tasks.cancel_scope.cancel()


async def test_only_the_lines_appended_to_a_long_session_are_read(tmp_path: Path) -> None:
    path = tmp_path / "place" / "5f0c1a52-7d0e-4c53-9d2c-1f6a3f0b7c11.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"".join(user(at, at - 1 or None, f"{at} " + "x" * 1000) for at in range(1, 200)))
    places = Places(lambda: [path.parent], lambda: [source(path, ClaudeFormat())])
    async with stored(tmp_path / "home") as store, anyio.create_task_group() as tasks:
        ready = anyio.Event()
        watcher = Watcher(store, places, ImportOptions(), lambda _: None)
        tasks.start_soon(watcher.run, None, lambda _: ready.set())
        await ready.wait()
        for at in (200, 201):
            with path.open("ab") as file:
                file.write(user(at, at - 1, "more"))
            while (await only(store)).message_count != at:
                await anyio.sleep(0.02)
        assert watcher.states.used >= 2
        tasks.cancel_scope.cancel()


async def test_a_file_next_to_a_source_that_disappeared_does_not_end_the_watcher(tmp_path: Path) -> None:
    path = tmp_path / "place" / "s1.jsonl"
    path.parent.mkdir()
    records = [{"type": "session_start", "id": "s1"}, {"type": "message", "id": "u", "message": {"role": "user", "content": "hello"}}]
    data = "".join(json.dumps(one) + "\n" for one in records)
    path.write_text(data)
    places = Places(lambda: [path.parent], lambda: [source(path, Droid())] if path.exists() else [])
    async with stored(tmp_path / "home") as store, anyio.create_task_group() as tasks:
        ready = anyio.Event()
        watcher = Watcher(store, places, ImportOptions(), lambda _: None)
        tasks.start_soon(watcher.run, None, lambda _: ready.set())
        await ready.wait()
        path.unlink()
        while path in watcher.known:
            await anyio.sleep(0.02)
        assert watcher._sources_of(path.with_suffix(".settings.json")) == set()
        path.write_text(data + json.dumps({"type": "message", "id": "a", "message": {"role": "assistant", "content": "there"}}) + "\n")
        await until(store, lambda said: "there" in " ".join(said.values()))
        tasks.cancel_scope.cancel()


async def test_a_file_next_to_several_sources_belongs_to_all_of_them(tmp_path: Path) -> None:
    folder = tmp_path / ".local/share/gptme/logs/2026-01-01-walking-fox"
    (folder / "branches").mkdir(parents=True)
    message = json.dumps({"role": "user", "content": "hello", "timestamp": "2026-01-01T10:00:00+00:00"}) + "\n"
    sources = [folder / "conversation.jsonl", folder / "branches" / "main-edit-0.jsonl"]
    for path in sources:
        path.write_text(message)
    places = Places(lambda: [folder], lambda: [source(path, Gptme()) for path in sources])
    async with stored(tmp_path / "home") as store:
        watcher = Watcher(store, places, ImportOptions(), lambda _: None)
        await watcher._found()
        assert watcher._sources_of(folder / "config.toml") == set(sources)
        assert watcher._sources_of(folder / "other.toml") == set()


async def test_changes_that_were_not_reported_are_noticed_when_another_location_appears(tmp_path: Path) -> None:
    unwatched, other = tmp_path / "a.talk", tmp_path / "later"
    unwatched.write_bytes(HEAD + USER)
    places = Places(lambda: [other], lambda: [source(unwatched)])
    async with stored(tmp_path / "home") as store, anyio.create_task_group() as tasks:
        ready = anyio.Event()
        tasks.start_soon(Watcher(store, places, ImportOptions(), lambda _: None).run, None, lambda _: ready.set())
        await ready.wait()
        unwatched.write_bytes(HEAD + USER + ONE)
        other.mkdir()
        await until(store, lambda said: said == {"Lines": "hello one"})
        tasks.cancel_scope.cancel()


@pytest.mark.slow
async def test_a_location_that_appears_and_disappears_is_watched(tmp_path: Path) -> None:
    place = tmp_path / "not" / "yet"
    async with stored(tmp_path / "home") as store, watched(store, place):
        await anyio.sleep(0.2)
        place.mkdir(parents=True)
        (place / "a.talk").write_bytes(HEAD + USER)
        await until(store, lambda said: said == {"Lines": "hello"})
        (place / "a.talk").unlink()
        place.rmdir()
        await anyio.sleep(1.2)
        place.mkdir()
        (place / "a.talk").write_bytes(HEAD + USER + ONE)
        await until(store, lambda said: said == {"Lines": "hello one"})


async def test_a_replaced_file_is_read_again(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "a.talk").write_bytes(HEAD + USER)
    async with stored(tmp_path / "home") as store, watched(store, place):
        await until(store, lambda said: said == {"Lines": "hello"})
        other = place / "other"
        other.write_bytes(HEAD + USER + ONE + NEXT)
        other.replace(place / "a.talk")
        await until(store, lambda said: said == {"Lines": "hello one and then"})
        (place / "a.talk").rename(place / "moved.talk")
        with (place / "moved.talk").open("ab") as file:
            file.write(line(id="x", parent="u2", role="user", text="from elsewhere"))
        await until(store, lambda said: said == {"Lines": "hello one and then from elsewhere"})
