"""Copies of messages in imported sessions: each model call is counted once, in whichever order the files arrive and grow."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest

from format_samples.opencode import database
from import_stage import stored
from moot.config.settings import Settings
from moot.formats.agents.codex.format import CodexFormat
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import Source, local_sources, mark_of
from moot.types.canonical import dumps
from moot.types.store import Store

pytestmark = pytest.mark.anyio

STORES = Path(__file__).parents[1] / "recorded" / "stores"
SCHEMAS = STORES.parent / "schemas"
FORKS = ("claude-fork", "claude-subagent", "codex-fork", "codex-subagents", "opencode-fork", "pi-fork")


@pytest.fixture(params=FORKS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(STORES / str(request.param), tmp_path / "user"))


def sources(home: Path) -> list[Source]:
    return list(local_sources(home, {}, home / "moot"))


async def take(store: Store, found: Sequence[Source]) -> Report:
    report = Report()
    await import_sources(store, found, ImportOptions(), report)
    assert not report.failed
    return report


async def sums(store: Store) -> dict[str, tuple[int, int]]:
    """Return input tokens and cost of each conversation by its id in the source, and check that statistics say the same."""
    found = list((await store.conversations.list(limit=200)).items)
    found += [child for one in found for child in (await store.conversations.list(parent=one.id)).items]
    of_each = {str((one.origin or {})["source_id"]): (one.usage.input or 0, one.cost or 0) for one in found}
    total = (await store.stats.usage(wait=60)).total
    assert (sum(tokens for tokens, _ in of_each.values()), sum(cost for _, cost in of_each.values())) == (total.input, total.cost)
    for one in found:
        counted = (await store.stats.usage(conversation=one.id, apart=True, wait=60)).total
        assert (counted.input, counted.cost) == of_each[str((one.origin or {})["source_id"])]
    tops = [await store.stats.usage(conversation=one.id, wait=60) for one in found if one.parent is None]
    assert (sum(top.total.input for top in tops), sum(top.total.cost for top in tops)) == (total.input, total.cost)
    return of_each


@pytest.mark.slow
async def test_the_order_of_imports_does_not_matter(home: Path) -> None:
    results: list[dict[str, tuple[int, int]]] = []
    for number, order in enumerate(permutations(sources(home))):
        async with stored(home / f"moot-{number}") as store:
            for source in order:
                await take(store, [source])
            results.append(await sums(store))
        if number == 11:
            break
    assert all(result == results[0] for result in results)


async def test_a_fork_names_the_conversation_it_was_copied_from(tmp_path: Path) -> None:
    home = Path(shutil.copytree(STORES / "codex-fork", tmp_path / "user"))
    async with stored(home / "moot") as store:
        found = sources(home)
        for source in reversed(found):
            await take(store, [source])
        listed = {str((one.origin or {})["source_id"]): one for one in (await store.conversations.list()).items}
        original, *forks = [listed[source.path.stem[-36:]] for source in found]
        assert original.forked_from is None
        assert [fork.forked_from for fork in forks] == [original.id] * 2
        await store.erasure.purge([original.id])
        left = [await store.conversations.get(fork.id) for fork in forks]
        assert sorted(one.forked_from is None for one in left) == [False, True]
        assert {one.forked_from for one in left} <= {None, *(fork.id for fork in forks)}


@pytest.mark.parametrize("name", ["claude-fork", "codex-fork", "pi-fork"])
@pytest.mark.slow
async def test_files_that_grow_line_by_line_give_the_same_sums(name: str, tmp_path: Path) -> None:
    whole, growing = tmp_path / "whole", tmp_path / "growing"
    shutil.copytree(STORES / name, whole)
    async with stored(whole / "moot") as store:
        await take(store, sources(whole))
        expected = await sums(store)
    shutil.copytree(STORES / name, growing)
    files = {source.path: source.path.read_bytes().splitlines(keepends=True) for source in sources(growing)}
    async with stored(growing / "moot") as store:
        for count in range(1, max(map(len, files.values())) + 1):
            for path, lines in files.items():
                path.write_bytes(b"".join(lines[:count]))
            await take(store, sources(growing))
        assert await sums(store) == expected


async def test_imports_of_earlier_versions_are_counted_once_after_the_next_import(tmp_path: Path) -> None:
    """The database of schema 17 contains this home, imported by a version that counted copies too."""
    settings = Settings(tmp_path / "moot")
    settings.database.parent.mkdir(parents=True)
    settings.database.write_bytes(gzip.decompress((SCHEMAS / "17.db.gz").read_bytes()))
    home = Path(shutil.copytree(STORES / "claude-fork", tmp_path / "user"))
    async with stored(settings.home) as store:
        before = (await store.stats.usage(wait=60)).total
        await take(store, sources(home))
        after = (await store.stats.usage(wait=60)).total
        assert (before.input - after.input, before.cost - after.cost) == (297_000 - 102_000, 847_500_000 - 244_500_000)
        again = await take(store, sources(home))
        assert again.unchanged == len(sources(home))


def opencode_home(home: Path, *, older: bool, later: bool) -> Path:
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(database(older=older, later=later))
    return home


@pytest.mark.parametrize("older", [True, False])
async def test_calls_that_opencode_2_has_copied_into_a_fork_are_counted_once(tmp_path: Path, older: bool) -> None:
    home = opencode_home(tmp_path / "user", older=older, later=True)
    async with stored(tmp_path / "moot") as store:
        report = await take(store, sources(home))
        assert await sums(store) == {
            "ses_1": (100 + 250 + 300, 875_000_000),
            "ses_2": (400, 1_000_000_000),
            "ses_3": (10 + 7, 750_000_000),
            "ses_4": (20, 500_000_000),
        }
        assert (await store.stats.usage(wait=60)).total.output == 10 + 25 + 30 + 40 + 1 + 3 + 2
        assert [note for one in report.brought for note in one.notes] == [
            "a record of the unknown type 'poll' contains text that was not read"
        ]


async def test_the_upgrade_to_opencode_2_changes_no_message(tmp_path: Path) -> None:
    home = opencode_home(tmp_path / "user", older=True, later=False)
    async with stored(tmp_path / "moot") as store:
        await take(store, sources(home))
        assert await sums(store) == {"ses_1": (100, 500_000_000)}
        report = await take(store, sources(opencode_home(home, older=True, later=True)))
        assert (report.counts.grown, report.counts.rewritten) == (0, 0)
        grown = await sums(store)
    async with stored(tmp_path / "new") as store:
        await take(store, sources(home))
        assert grown == await sums(store)


async def test_a_message_is_found_once(tmp_path: Path) -> None:
    home = Path(shutil.copytree(STORES / "claude-fork", tmp_path / "user"))
    async with stored(home / "moot") as store:
        await store.search.index()
        for source in sorted(sources(home), key=lambda source: source.path, reverse=True):
            await take(store, [source])
            await store.search.index()
        for words in ("first answer", "second answer", "first question", "fork answer"):
            assert len((await store.search.search(f'"{words}"')).hits) == 1, words
        first = (await store.search.search('"first answer"')).hits[0]
        await store.conversations.delete(first.conversation)
        others = (await store.search.search('"first answer"')).hits
        assert others and first.conversation not in {hit.conversation for hit in others}


@pytest.mark.parametrize("name", ["claude-fork", "codex-fork", "pi-fork"])
@pytest.mark.slow
async def test_the_next_copy_takes_the_place_of_a_purged_original(name: str, tmp_path: Path) -> None:
    home = Path(shutil.copytree(STORES / name, tmp_path / "user"))
    found = sources(home)
    for removed in found:
        async with stored(home / f"rest-{removed.path.stem}") as store:
            await take(store, [source for source in found if source is not removed])
            expected = await sums(store)
        async with stored(home / f"purged-{removed.path.stem}") as store:
            await take(store, found)
            purged = [one for one in (await store.conversations.list()).items if str((one.origin or {})["source_id"]) not in expected]
            assert len(purged) == 1
            await store.erasure.purge([purged[0].id])
            assert await sums(store) == expected
            hits = (await store.search.search("answer", wait=10)).hits
            assert hits and len({hit.snippet for hit in hits}) == len(hits)


async def test_sessions_with_the_same_words_are_not_copies(tmp_path: Path) -> None:
    """Old versions of Codex store no turn ids, so that two short sessions can differ only in their times."""

    def session(name: str, day: int, **meta: str) -> Source:
        at = f"2025-06-{day:02}T10:00:00.000Z"
        tokens = {"input_tokens": 900, "cached_input_tokens": 0, "output_tokens": 10, "reasoning_output_tokens": 0, "total_tokens": 910}
        lines = [
            {"type": "session_meta", "payload": {"id": name, "timestamp": at, "cwd": "/work", **meta}},
            *([{"type": "session_meta", "payload": {"id": "one", "timestamp": at, "cwd": "/work"}}] if meta else []),
            {"type": "turn_context", "payload": {"cwd": "/work", "model": "gpt-5.1-codex"}},
            {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}},
            {
                "type": "response_item",
                "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]},
            },
            {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": tokens, "last_token_usage": tokens}}},
        ]
        path = tmp_path / f"rollout-2025-06-{day:02}T10-00-00-{name}.jsonl"
        path.write_bytes(b"".join(dumps({"timestamp": at, **line}) + b"\n" for line in lines))
        return Source(path, CodexFormat(), mark_of(CodexFormat(), path))

    async with stored(tmp_path / "moot") as store:
        await take(store, [session("one", 1), session("two", 2), session("three", 3, forked_from_id="one")])
        assert await sums(store) == {"one": (900, 1_225_000), "two": (900, 1_225_000), "three": (0, 0)}
