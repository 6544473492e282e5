"""Fetching files of other machines."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_machine import assemble
from host_stage import FILE, Machines, add_session, line, opencode, titles
from import_stage import stored
from moot.config.settings import HostSettings
from moot.imports.conversations import ImportOptions
from moot.imports.hosts.connection import ssh_command
from moot.imports.hosts.places import remote_places
from moot.imports.hosts.sync import LARGEST, sync_hosts
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import local_places, local_sources

pytestmark = pytest.mark.anyio

STORES = Path(__file__).parents[2] / "recorded" / "stores"
PROJECT_FORMATS = {"mtm", "aider", "crush"}
"""Formats of programs that store conversations in the folders of projects, which are not fetched."""


async def test_a_growing_session_is_fetched_and_imported_once(machines: Machines) -> None:
    file = machines.write("laptop", FILE, line(1, "hello") + line(2, "hi"))
    async with stored(machines.home) as store:
        (first,) = await machines.sync(store, "laptop")
        assert (first.new, first.error, first.problems) == (1, "", [])
        (again,) = await machines.sync(store, "laptop")
        assert (again.unchanged, again.fetched, again.imported.unchanged) == (1, 0, 1)
        with file.open("a") as opened:
            opened.write(line(3, "more") + "x" * 9_000)
        (grown,) = await machines.sync(store, "laptop")
        assert (grown.grown, grown.changed) == (1, 0)
        assert machines.copy("laptop", FILE).read_bytes() == file.read_bytes()
        assert await titles(store) == [("laptop", "hello", 3)]
        with file.open("a") as opened:
            opened.write("y" * 100)
        (tail,) = await machines.sync(store, "laptop")
        assert tail.fetched == 100 + 2 * 4096
        assert machines.copy("laptop", FILE).read_bytes() == file.read_bytes()


async def test_a_file_rewritten_in_place_is_fetched_completely(machines: Machines) -> None:
    file = machines.write("laptop", FILE, line(1, "hello") + line(2, "hi"))
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop")
        file.write_text(line(1, "another beginning") + line(2, "hi") + line(3, "more"))
        (changed,) = await machines.sync(store, "laptop")
        assert (changed.grown, changed.changed, changed.problems) == (0, 1, [])
        assert machines.copy("laptop", FILE).read_bytes() == file.read_bytes()


async def test_nothing_is_written_there_and_the_copies_are_private(machines: Machines) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    root = machines.homes / "laptop"
    for place in [*root.rglob("*"), root]:
        place.chmod(0o555 if place.is_dir() else 0o444)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    async with stored(machines.home) as store:
        (report,) = await machines.sync(store, "laptop")
        assert not report.faulty
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
    assert stat.S_IMODE((machines.home / "data" / "hosts" / "laptop").stat().st_mode) == 0o700


async def test_only_conversations_are_fetched(machines: Machines) -> None:
    secrets = (".claude/.credentials.json", ".codex/auth.json", ".pi/agent/auth.json", ".config/aichat/config.yaml", ".ssh/id_rsa")
    inside = (".cline/data/secrets.json", ".cline/data/tasks/1/secrets.json", ".codex/sessions/auth.json", ".tailored-ai/config.json")
    cowork = ".config/Claude/local-agent-mode-sessions/o/u/local_1/"
    beside = (
        *(f"{cowork}{name}" for name in (".claude/.credentials.json", ".claude/.claude.json", "mcp.json", "uploads/customers.db")),
        *(f".openclaw/agents/main/agent/{name}.json" for name in ("auth-profiles", "models", "oauth")),
        *(".config/Kiro/User/globalStorage/kiro.kiroagent/profile.json", ".openclaw/agents/main/sessions/sessions.json"),
        *(".claude/projects/p/.env", ".claude/projects/p/service-account.json", ".gemini/tmp/x/settings.json", "Documents/a.jsonl"),
    )
    for path in (*secrets, *inside, *beside):
        machines.write("laptop", path, '{"key": "sk-1"}')
    wanted = {
        FILE,
        ".codex/sessions/2026/08/01/rollout-2026-08-01T10-00-00-x.jsonl",
        ".config/Code/User/workspaceStorage/abc/workspace.json",
        ".config/Code/User/workspaceStorage/abc/chatSessions/c.jsonl",
        ".cline/data/tasks/1/api_conversation_history.json",
        ".kimi/kimi.json",
        ".copilot/session-state/s/workspace.yaml",
        ".gemini/tmp/x/.project_root",
        ".config/aichat/sessions/a.yaml",
        ".local/share/opencode/opencode-dev.db",
        ".local/share/zed/threads/threads.db",
        ".local/share/zed/threads/threads.db-wal",
        ".factory/sessions/p/a.settings.json",
    }
    for path in wanted:
        machines.write("laptop", path, "{}")
    (machines.homes / "laptop" / ".claude/projects/link.jsonl").symlink_to(machines.homes / "laptop" / ".ssh" / "id_rsa")
    (machines.homes / "laptop" / ".claude/projects/all").symlink_to(machines.homes / "laptop" / "Documents")
    os.mkfifo(machines.homes / "laptop" / ".claude/projects/pipe.jsonl")
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop")
    assert machines.copied("laptop") == wanted


async def test_an_open_database_is_copied_with_its_log(machines: Machines) -> None:
    path = machines.homes / "laptop" / ".local/share/opencode/opencode.db"
    with closing(opencode(path, ["one"])) as connection:
        async with stored(machines.home) as store:
            (first,) = await machines.sync(store, "laptop")
            assert first.new == 2 and first.imported.conversations["added"] == 1
            add_session(connection, "two")
            (second,) = await machines.sync(store, "laptop")
            assert (second.changed, second.unchanged) == (1, 1)  # the log only
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            add_session(connection, "three")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            await machines.sync(store, "laptop")
            assert [title for _, title, _ in await titles(store)] == ["one", "three", "two"]
    assert (
        not machines.copy("laptop", ".local/share/opencode/opencode.db-wal").exists()
        or machines.copy("laptop", ".local/share/opencode/opencode.db-wal").stat().st_size == 0
    )


async def test_a_file_that_keeps_changing_is_reported_and_the_rest_is_imported(machines: Machines) -> None:
    machines.write("laptop", ".local/share/amp/threads/T-1.json", "{}")
    machines.write("laptop", FILE, line(1, "hello"))
    # the file changes each time that it is read
    machines.tool("tail", 'case "$3" in *T-1*) echo "{}" >>"$3";; esac\nexec /usr/bin/tail "$@"\n')
    async with stored(machines.home) as store:
        (report,) = await machines.sync(store, "laptop")
        assert report.problems == ["~/.local/share/amp/threads/T-1.json can't be read completely, or keeps changing."]
        assert await titles(store) == [("laptop", "hello", 1)]
    assert machines.copied("laptop") == {FILE}


async def test_a_file_that_grows_while_it_is_fetched_is_limited_too(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = machines.write("laptop", ".local/share/amp/threads/T-1.json", "{}")
    machines.write("laptop", FILE, line(1, "hello"))
    async with stored(machines.home) as store:
        machines.tool("tail", f'case "$3" in *T-1*) truncate -s {LARGEST + 1} "$3"; exit;; esac\nexec /usr/bin/tail "$@"\n')
        (report,) = await machines.sync(store, "laptop")
        assert report.problems == ["~/.local/share/amp/threads/T-1.json is larger than 4 GiB and is skipped."]
        assert machines.copied("laptop") == {FILE}
        thread.write_text("{}")
        machines.tool("tail", 'case "$3" in *T-1*) truncate -s 1G "$3"; exit;; esac\nexec /usr/bin/tail "$@"\n')
        monkeypatch.setattr("moot.imports.hosts.sync._FREE", shutil.disk_usage(machines.home).free - (512 << 20))
        (report,) = await machines.sync(store, "laptop")
        assert "There is not enough disk space: 1,024 MB are needed" in report.error


async def test_deleted_files_are_removed_from_the_copies_and_their_conversations_stay(machines: Machines) -> None:
    file = machines.write("laptop", FILE, line(1, "hello"))
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop")
        file.unlink()
        (report,) = await machines.sync(store, "laptop")
        assert (report.gone, machines.copied("laptop")) == (1, set())
        assert await titles(store) == [("laptop", "hello", 1)]


async def test_a_file_can_take_the_place_of_a_folder(machines: Machines) -> None:
    names = [".claude/projects/p/agent-a.jsonl", ".claude/projects/p/agent-a.jsonl/agent-b.jsonl"]
    async with stored(machines.home) as store:
        for name in (*names, names[0]):
            shutil.rmtree(machines.homes / "laptop", ignore_errors=True)
            machines.write("laptop", name, line(1, "hello"))
            (report,) = await machines.sync(store, "laptop")
            assert (report.new, report.problems, machines.copied("laptop")) == (1, [], {name})
        shutil.rmtree(machines.homes / "laptop" / ".claude")
        await machines.sync(store, "laptop")
        assert list((machines.home / "data" / "hosts" / "laptop" / "home").iterdir()) == []


async def test_the_log_of_a_database_that_keeps_changing_is_kept(machines: Machines) -> None:
    path = machines.homes / "laptop" / ".local/share/opencode/opencode.db"
    with closing(opencode(path, ["one"])):
        async with stored(machines.home) as store:
            await machines.sync(store, "laptop")
            path.with_name("opencode.db-wal").unlink()
            machines.tool("tail", 'case "$3" in *opencode.db) touch "$3";; esac\nexec /usr/bin/tail "$@"\n')
            os.utime(path)
            (report,) = await machines.sync(store, "laptop")
            assert "keeps changing" in report.problems[0]
            assert await titles(store) == [("laptop", "one", 1)]
            assert machines.copied("laptop") >= {f".local/share/opencode/opencode.db{end}" for end in ("", "-wal")}


async def test_many_problems_are_counted(machines: Machines) -> None:
    for number in range(23):
        machines.write("laptop", f".workbuddy/projects/p/{number:02}.jsonl", "{}")
    machines.tool("tail", 'rm "$3"\n')
    async with stored(machines.home) as store:
        (report,) = await machines.sync(store, "laptop")
        assert (len(report.problems), report.problems[-1]) == (21, "3 more problems.")


async def test_a_dry_run_fetches_and_stores_nothing(machines: Machines) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    async with stored(machines.home) as store:
        (report,) = await machines.sync(store, "laptop", dry_run=True)
        assert (report.new, report.fetched) == (1, len(line(1, "hello")))
        assert machines.copied("laptop") == set() and await titles(store) == []


async def test_histories_of_every_program_are_the_same_as_there(machines: Machines) -> None:
    home = machines.homes / "laptop"
    assemble(home)
    formats = {location.format.name for location in local_places(home, {}) if location.place.is_relative_to(home)}
    found: list[list[tuple[str, str, int, str]]] = []
    for remote in (True, False):
        async with stored(machines.home if remote else machines.home.parent / "other") as store:
            if remote:
                (report,) = await machines.sync(store, "laptop")
                assert (report.error, report.problems, report.imported.failed) == ("", [], [])
            else:
                await import_sources(store, local_sources(home, {}, machines.home / "data"), ImportOptions(), Report())
            items = (await store.conversations.list(limit=500)).items
            places = [(one, one.origin or {}) for one in items]
            found.append(sorted((str(at["format"]), one.title, one.message_count, str(at["directory"])) for one, at in places))
    assert [one for one in found[1] if one not in found[0]] == [one for one in found[1] if one[0] in PROJECT_FORMATS]
    assert len({one[0] for one in found[0]}) > 15 and {one[0] for one in found[0]} <= formats


@pytest.mark.parametrize("home", sorted(path.name for path in STORES.iterdir()))
@pytest.mark.slow
def test_the_named_files_are_all_that_is_read(home: str, tmp_path: Path) -> None:
    places, found = remote_places(), list[list[Any]]()
    for name in ("whole", "copied"):
        shutil.copytree(STORES / home, tmp_path / name)
    for file in [path for path in (tmp_path / "copied").rglob("*") if path.is_file()]:
        if not places.wants(str(file.relative_to(tmp_path / "copied"))):
            file.unlink()
    for name in ("whole", "copied"):
        sources = local_sources(tmp_path / name, {}, tmp_path / "data")
        read = [(source.format, one.whole()) for source in sources for one in source.format.read(source.path)]
        found.append([(one.conversation.source_id, one.entries, one.facts) for format, one in read if format.name not in PROJECT_FORMATS])
    assert found[0] == found[1]


async def test_agents_and_the_home_can_be_chosen(machines: Machines) -> None:
    machines.write("laptop", f"elsewhere/{FILE}", line(1, "hello"))
    machines.write("laptop", "elsewhere/.codex/sessions/rollout-1.jsonl", "{}\n")
    host = HostSettings("laptop", "laptop", home=str(machines.homes / "laptop" / "elsewhere"), agents=("claude",))
    async with stored(machines.home) as store:
        await sync_hosts(store, [host], machines.home / "data", ImportOptions())
    assert machines.copied("laptop") == {FILE}


def test_ssh_asks_nothing_and_takes_no_option_from_the_destination() -> None:
    command = ssh_command(HostSettings("laptop", "ana@laptop", port=2222, identity="/k"))
    assert command[-3:] == ["--", "ana@laptop", "exec sh -s"]
    assert {"BatchMode=yes", "ConnectTimeout=15", "ForwardAgent=no", "2222", "/k"} < set(command)
    assert not any("HostKeyChecking" in word for word in command)


def test_places_depend_on_no_file_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = remote_places().all
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", "/elsewhere")
    assert remote_places().all == before
    assert not any(place.path.startswith(("/", "..")) for place in before)
