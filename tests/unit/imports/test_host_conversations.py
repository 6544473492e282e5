"""Conversations of other machines: their ids, copies of sessions, folders and purges."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from host_stage import FILE, SESSION, Machines, add_session, line, opencode, titles
from import_stage import stored
from moot.errors import Busy, HostError
from moot.imports.conversations import ImportOptions
from moot.imports.hosts.mirror import Mirror
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import local_sources

pytestmark = pytest.mark.anyio


@pytest.mark.slow
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
        assert machines.copied("laptop") == {".local/share/opencode/opencode.db"}


async def test_purged_sub_agents_are_not_fetched_again(machines: Machines) -> None:
    folder = FILE.removesuffix(".jsonl")
    agents = [f"{folder}/subagents/agent-{name}.jsonl" for name in ("a1", "a2")]
    machines.write("laptop", FILE, line(1, "hello") + line(2, "hi"))
    for number, agent in enumerate(agents):
        machines.write("laptop", agent, line(1, f"task {number}").replace('"type": "user"', '"type": "user", "isSidechain": true'))
        machines.write("laptop", agent.replace(".jsonl", ".meta.json"), '{"toolUseId": "c"}')
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop")
        (session,) = (await store.conversations.list()).items
        (first, _) = sorted((await store.conversations.list(parent=session.id)).items, key=lambda one: one.title)
        await store.erasure.purge([first.id])
        for agent in agents:
            with (machines.homes / "laptop" / agent).open("a") as opened:
                opened.write(line(3, "more"))
        (report,) = await machines.sync(store, "laptop")
        assert (report.grown, report.new, report.changed) == (1, 0, 0)
        assert machines.copied("laptop") == {FILE, agents[1], agents[1].replace(".jsonl", ".meta.json")}
        await store.erasure.purge([session.id])
        machines.write("laptop", f"{folder}/subagents/agent-a3.jsonl", line(1, "later"))
        (report,) = await machines.sync(store, "laptop")
        assert (report.fetched, machines.copied("laptop"), await titles(store)) == (0, set(), [])


async def test_an_empty_copy_is_fetched_again(machines: Machines) -> None:
    file = machines.write("laptop", FILE, line(1, "hello"))
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop")
        machines.copy("laptop", FILE).write_bytes(b"")  # as after a power loss
        (report,) = await machines.sync(store, "laptop")
        assert (report.changed, machines.copy("laptop", FILE).read_bytes()) == (1, file.read_bytes())
        file.write_bytes(b"")
        await machines.sync(store, "laptop")
        assert machines.copy("laptop", FILE).read_bytes() == b""
        file.write_text(line(1, "hello") + line(2, "hi"))
        await machines.sync(store, "laptop")
        assert await titles(store) == [("laptop", "hello", 2)]


async def test_a_damaged_list_of_purged_files_is_reported(machines: Machines) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop")
        await store.erasure.purge([one.id for one in (await store.conversations.list()).items])
        (machines.home / "data" / "hosts" / "laptop" / "purged.json").write_text("[")
        (report,) = await machines.sync(store, "laptop")
        assert "Can't read the list of purged files" in report.error and machines.copied("laptop") == set()


async def test_a_purge_waits_for_no_synchronization_and_leaves_nothing(machines: Machines) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    mirror = machines.home / "data" / "hosts" / "laptop"
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop")
        (only,) = (await store.conversations.list()).items
        with Mirror(mirror).locked(), pytest.raises(Busy, match="Conversations from laptop are being synchronized"):
            await store.erasure.purge([only.id])
        assert not await store.has_pending_erasure()
        assert (machines.copied("laptop"), await titles(store)) == ({FILE}, [("laptop", "hello", 1)])
        (mirror / "part3").write_text(line(1, "hello"))  # a killed synchronization
        planned = (await store.erasure.purge([only.id], dry_run=True)).files
        assert [(file.path, file.what) for file in planned[:1]] == [(str(mirror / "home" / FILE), "deleted")]
        assert machines.copied("laptop") == {FILE} and not (mirror / "purged.json").exists()
        await store.erasure.purge([only.id])
        assert {path.name for path in mirror.iterdir()} == {"home", "lock", "files.json", "purged.json"}
        assert not (await machines.sync(store, "laptop"))[0].faulty


async def test_an_interrupted_purge_is_finished_after_the_synchronization(machines: Machines) -> None:
    machines.write("laptop", FILE, line(1, "hello"))
    async with stored(machines.home) as store:
        await machines.sync(store, "laptop")
        (only,) = (await store.conversations.list()).items
        (machines.home / "data" / "hosts" / "laptop" / "purged.json").write_text("[")
        with pytest.raises(HostError, match="Can't read the list of purged files"):
            await store.erasure.purge([only.id])
        (receipt,) = await store.erasure.finish()
        assert receipt.done_at is None and "Can't read the list of purged files" in receipt.left[-1]
        (machines.home / "data" / "hosts" / "laptop" / "purged.json").unlink()
        with Mirror(machines.home / "data" / "hosts" / "laptop").locked():
            (receipt,) = await store.erasure.finish()
            assert receipt.done_at is None and machines.copied("laptop") == {FILE}
            assert "Conversations from laptop are being synchronized" in receipt.left[-1]
        (receipt,) = await store.erasure.finish()
        assert receipt.done_at is not None and not receipt.left and machines.copied("laptop") == set()
