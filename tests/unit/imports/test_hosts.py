"""Synchronization with other machines: a program named `ssh` runs the commands here, in folders that stand for the machines' homes."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from import_stage import stored
from moot.config.settings import HostSettings
from moot.imports.conversations import ImportOptions
from moot.imports.hosts.connection import ssh_command
from moot.imports.hosts.mirror import Mirror
from moot.imports.hosts.places import remote_places
from moot.imports.hosts.sync import HostReport, sync_hosts
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import local_sources
from moot.types.store import Store

pytestmark = pytest.mark.anyio

SESSION = "11111111-2222-4333-8444-555555555555"
FILE = f".claude/projects/-home-ana-code/{SESSION}.jsonl"
SSH = """#!/bin/sh
while [ $# -gt 2 ]; do shift; done
HOME="{homes}/$1"; export HOME
cd "$HOME" || {{ echo "Could not resolve hostname $1" >&2; exit 255; }}
{before}
exec sh -c "$2"
"""


def line(number: int, text: str, *, at: str = "2026-08-01T10:00", session: str = SESSION) -> str:
    role = "user" if number % 2 else "assistant"
    content: Any = text if role == "user" else [{"type": "text", "text": text}]
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": {"input_tokens": 10, "output_tokens": 5}}
    parent = f"{session[:-1]}{number - 1}" if number > 1 else None
    facts = {"type": role, "uuid": f"{session[:-1]}{number}", "parentUuid": parent, "sessionId": session, "cwd": "/home/ana/code"}
    return json.dumps({**facts, "timestamp": f"{at}:{number:02}.000Z", "message": message}) + "\n"


class Machines:
    """The homes of other machines, and moot's own."""

    def __init__(self, folder: Path) -> None:
        self.homes, self.home, self.bin = folder / "homes", folder / "moot", folder / "bin"
        self.bin.mkdir()
        self.answer("")

    def answer(self, before: str) -> None:
        """Let the machines run shell commands before they answer."""
        program = self.bin / "ssh"
        program.write_text(SSH.format(homes=self.homes, before=before))
        program.chmod(0o755)

    def tool(self, name: str, script: str) -> Path:
        """Replace a program on all machines."""
        file = self.bin / name
        file.write_text(f"#!/bin/sh\n{script}")
        file.chmod(0o755)
        return file

    def write(self, host: str, path: str, content: str | bytes) -> Path:
        file = self.homes / host / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def copied(self, host: str) -> set[str]:
        home = self.home / "data" / "hosts" / host / "home"
        return {str(path.relative_to(home)) for path in home.rglob("*") if not path.is_dir()}

    def copy(self, host: str, path: str) -> Path:
        return self.home / "data" / "hosts" / host / "home" / path

    async def sync(self, store: Store, *hosts: str, timeout: float = 20, **wanted: Any) -> list[HostReport]:
        settings = [HostSettings(host, host, timeout=timeout) for host in hosts]
        return await sync_hosts(store, settings, self.home / "data", ImportOptions(**wanted))


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    found = Machines(tmp_path)
    monkeypatch.setenv("PATH", f"{found.bin}:{os.environ['PATH']}")
    yield found
    for place in [found.homes, *found.homes.rglob("*")]:
        if place.is_dir() and not place.is_symlink():
            place.chmod(0o755)


def opencode(path: Path, sessions: Sequence[str]) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript(
        "PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0;"
        "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, slug TEXT, directory TEXT, title TEXT, version TEXT,"
        " time_created INTEGER, time_updated INTEGER);"
        "CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);"
        "CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);"
    )
    for session in sessions:
        add_session(connection, session)
    return connection


def add_session(connection: sqlite3.Connection, session: str) -> None:
    connection.execute("INSERT INTO session VALUES (?, 'p', NULL, 's', '/w', ?, '1', 1, 1)", (session, session))
    connection.execute(
        "INSERT INTO message VALUES (?, ?, 1, 1, ?)", (f"m{session}", session, json.dumps({"role": "user", "time": {"created": 1}}))
    )
    part = json.dumps({"type": "text", "text": f"question of {session}"})
    connection.execute("INSERT INTO part VALUES (?, ?, ?, 1, 1, ?)", (f"p{session}", f"m{session}", session, part))
    connection.commit()


async def titles(store: Store, host: str | None = None) -> list[tuple[str, str, int]]:
    found = (await store.conversations.list(host=host)).items
    return sorted((one.host, one.title, one.message_count) for one in found)


# ── what is fetched ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


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
    for path in (*secrets, *inside, ".openclaw/agents/main/agent/auth-profiles.json", ".claude/projects/p/.env", "Documents/a.jsonl"):
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


async def test_deleted_files_are_removed_from_the_copies_and_their_conversations_stay(machines: Machines) -> None:
    file = machines.write("laptop", FILE, line(1, "hello"))
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop")
        file.unlink()
        (report,) = await machines.sync(store, "laptop")
        assert (report.gone, machines.copied("laptop")) == (1, set())
        assert await titles(store) == [("laptop", "hello", 1)]


async def test_a_dry_run_fetches_and_stores_nothing(machines: Machines) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    async with stored(machines.home) as store:
        (report,) = await machines.sync(store, "laptop", dry_run=True)
        assert (report.new, report.fetched) == (1, len(line(1, "hello")))
        assert machines.copied("laptop") == set() and await titles(store) == []


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


# ── ids ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_same_id_on_two_machines_gives_two_conversations(machines: Machines, tmp_path: Path) -> None:
    machines.write("laptop", FILE, line(1, "of the laptop"))
    machines.write("server", FILE, line(1, "of the server", at="2026-08-02T10:00"))
    mine = tmp_path / "mine" / FILE
    mine.parent.mkdir(parents=True)
    mine.write_text(line(1, "of this machine", at="2026-08-03T10:00"))
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop", "server")
        await import_sources(store, local_sources(tmp_path / "mine", {}, machines.home / "data"), ImportOptions(), Report())
        await machines.sync(store, "laptop", "server")
        expected = [("", "of this machine", 1), ("laptop", "of the laptop", 1), ("server", "of the server", 1)]
        assert await titles(store) == expected
        assert [await titles(store, host) for host in ("", "laptop", "server")] == [[one] for one in expected]
        usage = await store.stats.usage(wait=10)
        assert usage.conversations == 3


@pytest.mark.parametrize("order", ["here first", "there first"])
async def test_a_copied_session_is_one_conversation_of_this_machine(machines: Machines, tmp_path: Path, order: str) -> None:
    text = line(1, "hello") + line(2, "hi")
    mine = tmp_path / "mine" / FILE
    mine.parent.mkdir(parents=True)
    mine.write_text(text)
    for host in ("laptop", "server"):
        machines.write(host, FILE, text)
    async with stored(machines.home) as store:

        async def here() -> None:
            await import_sources(store, local_sources(tmp_path / "mine", {}, machines.home / "data"), ImportOptions(), Report())

        steps: list[Callable[[], Any]] = [here, lambda: machines.sync(store, "laptop"), lambda: machines.sync(store, "server")]
        for step in steps if order == "here first" else reversed(steps):
            await step()
        (only,) = (await store.conversations.list()).items
        assert (only.host, only.message_count, (only.origin or {})["path"]) == ("", 2, str(mine))
        with (machines.homes / "server" / FILE).open("a") as opened:  # the session continues on two machines
            opened.write(line(3, "there"))
        await machines.sync(store, "server", "laptop")
        mine.write_text(text + line(3, "here", at="2026-08-09T10:00"))
        await here()
        await machines.sync(store, "server", "laptop")
        (only,) = (await store.conversations.list()).items
        assert (only.host, only.message_count) == ("", 4)
        assert [message.parts[-1]["text"] for message in await store.conversations.branch(only.id)] == ["hello", "hi", "here"]


async def test_a_renamed_machine_keeps_its_conversations(machines: Machines) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop")
        (machines.homes / "laptop").rename(machines.homes / "notebook")
        other = FILE.replace("1111", "2222")
        machines.write("notebook", other, line(1, "later", at="2026-08-02T10:00", session=SESSION.replace("1111", "2222")))
        await machines.sync(store, "notebook")
        assert await titles(store) == [("laptop", "hello", 1), ("notebook", "later", 1)]


async def test_folders_of_another_machine_are_not_used_here(machines: Machines, tmp_path: Path) -> None:
    machines.write("laptop", FILE, line(1, "hello").replace("/home/ana/code", str(tmp_path)))
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop")
        (only,) = (await store.conversations.list()).items
        assert only.directory == "" and only.origin is not None
        assert (only.origin["placed"], only.origin["directory"], only.origin["path"]) == (False, str(tmp_path), f"laptop:~/{FILE}")


async def test_a_purged_conversation_and_its_copy_do_not_return(machines: Machines) -> None:
    file = machines.write("laptop", FILE, line(1, "secret plan"))
    database = machines.homes / "laptop" / ".local/share/opencode/opencode.db"
    with closing(opencode(database, ["one", "two"])):
        pass
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop")
        ids = {one.title: one.id for one in (await store.conversations.list()).items}
        receipt = await store.erasure.purge([ids["secret plan"], ids["one"]])
        deleted = {Path(one.path).name for one in receipt.files if one.what == "deleted"}
        assert deleted >= {Path(FILE).name, "opencode.db"}
        with file.open("a") as opened:
            opened.write(line(2, "more of it"))
        with closing(sqlite3.connect(database)) as connection:
            add_session(connection, "three")
        (report,) = await machines.sync(store, "laptop")
        assert report.imported.conversations["purged"] == 1
        assert [title for _, title, _ in await titles(store)] == ["three", "two"]
        assert machines.copy("laptop", FILE).read_bytes() == b""


# ── hostile and broken machines ───────────────────────────────────────────────────────────────────────────────────────────────────


FAULTS = {
    "garbage": ("head -c 400000 /dev/zero; exit 0", "sent more data than expected"),
    "nothing": ("exit 0", "The connection ended early"),
    "words": ("echo '\033[31mno\033[0m way' >&2; exit 1", "ended early: no way"),
    "refused": ("echo 'Permission denied (publickey).' >&2; exit 255", "Permission denied (publickey)"),
    "silent": ("sleep 60", "sent nothing for 1 seconds"),
    "flood": ("cat /dev/zero; exit 0", "sent more data than expected"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_broken_machine_is_reported_and_the_others_are_imported(machines: Machines, fault: str) -> None:
    before, message = FAULTS[fault]
    machines.write("laptop", FILE, line(1, "hello"))
    machines.write("broken", FILE, line(1, "never", at="2026-08-02T10:00"))
    machines.answer(f'case "$HOME" in */broken) {before};; esac')
    async with stored(machines.home) as store:
        broken, fine = await machines.sync(store, "broken", "laptop", timeout=1 if fault == "silent" else 20)
        assert message in broken.error and "\033" not in broken.error
        assert not fine.faulty
        assert await titles(store) == [("laptop", "hello", 1)]


BSD = """[ "$1" = -f ] || exit 1
format=$(printf %s "$2" | sed 's/%z/%s/; s/%Fm/%.9Y/; s/%N/%n/'); shift 2
exec /usr/bin/stat -c "$format" "$@"
"""
STATS = {"bsd": BSD, "busybox": '[ "$1" = -c ] || exit 1\nexec /usr/bin/stat "$@"\n'}


@pytest.mark.parametrize("system", STATS)
async def test_systems_without_gnu_find_are_read_too(machines: Machines, system: str) -> None:
    machines.tool("find", 'case "$*" in *-printf*) exit 1;; esac\nexec /usr/bin/find "$@"\n')
    machines.tool("stat", STATS[system])
    file = machines.write("laptop", FILE, line(1, "hello"))
    (file.parent / "a\nb.jsonl").write_text("{}\n")
    with closing(opencode(machines.homes / "laptop" / ".local/share/opencode/opencode.db", ["one"])):
        async with stored(machines.home) as store:
            (first,) = await machines.sync(store, "laptop")
            assert (first.new, first.faulty) == (3, False)
            os.utime(file, (1_700_000_000, 1_700_000_000))
            await machines.sync(store, "laptop")
            (again,) = await machines.sync(store, "laptop")
            assert again.unchanged >= 1 and not again.faulty
            with file.open("a") as opened:
                opened.write(line(2, "hi"))
            (grown,) = await machines.sync(store, "laptop")
            assert (grown.grown, machines.copy("laptop", FILE).read_bytes()) == (1, file.read_bytes())
            assert await titles(store) == [("laptop", "hello", 2), ("laptop", "one", 1)]


async def test_a_machine_without_find_and_stat_is_reported(machines: Machines) -> None:
    for name in ("find", "stat"):
        machines.tool(name, "exit 1\n")
    async with stored(machines.home) as store:
        machines.write("laptop", FILE, line(1, "hello"))
        (report,) = await machines.sync(store, "laptop")
        assert report.error == "The machine has neither GNU find nor stat."


async def test_greetings_are_ignored(machines: Machines) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    machines.answer("printf 'Welcome!\\nready 1\\n'; echo noise >&2")
    async with stored(machines.home) as store:
        (report,) = await machines.sync(store, "laptop")
        assert not report.faulty and await titles(store) == [("laptop", "hello", 1)]


async def test_nothing_is_imported_after_a_lost_connection_until_everything_has_arrived(machines: Machines) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    later = SESSION.replace("1", "9")
    text = line(1, "last", at="2026-08-02T10:00", session=later) + " " * 300_000
    machines.write("laptop", f".claude/projects/z/{later}.jsonl", text)
    head = machines.tool("head", '[ "$2" -gt 300000 ] && { /usr/bin/head -c 1000; kill -9 $PPID; }\nexec /usr/bin/head "$@"\n')
    async with stored(machines.home) as store:
        (report,) = await machines.sync(store, "laptop")
        assert "The connection ended early" in report.error
        assert await titles(store) == [] and machines.copied("laptop") == {FILE}
        head.unlink()
        (again,) = await machines.sync(store, "laptop")
        assert (again.error, again.new, again.unchanged) == ("", 1, 1)
        assert [title for _, title, _ in await titles(store)] == ["hello", "last"]


async def test_unusual_names_are_skipped_and_reported(machines: Machines) -> None:
    folder = machines.write("laptop", FILE, line(1, "hello")).parent
    for name in ("a\nb.jsonl", "\033[2J.jsonl"):
        (folder / name).write_text(line(1, "bad"))
    good = {"-rf.jsonl", "$(touch x).jsonl", "it's.jsonl", "ü \udcff.jsonl", "*.jsonl"}
    for name in good:
        (folder / name).write_text("{}\n")
    async with stored(machines.home) as store:
        (report,) = await machines.sync(store, "laptop")
        assert len(report.problems) == 1 and "Files with unusual names are skipped" in report.problems[0]
        assert report.problems[0].isprintable()
        assert {Path(path).name for path in machines.copied("laptop")} == {*good, Path(FILE).name}
        assert await titles(store) == [("laptop", "hello", 1)]


@pytest.mark.parametrize(
    "record", ["1 1 1 ./../../x.jsonl", "1 1 1 /etc/x.jsonl", "1 1 1 ./.claude/projects/../../../x.jsonl", "-5 1 1 ./x"]
)
async def test_a_machine_cannot_choose_where_its_files_are_stored(machines: Machines, record: str) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    machines.tool("find", f"printf '%s\\0' '{record}'\nexec /usr/bin/find \"$@\"\n")
    async with stored(machines.home) as store:
        (report,) = await machines.sync(store, "laptop")
        assert machines.copied("laptop") <= {FILE}
        assert report.error or any("unusual names" in problem for problem in report.problems)
    assert not list(machines.home.parent.glob("x.jsonl")) and not (machines.home / "data" / "x.jsonl").exists()


async def test_a_list_of_projects_cannot_name_files_of_this_machine(machines: Machines, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with closing(sqlite3.connect(tmp_path / "mine" / "crush.db")) as connection:
        connection.execute("CREATE TABLE sessions (id TEXT)")
    listed = {
        "projects": [
            {"path": "/", "data_dir": str(tmp_path / "mine")},
            {"path": "/", "data_dir": "~/" + "../" * 12 + str(tmp_path / "mine")},
        ]
    }
    machines.write("laptop", FILE, line(1, "hello"))
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop")
        file = machines.copy("laptop", ".local/share/crush/projects.json")
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(listed))
        (report,) = await machines.sync(store, "laptop")
        assert (report.imported.sources, report.imported.failed) == (1, [])


async def test_two_synchronizations_at_once_do_not_disturb_each_other(machines: Machines) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    async with stored(machines.home) as store:
        with Mirror(machines.home / "data" / "hosts" / "laptop").locked():
            (report,) = await machines.sync(store, "laptop")
        assert report.error == "Another process is synchronizing it. Try again when it is finished."
        assert not (await machines.sync(store, "laptop"))[0].faulty
