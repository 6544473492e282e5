"""Threads of Zed's agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from import_stage import stored
from moot.formats.kit.database import create_database
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import sources_at
from moot.plugins import FORMATS
from moot.types.format import WholeConversation
from moot.types.message import text_of

TABLE = """CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT, updated_at TEXT, data_type TEXT, data BLOB, parent_id TEXT,
    folder_paths TEXT, folder_paths_order TEXT)"""


def user(id: str) -> Any:
    return {"User": {"id": id, "content": [{"Text": f"prompt {id}"}]}}


def agent(words: str) -> Any:
    return {"Agent": {"content": [{"Text": words}], "tool_results": {}}}


def thread(*messages: Any, **more: Any) -> Any:
    return {"version": "0.3.0", "title": "Lists", "messages": list(messages), "model": {"provider": "zed.dev", "model": "m"}, **more}


def row(id: str, value: Any, kind: str = "zstd", *, parent: str | None = None, folders: str = "", order: str = "") -> Any:
    data = json.dumps(value).encode()
    return (id, "Lists", "2026-07-27T02:06:40Z", kind, zstandard.compress(data) if kind == "zstd" else data, parent, folders, order)


def database(folder: Path, *rows: Any) -> Path:
    path = folder / "threads.db"
    path.write_bytes(create_database(TABLE, [("INSERT INTO threads VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)]))
    return path


def read(path: Path) -> list[WholeConversation]:
    return [one.whole() for one in FORMATS.make("zed").read(path)]


def steps(found: WholeConversation) -> list[Any]:
    return [step for one in found.messages for step in one.metadata.get("steps", [])]  # type: ignore[union-attr]


def test_tokens_of_a_prompt_are_those_of_its_last_request(tmp_path: Path) -> None:
    usage = {"a": {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 5}, "b": {"input_tokens": 20, "output_tokens": 3}}
    value = thread(user("a"), agent("one"), agent("two"), user("b"), agent("three"), request_token_usage=usage)
    (found,) = read(database(tmp_path, row("t", value)))
    assert [step.get("usage", {}).get("input") for step in steps(found)] == [None, 15, 20]
    assert found.fidelity.approximated == {"usage": 2} and not found.fidelity.kept.get("usage")


def test_a_thread_that_was_imported_by_zed_has_no_tokens(tmp_path: Path) -> None:
    value = thread(user("a"), agent("one"), request_token_usage={"a": {"input_tokens": 10, "output_tokens": 2}}, imported=True)
    (found,) = read(database(tmp_path, row("t", value)))
    assert [step.get("usage") for step in steps(found)] == [None]


@pytest.mark.anyio
async def test_the_sum_of_a_thread_counts_once_when_the_thread_grows(tmp_path: Path) -> None:
    async with stored(tmp_path / "moot") as store:
        for turns in (1, 2, 3):
            messages = [one for turn in range(turns) for one in (user(f"u{turn}"), agent(f"a{turn}"))]
            total = {"input_tokens": 100 * turns, "output_tokens": 10 * turns}
            path = database(tmp_path, row("t", thread(*messages, cumulative_token_usage=total)))
            await import_sources(store, sources_at(path, "", tmp_path / "moot"), ImportOptions(), Report())
            counted = (await store.stats.usage(wait=60)).total
            assert (counted.input, counted.output) == (100 * turns, 10 * turns)


def test_parents_come_first_and_the_users_first_folder_is_the_directory(tmp_path: Path) -> None:
    value = thread(user("a"), agent("one"))
    rows = [row("child", value, parent="top", folders="/srv/a\n/srv/b", order="1,0"), row("top", value, "json")]
    found = read(database(tmp_path, *rows))
    assert [(one.conversation.source_id, one.conversation.parent, one.facts.directory) for one in found] == [
        ("top", None, ""),
        ("child", "top", "/srv/b"),
    ]


@pytest.mark.parametrize("kind", ["lz4", "zstd"])
def test_a_thread_that_cannot_be_unpacked_is_reported(tmp_path: Path, kind: str) -> None:
    rows = [(*row("bad", {}, "json")[:3], kind, b"broken", None, "", ""), row("good", thread(user("a"), agent("one")))]
    bad, good = read(database(tmp_path, *rows))
    assert (bad.fidelity.lost, [text_of(one.parts) for one in good.messages]) == ({"records": 1}, ["prompt a", "one"])
