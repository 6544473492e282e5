"""Sealed stores with real runs: readers see no difference."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from e2e.verify.homes import Store
from moot.config.settings import Settings
from moot.store import open_store
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

pytestmark = pytest.mark.anyio


async def read_all(home: Path, *, seal: bool) -> dict[str, Any]:
    """Return everything that a reader can get, sealed first on request."""
    store = await open_store(Settings(home))
    if seal:
        done = [done async for done in store.upkeep.seal()][-1]
        assert done.events > 0
        assert done.after < done.before / 2
    read: dict[str, Any] = {}
    for conversation in (await store.conversations.list(limit=200)).items:
        id = conversation.id
        nodes = await store.tree.nodes(id)
        runs = await store.records.runs(conversation=id)
        read[id] = (
            await store.log.read(id, limit=99_999),
            await store.log.read(id, limit=99_999, newest=True),
            [await store.conversations.message(node.id) for node in nodes],
            {run.id: await store.log.read(id, run=run.id, limit=99_999) for run in runs},
        )
    await store.close()
    return read


@pytest.mark.slow
async def test_a_sealed_home_reads_and_verifies_as_before(stored: Store) -> None:
    receipt, before = await stored.verified(), await read_all(stored.home, seal=False)
    assert await read_all(stored.home, seal=True) == before
    sealed = await stored.verified()
    assert sealed.damages == []
    assert asdict(sealed) == asdict(receipt)


SCRIPT = [Reply(when="word", text="It is plume.", times=0), Reply(text="Hello there.", times=0)]
CONFIG = """
models: {{main: big@mine}}
providers:
  mine: {{dialect: openai-chat, base_url: "{url}", api_key: none, models: {{big: {{context: 9000}}}}}}
"""


def shown(moot: MootProcess, *command: str) -> bytes:
    done = moot.run(*command)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_sealed_conversation_stays_fully_usable(tmp_path: Path) -> None:
    with ScriptedProcess(SCRIPT, models=("big",)) as model:
        moot = make(tmp_path, CONFIG.format(url=model.openai_url))
        shown(moot, "run", "say the word")
        commands = (("export", "1", "-f", "recording"), ("search", "plume", "--json"))
        shown(moot, "chat", "list")
        before = [shown(moot, *command) for command in commands]
        planned = json.loads(shown(moot, "store", "compact", "--dry-run", "--json"))
        done = json.loads(shown(moot, "store", "compact", "--json"))
        assert done["events"] == planned["events"] > 10
        assert done["bytes_after"] < done["bytes_before"] / 3
        sizes = json.loads(shown(moot, "store", "stats", "--json"))
        assert (sizes["rows"]["events"], sizes["segments"]["events"]) == (0, done["events"])
        assert [shown(moot, *command) for command in commands] == before
        assert b"Hello there." in shown(moot, "run", "-c", "and now?")
        assert json.loads(shown(moot, "store", "compact", "--all", "--json"))["events"] > 0
        assert json.loads(shown(moot, "verify", "--json"))["damaged"] == 0
        told = shown(moot, "store", "stats").decode()
        assert "say the word" in told
        assert "0 events" in told
        moot.close()
