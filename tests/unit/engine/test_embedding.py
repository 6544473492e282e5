"""Computing embeddings in the background."""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
import pytest

from moot.config.settings import Settings
from moot.engine.maintenance import EmbeddingModel, embed_periodically
from moot.errors import UsageError
from moot.providers.weights import EMBEDDING, find_any
from moot.store import open_store
from moot.types.conversation import Conversation
from moot.types.message import Message, text_part
from moot.types.search import SemanticQuery
from small_weights import needs_real, put_real

pytestmark = pytest.mark.anyio


@needs_real
async def test_a_server_embeds_when_the_weights_are_installed_and_loads_them_once(tmp_path: Path) -> None:
    store = await open_store(Settings(tmp_path))
    await store.conversations.create(Conversation("a"))
    await store.conversations.add_message(Message("a0", "user", (text_part("the soup is too salty"),), conversation="a"))
    await store.conversations.add_message(Message("a1", "assistant", (text_part("add cream"),), conversation="a", parent="a0"))
    await store.search.index()
    meanings = EmbeddingModel(tmp_path)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: embed_periodically(store, meanings, first=0.0, again=0.01))
            await anyio.sleep(0.1)  # it checks, and there is nothing yet
            with pytest.raises(UsageError, match="which is not installed"):
                await meanings.embedder()
            put_real(tmp_path)
            embedder = await meanings.embedder()
            assert await meanings.embedder() is embedder
            while not (await store.meaning.search(SemanticQuery("broth"), embedder=embedder, wait=0)).hits:
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
    await store.close()


async def test_damaged_weights_are_reported_once_and_stop_embedding(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    weights = tmp_path / "data" / "models" / find_any(EMBEDDING).file
    weights.parent.mkdir(parents=True)
    with weights.open("wb") as file:
        file.truncate(find_any(EMBEDDING).size)
    store = await open_store(Settings(tmp_path))
    with caplog.at_level(logging.WARNING), anyio.fail_after(60):
        await embed_periodically(store, EmbeddingModel(tmp_path), first=0.0, again=0.0)
    assert "moot models pull e5-small" in caplog.text
    await store.close()
