"""Background work: servers apply retention rules, and any engine completes an interrupted purge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.purge.entry_points import found_in, lived, script
from moot.config.settings import Settings
from moot.engine import open_engine
from moot.engine.maintenance import apply_retention
from moot.store import open_store
from moot.store.maintenance.purge import jobs
from moot.store.maintenance.purge.eraser import _hidden
from moot.types.conversation import Conversation, Project
from moot.types.limits import Retention, RetentionRule
from moot.types.maintenance import ErasureReceipt, FileOutcome
from moot.types.message import Message
from moot.types.run import Run
from moot.types.store import Submission

pytestmark = pytest.mark.anyio


async def test_an_engine_resumes_interrupted_purges(stage: Callable[..., Any], tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with stage(script) as on:
        conversation = await lived(on, home / "state")
        work = jobs.EraseJob(ErasureReceipt("purge"), {conversation.no: conversation.id})
        await on.engine.store._writer.write(partial(_hidden, work))
    assert found_in(home)
    async with open_engine(Settings(home)) as engine:
        with anyio.fail_after(60):
            while await engine.store.has_pending_erasure():
                await anyio.sleep(0.02)
    assert found_in(home) == []


async def test_a_purge_waits_for_the_work_of_its_own_process(tmp_path: Path) -> None:
    async with await open_store(Settings(tmp_path / "home")) as store:
        for name in ("interrupted", "other"):
            await store.conversations.create(Conversation(name))
        unfinished = jobs.EraseJob(ErasureReceipt("purge"), {(await store.conversations.get("interrupted")).no: "interrupted"})
        await store._writer.write(partial(_hidden, unfinished))
        first, second = store.erasure, store.erasure
        reached, release = anyio.Event(), anyio.Event()

        async def reach(*_: object) -> Sequence[FileOutcome]:
            reached.set()
            await release.wait()
            return []

        first._reach = reach  # type: ignore[attr-defined]
        done: list[ErasureReceipt] = []
        async with anyio.create_task_group() as group:
            group.start_soon(first.finish)
            await reached.wait()

            async def purge() -> None:
                done.extend([await second.purge(["other"]), *await second.finish()])

            async def finish() -> None:
                done.extend(await second.finish())

            group.start_soon(purge)
            group.start_soon(finish)
            await anyio.wait_all_tasks_blocked()
            assert not done
            release.set()
        assert sorted(receipt.conversations for receipt in done) == [["interrupted"], ["other"]]
        assert all(receipt.done_at for receipt in await store.erasure.receipts())


async def test_a_server_applies_retention_when_idle(tmp_path: Path) -> None:
    store = await open_store(Settings(tmp_path / "home"))
    for name in ("kept", "over"):
        await store.conversations.create(Conversation(name))
    await store.conversations.delete("over")
    await store._writer.write(lambda transaction: transaction.execute("UPDATE conversation SET deleted_at = 1 WHERE id = 'over'"))
    async with anyio.create_task_group() as group:
        group.start_soon(apply_retention, store, lambda: Retention(trash_days=1), 0.05)
        with anyio.fail_after(60):
            while not any(receipt.done_at for receipt in await store.erasure.receipts()):
                await anyio.sleep(0.02)
        group.cancel_scope.cancel()
    assert {one.id for one in (await store.conversations.list()).items} == {"kept"}
    assert not (await store.conversations.list(deleted=True)).items
    await store.close()


async def test_only_deleted_conversations_are_purged_automatically(tmp_path: Path) -> None:
    store = await open_store(Settings(tmp_path / "home"))
    await store.conversations.create(Conversation("ancient", created_at=1))
    assert await store.erasure.expire(Retention()) == ([], None)
    await store.conversations.delete("ancient")
    assert await store.erasure.expire(Retention(trash_days=0)) == ([], None)
    assert await store.erasure.expire(Retention()) == ([], None)
    await store.close()


DAY = 86_400_000


async def test_retention_rules_apply_only_to_their_projects(tmp_path: Path) -> None:
    store = await open_store(Settings(tmp_path / "home"))
    project = await store.projects.create(Project("p", name="scratch"))
    for name, of in (("new", ""), ("old", ""), ("shelved", ""), ("scratched", project.id), ("child", ""), ("working", "")):
        parent = {"parent": "new"} if name == "child" else {}
        await store.conversations.create(Conversation(name, project=of or "default", **parent))
    now = store._clock.now() // 1000
    await store._writer.write(
        lambda transaction: [
            transaction.execute("UPDATE conversation SET updated_at = ? WHERE id <> 'new'", (now - 40 * DAY,)),
            transaction.execute("UPDATE conversation SET archived_at = ? WHERE id = 'shelved'", (now - 400 * DAY,)),
        ]
    )
    await store.records.submit(
        Submission(Run("r", "working", "m"), await store.conversations.get("working"), Message("u", "user"), owner="o")
    )

    async def over(rules: Retention) -> set[tuple[str, str]]:
        return {(one.conversation.id, one.what) for one in (await store.erasure.expire(rules, dry_run=True))[0]}

    assert await over(Retention()) == set()
    assert await over(Retention(keep_days=30)) == {("old", "delete"), ("scratched", "delete")}
    assert await over(Retention(keep_days=41)) == set()
    assert await over(Retention(archived_days=365)) == {("shelved", "delete")}
    assert await over(Retention(keep_days=30, projects={"scratch": RetentionRule()})) == {("old", "delete")}
    assert await over(Retention(projects={project.id: RetentionRule(keep_days=7)})) == {("scratched", "delete")}
    await store.conversations.delete("child")
    await store._writer.write(lambda transaction: transaction.execute("UPDATE conversation SET deleted_at = 1 WHERE id = 'child'"))
    assert await over(Retention()) == {("child", "purge")}
    await store.close()


async def test_a_restored_conversation_is_not_deleted_again(tmp_path: Path) -> None:
    store = await open_store(Settings(tmp_path / "home"))
    for name in ("old", "shelved"):
        await store.conversations.create(Conversation(name))
    await store.conversations.update("shelved", archived=True)
    rules = Retention(keep_days=30, archived_days=30)
    old = "UPDATE conversation SET updated_at = 1, archived_at = CASE WHEN archived_at IS NULL THEN NULL ELSE 1 END"
    await store._writer.write(lambda transaction: transaction.execute(old))
    assert len((await store.erasure.expire(rules))[0]) == 2
    for name in ("old", "shelved"):
        found = await store.conversations.delete(name, restore=True)
        assert found.deleted_at is None and (found.archived_at is not None) is (name == "shelved")
    assert (await store.erasure.expire(rules))[0] == []
    await store.close()
