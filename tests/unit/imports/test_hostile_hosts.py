"""Synchronization with hostile and broken machines, and with systems of other kinds."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest

from host_stage import FILE, SESSION, Machines, line, opencode, titles
from import_stage import stored
from moot.config.settings import HostSettings
from moot.imports.hosts.connection import _FIND, Listing, _ListReader, connect
from moot.imports.hosts.mirror import Mirror
from moot.imports.hosts.places import Places, remote_places

pytestmark = pytest.mark.anyio


FAULTS = {
    "garbage": ("head -c 400000 /dev/zero; exit 0", "sent more data than expected"),
    "nothing": ("exit 0", "The connection ended early"),
    "words": ("echo '\033[31mno\033[0m way' >&2; exit 1", "ended early: no way"),
    "refused": ("echo 'Permission denied (publickey).' >&2; exit 255", "Permission denied (publickey)"),
    "silent": ("sleep 60", "sent nothing for 1 seconds"),
    "clock": ("export PATH=$HOME/bin:$PATH", "clock is set to an invalid time"),
    "slow": ("while printf x; do sleep 0.1; done", "sending too slowly"),
    "flood": ("cat /dev/zero; exit 0", "sent more data than expected"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.slow
async def test_a_broken_machine_is_reported_and_the_others_are_imported(machines: Machines, fault: str) -> None:
    before, message = FAULTS[fault]
    machines.write("broken", "bin/date", f"#!/bin/sh\necho {'9' * 30}\n").chmod(0o755)
    machines.write("laptop", FILE, line(1, "hello"))
    machines.write("broken", FILE, line(1, "never", at="2026-08-02T10:00"))
    machines.answer(f'case "$HOME" in */broken) {before};; esac')
    async with stored(machines.home) as store:
        broken, fine = await machines.sync(store, "broken", "laptop", timeout=1 if fault in ("silent", "slow") else 20)
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


@pytest.mark.parametrize("system", ["gnu", *STATS])
async def test_the_folder_of_an_agent_can_be_a_link_but_no_file(machines: Machines, system: str) -> None:
    if system != "gnu":
        machines.tool("find", 'case "$*" in *-printf*) exit 1;; esac\nexec /usr/bin/find "$@"\n')
        machines.tool("stat", STATS[system])
    home = machines.homes / "laptop"
    file = machines.write("laptop", f"elsewhere/p/{SESSION}.jsonl", line(1, "hello"))
    (file.parent / f"{SESSION[:-1]}6.jsonl").symlink_to(file)
    (file.parent.parent / "linked").symlink_to(file.parent)
    with closing(opencode(home / "real" / "opencode.db", ["one"])):
        pass
    for link, target in ((".claude/projects", "../elsewhere"), (".local/share/opencode/opencode.db", "../../../real/opencode.db")):
        (home / link).parent.mkdir(parents=True)
        (home / link).symlink_to(target)
    (home / ".pi").symlink_to("missing")
    async with stored(machines.home) as store:
        for new in (1, 0):
            (report,) = await machines.sync(store, "laptop")
            assert (report.new, report.problems) == (new, ["Links to files are not followed: '.local/share/opencode/opencode.db'"])
        file.write_text(line(1, "hello") + line(2, "hi"))
        (report,) = await machines.sync(store, "laptop")
        assert (report.grown, machines.copied("laptop")) == (1, {f".claude/projects/p/{SESSION}.jsonl"})


@pytest.mark.parametrize("command", ['rm "$3"', 'ln -sf /etc/hostname "$3"'])
async def test_a_file_that_disappears_is_reported(machines: Machines, command: str) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    machines.write("laptop", ".local/share/amp/threads/T-1.json", "{}")
    machines.tool("tail", f'case "$3" in *T-1*) {command};; esac\nexec /usr/bin/tail "$@"\n')
    async with stored(machines.home) as store:
        (report,) = await machines.sync(store, "laptop")
        assert report.problems == ["~/.local/share/amp/threads/T-1.json disappeared or became a link while it was fetched."]
        assert machines.copied("laptop") == {FILE}


@pytest.mark.parametrize("system", ["gnu", *STATS])
async def test_copies_are_kept_if_a_folder_cannot_be_read(machines: Machines, system: str) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop")
        find = 'case "$*" in *%s*|*stat*) /usr/bin/find ./.claude/missing; exit 1;; esac\nexec /usr/bin/find "$@"\n'
        machines.tool("find", find if system == "gnu" else f'case "$*" in *-printf*) exit 1;; esac\n{find}')
        if system != "gnu":
            machines.tool("stat", STATS[system])
        (report,) = await machines.sync(store, "laptop")
        assert report.problems == ["Some folders can't be read."]
        assert (report.gone, machines.copied("laptop")) == (0, {FILE})


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
    mirror = machines.home / "data" / "hosts" / "laptop"
    head = machines.tool("head", '[ "$2" -gt 300000 ] && { /usr/bin/head -c 1000; kill -9 $PPID; }\nexec /usr/bin/head "$@"\n')
    async with stored(machines.home) as store:
        (report,) = await machines.sync(store, "laptop")
        assert "The connection ended early" in report.error
        assert await titles(store) == [] and machines.copied("laptop") == {FILE}
        assert {path.name for path in mirror.iterdir()} == {"home", "lock", "files.json"}
        head.unlink()
        (mirror / "part7").write_text("received before the process was killed")
        (again,) = await machines.sync(store, "laptop")
        assert (again.error, again.new, again.unchanged) == ("", 1, 1)
        with (machines.homes / "laptop" / FILE).open("a") as opened:
            opened.write(line(2, "hi"))
        assert (await machines.sync(store, "laptop"))[0].grown == 1
        assert {path.name for path in mirror.iterdir()} == {"home", "lock", "files.json"}
        assert [title for _, title, _ in await titles(store)] == ["hello", "last"]


async def test_unusual_names_are_skipped_and_reported(machines: Machines) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    folder = machines.write("laptop", ".workbuddy/projects/p/1.jsonl", "{}\n").parent
    for name in ("a\nb.jsonl", "\033[2J.jsonl", "\udcff.jsonl"):
        (folder / name).write_text(line(1, "bad"))
    good = {"-rf.jsonl", "$(touch x).jsonl", "it's.jsonl", "ü.jsonl", "*.jsonl"}
    for name in good:
        (folder / name).write_text("{}\n")
    async with stored(machines.home) as store:
        (report,) = await machines.sync(store, "laptop")
        assert len(report.problems) == 1 and "Files with unusual names are skipped" in report.problems[0]
        assert report.problems[0].isprintable()
        assert {Path(path).name for path in machines.copied("laptop")} == {*good, "1.jsonl", Path(FILE).name}
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


@pytest.mark.parametrize("modified", ["99999999999.5", "-5.25", "-99999999999999999999", "0.0000000000"])
async def test_a_file_with_an_impossible_time_is_fetched(machines: Machines, modified: str) -> None:
    machines.write("broken", FILE, line(1, "hello"))
    machines.write("fine", FILE, line(1, "of another machine", at="2026-08-02T10:00"))
    lie = f'/usr/bin/find "$@" | sed -z "s/ [0-9.]* / {modified} /"; exit'
    machines.tool("find", f'case "$PWD $*" in */broken*-printf*%s*) {lie};; esac\nexec /usr/bin/find "$@"\n')
    async with stored(machines.home) as store:
        reports = await machines.sync(store, "broken", "fine")
        assert [(one.new, one.faulty) for one in reports] == [(1, False), (1, False)]
        assert await titles(store) == [("broken", "hello", 1), ("fine", "of another machine", 1)]


async def test_copies_are_durable_before_their_states_are_stored(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    file = machines.write("laptop", FILE, line(1, "hello"))
    mirror = machines.home / "data" / "hosts" / "laptop"
    order, fsync = list[tuple[int, int]](), os.fsync

    def recorded(descriptor: int) -> None:
        about = os.fstat(descriptor)
        order.append((about.st_ino, about.st_size if stat.S_ISREG(about.st_mode) else 0))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    async with stored(machines.home) as store:
        for text in ("", line(2, "hi")):
            with file.open("a") as opened:
                opened.write(text)
            order.clear()
            await machines.sync(store, "laptop")
            copy, states = machines.copy("laptop", FILE).stat(), (mirror / "files.json").stat()
            last = order.index((states.st_ino, states.st_size))
            assert order.index((copy.st_ino, copy.st_size)) < last
            folders = {folder.stat().st_ino for folder in machines.copy("laptop", FILE).parents if folder.is_relative_to(mirror)}
            assert text or folders <= {inode for inode, _ in order[:last]}


class Observed(Places):
    """Places that record the threads in which the list is read."""

    threads: ClassVar[set[int]] = set()

    def wants(self, path: str) -> bool:
        self.threads.add(threading.get_ident())
        return Places.wants(self, path)


async def test_the_list_of_files_is_read_outside_of_the_event_loop(machines: Machines) -> None:
    names = {f".workbuddy/projects/p/{number}.jsonl" for number in range(40)}
    for name in names:
        machines.write("laptop", name, "{}")
    machines.tool("find", f"""printf '%s\\0' {" ".join(f"'1 1.5 1 ./x{number}'" for number in range(20_000))}\nexec /usr/bin/find "$@"\n""")
    async with connect(HostSettings("laptop", "laptop")) as connection:
        listing = await connection.list(Observed(remote_places().all))
    assert set(listing.files) == names and not listing.problems
    assert threading.get_ident() not in Observed.threads and Observed.threads


@pytest.mark.parametrize(
    ("limit", "message"), [("_FILES", "more than 50 files in"), ("_WANTED", "more than 50 files with conversations in")]
)
async def test_a_list_with_too_many_files_is_refused(machines: Machines, monkeypatch: pytest.MonkeyPatch, limit: str, message: str) -> None:
    monkeypatch.setattr(f"moot.imports.hosts.connection.{limit}", 50)
    machines.write("fine", FILE, line(1, "hello"))
    for number in range(51):
        machines.write("broken", f".workbuddy/projects/p/{number}.jsonl", "{}")
    async with stored(machines.home) as store:
        broken, fine = await machines.sync(store, "broken", "fine")
        assert message in broken.error and machines.copied("broken") == set()
        assert not fine.faulty


async def test_a_list_without_entries_is_refused(machines: Machines) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    machines.tool("find", 'case "$*" in *%s*) head -c 40000 /dev/zero | tr "\\0" x;; esac\nexec /usr/bin/find "$@"\n')
    async with stored(machines.home) as store:
        (report,) = await machines.sync(store, "laptop")
        assert report.error == "The list of files can't be read."


async def test_two_synchronizations_at_once_do_not_disturb_each_other(machines: Machines) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    async with stored(machines.home) as store:
        with Mirror(machines.home / "data" / "hosts" / "laptop").locked():
            (report,) = await machines.sync(store, "laptop")
        assert report.error == (
            "Another process is synchronizing this machine or purging its conversations. Try again when that process has finished."
        )
        assert not (await machines.sync(store, "laptop"))[0].faulty


def test_the_script_suits_the_shell_of_macos() -> None:
    """Bash 3.2 ends a command substitution at the first closing parenthesis that has no opening one."""
    plain = re.sub(r"'[^']*'|\"[^\"]*\"", "", _FIND)
    assert plain.count("(") == plain.count(")") > 1


def test_long_names_cost_no_time() -> None:
    listing = Listing()
    reader = _ListReader(remote_places(), listing)
    began = time.thread_time()
    for number in range(64):
        reader.feed(f"1 1.5 {number} ./.cline/data/sessions/{'1_' * 4000}\0".encode())
    reader.close()
    assert time.thread_time() - began < 1
    assert listing.files == {}
