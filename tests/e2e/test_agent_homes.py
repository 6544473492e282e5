"""Homes of other programs, each imported whole: conversations, calls, words and money are as the home's `expected.json` says.

A field that is null there is not compared. `calls` and `outputs` are those of tools, `children` are conversations of sub-agents, `cost` is
in dollars, and each of `words` must be found in some message.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import zstandard

from import_stage import stored
from moot.formats.kit.fields import obj
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import Source, local_sources, sources_at
from moot.imports.unread_folders import unread_folders
from moot.types.conversation import Conversation
from moot.types.message import Message, Part, is_tool
from moot.types.store import Store

pytestmark = pytest.mark.anyio

STORES = Path(__file__).parents[1] / "recorded" / "stores"
COUNTED = {"input", "output", "cache_read", "cache_write"}


@pytest.fixture(params=sorted(store.name for store in STORES.iterdir()))
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(STORES / str(request.param), tmp_path / "user"))


def sources(home: Path, expected: dict[str, Any]) -> list[Source]:
    if expected.get("name"):
        return [source for name in expected["name"] for source in sources_at(home / name, "", home / "moot")]
    return list(local_sources(home, {}, home / "moot"))


async def conversations(store: Store, parent: str | None = None) -> list[Conversation]:
    return list((await store.conversations.list(archived=None, limit=200, parent=parent)).items)


async def messages(store: Store, conversation: Conversation) -> list[Message]:
    return [await store.conversations.message(node.id) for node in await store.tree.nodes(conversation.id)]


def has_output(part: Part) -> bool:
    return part.get("state") in ("output-available", "output-error")


async def found_in(store: Store) -> tuple[dict[str, Any], str]:
    """Return what `expected.json` describes, and the text of all messages."""
    roots = await conversations(store)
    below = [child for root in roots for child in await conversations(store, root.id)]
    whole = {one.id: await messages(store, one) for one in (*roots, *below)}
    tools = [part for some in whole.values() for message in some for part in message.parts if is_tool(part)]
    total = (await store.stats.usage(wait=60)).total
    found = {
        "conversations": len(roots),
        "children": len(below),
        "prompts": sum(message.role == "user" for one in roots for message in whole[one.id]),
        "calls": len(tools),
        "outputs": sum(map(has_output, tools)),
        **{name: getattr(total, name) for name in sorted(COUNTED)},
        "cost": total.cost / 1e9,
        "directories": {str(obj(one.origin).get("directory")) for one in roots},  # they don't exist on this machine
        "titles": {one.title for one in roots},
    }
    return found, json.dumps([message.parts for some in whole.values() for message in some], ensure_ascii=False, default=list)


@pytest.mark.slow
async def test_a_home_is_imported_as_described(home: Path) -> None:
    expected = json.loads((home / "expected.json").read_bytes())
    report = Report()
    read = sources(home, expected)
    assert expected.get("name") or not unread_folders(home, {}, read)
    async with stored(home / "moot") as store:
        await import_sources(store, read, ImportOptions(home=home), report)
        found, text = await found_in(store)
    assert not report.failed
    plain = {name: value for name, value in expected.items() if name in found and value is not None and not isinstance(value, list)}
    assert {name: found[name] for name in plain} == pytest.approx(plain)
    assert set(expected["directories"]) <= found["directories"] and set(expected["titles"]) <= found["titles"]
    assert not [word for word in expected["words"] if word not in text]


@pytest.mark.parametrize("program", ["openclaude", "cowork", "traex", "prime", "openclaw", "kilo", "mimocode"])
async def test_programs_with_the_files_of_another_one_keep_their_name(program: str, tmp_path: Path) -> None:
    home = Path(shutil.copytree(STORES / program, tmp_path / "user"))
    async with stored(home / "moot") as store:
        found = [source for source in local_sources(home, {}, home / "moot") if source.program == program]
        await import_sources(store, found, ImportOptions(home=home), Report())
        (one,) = await conversations(store)
        assert one.came_from == program and obj(one.origin).get("agent_type") is None
        assert set((await store.stats.usage(wait=60)).agents) == {program}
        assert (await store.search.search(f"agent:{program} lines", wait=10)).hits


async def test_files_in_the_folders_of_known_conversations_are_imported(tmp_path: Path) -> None:
    home, repository = tmp_path / "user", tmp_path / "code" / "shop"
    folder, other, linked = repository / "src", tmp_path / "code" / "other", tmp_path / "code" / "linked"
    for path in (home / ".factory" / "sessions", repository / ".git", folder, other, linked):
        path.mkdir(parents=True)
    history = STORES / "aider" / "code" / "meadow" / ".aider.chat.history.md"
    for place in (repository, other):
        shutil.copy(history, place)
    (other / history.name).write_bytes(history.read_bytes().replace(b"aiderask", b"another"))
    (linked / history.name).symlink_to(other / history.name)
    message = {"type": "message", "message": {"role": "user", "content": "hello"}}
    for name in ("src", "linked", "relative", "missing"):
        cwd = {"src": str(folder), "linked": str(linked), "relative": "code/other"}.get(name, "/no/such\0folder")
        lines = [{"type": "session_start", "id": name, "cwd": cwd}, message]
        (home / ".factory" / "sessions" / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    async with stored(home / "moot") as store:
        for dry_run, outcome in ((True, "would be added"), (False, "added"), (False, "known")):
            report = Report()
            options = ImportOptions(home=home, projects=True, dry_run=dry_run)
            await import_sources(store, local_sources(home, {}, home / "moot"), options, report)
            found = [(one.outcome, one.path) for one in report.brought if one.format == "aider"]
            assert found == ([(outcome, str(repository / history.name))] if outcome != "known" else [])
            assert not report.failed
        assert {one.directory for one in await conversations(store) if one.came_from == "aider"} == {str(repository)}


async def test_compressed_sessions_of_codex_are_the_same_conversations(tmp_path: Path) -> None:
    home = Path(shutil.copytree(STORES / "codex-fork", tmp_path / "user"))
    async with stored(home / "moot") as store:
        await import_sources(store, local_sources(home, {}, home / "moot"), ImportOptions(home=home), Report())
        before, _ = await found_in(store)
        for path in list(home.rglob("rollout-*.jsonl")):
            path.with_name(f"{path.name}.zst").write_bytes(zstandard.compress(path.read_bytes()))
            path.unlink()
        bomb = next(home.rglob("rollout-*")).with_name("rollout-bomb.jsonl.zst")
        bomb.write_bytes(zstandard.compress(bytes(80 << 20)))
        bomb.with_name("rollout-damaged.jsonl.zst").write_bytes(b"no zstd")
        report = Report()
        await import_sources(store, local_sources(home, {}, home / "moot"), ImportOptions(home=home), report)
        assert (await found_in(store))[0] == before and set(report.conversations) == {"known"}
        expands, damaged = (one.problem for one in report.failed)
        assert "expands to more than 200 times its size" in expands and damaged.startswith("Can't decompress")


async def test_internal_sessions_of_kimis_desktop_app_are_left_out(tmp_path: Path) -> None:
    home = tmp_path / "user"
    place = home / ".config" / "kimi-desktop" / "daimon-share" / "daimon" / "runtime" / "kimi-code" / "home" / "sessions"
    (session,) = (STORES / "kimi-code").glob(".kimi-code/sessions/*/session_*")
    for name in ("conv-1", "ctitle-1"):
        shutil.copytree(session, place / "wd_x" / name)
    found = list(local_sources(home, {}, home / "moot"))
    assert [(one.program, one.path.parents[2].name) for one in found] == [("kimi-work", "conv-1")]


async def titles(store: Store) -> set[str]:
    return {one.title for one in await conversations(store)}


async def imported(store: Store, home: Path) -> None:
    await import_sources(store, local_sources(home, {}, home / "moot"), ImportOptions(home=home), Report())


@pytest.mark.parametrize(("name", "pattern"), [("kimi-code", "state.json"), ("cowork", "local_*.json"), ("gptme", "config.toml")])
async def test_a_title_that_changes_in_another_file_is_updated(name: str, pattern: str, tmp_path: Path) -> None:
    home = tmp_path / "user"
    if name == "gptme":
        folder = home / ".local" / "share" / "gptme" / "logs" / "talk"
        shutil.copytree(STORES.parent / "formats" / "gptme", folder)
        (folder / "config.toml").write_text('[chat]\nname = "First"\n')
    else:
        shutil.copytree(STORES / name, home)
    note = next(path for path in home.rglob(pattern) if path.is_file())
    async with stored(home / "moot") as store:
        await imported(store, home)
        (before,) = await titles(store)
        note.write_text(note.read_text().replace(before, "A later title"))
        await imported(store, home)
        assert await titles(store) == {"A later title"}


async def test_the_executions_of_a_kiro_session_may_come_later(tmp_path: Path) -> None:
    home = Path(shutil.copytree(STORES / "kiro-ide", tmp_path / "user"))
    logs = next(home.rglob("414d1636299d2b9e4ce7e17fb11f63e9"))
    logs.rename(tmp_path / "logs")
    async with stored(home / "moot") as store:
        await imported(store, home)
        assert (await found_in(store))[0]["calls"] == 0
        (tmp_path / "logs").rename(logs)
        await imported(store, home)
        assert (await found_in(store))[0]["calls"] == 1
