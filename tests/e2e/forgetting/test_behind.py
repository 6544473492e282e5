"""What happens behind everybody's back: rules are acted on by servers, and what was cut off is gone on with by any engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.forgetting.doors import found_in, lived, script
from moot.config.settings import Settings
from moot.engine import open_engine
from moot.engine.forgetting import retain
from moot.store import open_store
from moot.store.forgetting import works
from moot.store.forgetting.forgetter import _hidden
from moot.types.conversation import Conversation
from moot.types.forgetting import Forgotten
from moot.types.retention import Retention

pytestmark = pytest.mark.anyio


async def test_an_engine_goes_on_with_what_was_cut_off(stage: Callable[..., Any], tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with stage(script) as on:
        conversation = await lived(on, home / "state")
        work = works.Work(Forgotten("purge"), {conversation.no: conversation.id})
        await on.engine.store._writer.write(partial(_hidden, work))
    assert found_in(home)
    async with open_engine(Settings(home)) as engine:
        with anyio.fail_after(8):
            while await engine.store.is_forgetting():
                await anyio.sleep(0.02)
    assert found_in(home) == []


async def test_a_server_acts_on_the_rules_when_no_run_is_at_work(tmp_path: Path) -> None:
    store = await open_store(Settings(tmp_path / "home"))
    for name in ("kept", "over"):
        await store.conversations.create(Conversation(name))
    await store.conversations.delete("over")
    await store._writer.write(lambda transaction: transaction.execute("UPDATE conversation SET deleted_at = 1 WHERE id = 'over'"))
    async with anyio.create_task_group() as group:
        group.start_soon(retain, store, lambda: Retention(trash_days=1), 0.05)
        with anyio.fail_after(8):
            while not any(receipt.done_at for receipt in await store.forgetting.receipts()):
                await anyio.sleep(0.02)
        group.cancel_scope.cancel()
    assert {one.id for one in (await store.conversations.list()).items} == {"kept"}
    assert not (await store.conversations.list(deleted=True)).items
    await store.close()


async def test_nothing_is_purged_by_itself_but_what_somebody_deleted(tmp_path: Path) -> None:
    store = await open_store(Settings(tmp_path / "home"))
    await store.conversations.create(Conversation("ancient", created_at=1))
    assert await store.forgetting.expire(Retention()) == ([], None)
    await store.conversations.delete("ancient")
    assert await store.forgetting.expire(Retention(trash_days=0)) == ([], None)
    assert await store.forgetting.expire(Retention()) == ([], None)
    await store.close()
