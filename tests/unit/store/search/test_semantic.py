"""Semantic search: what is embedded, what is similar, and that no vector outlives its text. The model is small and random."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from import_stage import take
from moot.config.settings import Settings
from moot.errors import UsageError
from moot.providers.e5 import E5
from moot.store import SqliteStore, open_store
from moot.store.database.connection import connect
from moot.store.database.locks import FileLock
from moot.store.database.transaction import Transaction
from moot.types.conversation import Conversation, Project
from moot.types.maintenance import Secret
from moot.types.message import Message, text_part
from moot.types.search import Embedder, SearchPage, SemanticQuery
from small_weights import write
from talk_format import line

pytestmark = pytest.mark.anyio

SAID = {
    "a": ("the cat sits on the mat", "cats like mats"),
    "b": ("how do i bake bread", "flour water salt"),
    "c": ("the wheel of my bike is bent", "loosen the spokes"),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> E5:
    return E5(write(tmp_path_factory.mktemp("weights") / "small.bin"))


async def say(store: SqliteStore, conversation: str, *texts: str, at: int = 1000, parent: str | None = None) -> None:
    for number, text in enumerate(texts):
        role = "assistant" if number % 2 else "user"
        id = f"{conversation}{number if parent is None else f'-{parent}-{number}'}"
        parent_id = parent if number == 0 else f"{conversation}{number - 1}"
        await store.conversations.add_message(
            Message(id, role, (text_part(text),), conversation=conversation, parent=parent_id, created_at=at + number)
        )


async def fill(store: SqliteStore) -> None:
    for number, (id, texts) in enumerate(SAID.items()):
        await store.conversations.create(Conversation(id))
        await say(store, id, *texts, at=1000 * number)


async def ask(store: SqliteStore, model: Embedder, query: str, **options: object) -> SearchPage:
    return await store.meaning.search(replace(SemanticQuery(query), **options), embedder=model, wait=20)


def vectors(settings: Settings) -> list[tuple[str, bytes]]:
    connection = connect(settings.database)
    try:
        rows = connection.execute(
            "SELECT m.id, v.vector FROM search_vector AS v JOIN search AS s ON s.no = v.no"
            " JOIN message AS m ON m.no = s.message ORDER BY m.id"
        )
        return rows.fetchall()
    finally:
        connection.close()


async def test_answers_are_found_by_question_and_answer_once_per_conversation(store: SqliteStore, model: E5) -> None:
    await fill(store)
    await say(store, "a", "and the dog", "dogs like bones", parent="a1", at=9000)
    for id, (question, answer) in SAID.items():
        page = await ask(store, model, f"{question}\n{answer}")
        assert page.hits[0].conversation == id
        assert sorted(hit.conversation for hit in page.hits) == ["a", "b", "c"]
        assert (page.hits[0].message, page.hits[0].snippet) == (f"{id}1", answer)
        assert (page.done, page.total) == (4, 4)
    inside = await ask(store, model, "bones", conversation="a")
    assert sorted(hit.message for hit in inside.hits) == ["a-a1-1", "a1"]
    assert len((await ask(store, model, "bones", limit=2)).hits) == 2


async def test_the_question_is_embedded_with_the_answer(store: SqliteStore, settings: Settings, model: E5) -> None:
    for id, question in (("x", "the bike"), ("y", "a loaf of bread")):
        await store.conversations.create(Conversation(id))
        await say(store, id, question, "yes")
    await ask(store, model, "bread")
    (_, first), (_, second) = vectors(settings)
    assert first == model.embed("the bike\nyes", question=False)
    assert second == model.embed("a loaf of bread\nyes", question=False)


async def test_operators_filter_semantic_search_and_words_do_not(store: SqliteStore, model: E5) -> None:
    await fill(store)
    await store.projects.create(Project("p", name="shop"))
    await store.conversations.create(Conversation("d", project="p"))
    await say(store, "d", "the price of a chair", "ten coins", at=60_000)
    assert [hit.conversation for hit in (await ask(store, model, "project:shop nothing like it")).hits] == ["d"]
    assert "d" not in [hit.conversation for hit in (await ask(store, model, "-project:shop the price of a chair")).hits]
    assert [hit.conversation for hit in (await ask(store, model, "wheel -flour -cats -coins")).hits] == ["c"]
    assert not (await ask(store, model, "role:user wheel")).hits
    assert not (await ask(store, model, "project:shop")).hits
    with pytest.raises(UsageError, match="Project 'shed' not found"):
        await ask(store, model, "project:shed wheel")


async def test_an_owner_finds_only_what_is_theirs(store: SqliteStore, model: E5) -> None:
    await fill(store)
    other = store.of("other")
    await other.conversations.create(Conversation("theirs"))
    await other.conversations.add_message(Message("t0", "user", (text_part("the cat"),), conversation="theirs"))
    await other.conversations.add_message(Message("t1", "assistant", (text_part("cats"),), conversation="theirs", parent="t0"))
    page = await other.meaning.search(SemanticQuery("the cat"), embedder=model, wait=20)
    assert ([hit.conversation for hit in page.hits], page.done, page.total) == (["theirs"], 1, 1)
    mine = await store.of("local").meaning.search(SemanticQuery("the cat"), embedder=model, wait=20)
    assert (sorted(hit.conversation for hit in mine.hits), mine.done, mine.total) == (["a", "b", "c"], 3, 3)


async def test_unembedded_answers_are_counted_and_the_newest_come_first(store: SqliteStore, settings: Settings, model: E5) -> None:
    await fill(store)
    await store.search.index()
    page = await store.meaning.search(SemanticQuery("bike"), embedder=model, wait=0)
    assert (page.done, page.total, page.hits) == (0, 3, ())

    class Slow:
        """The same model, slow after one text."""

        model = E5.model

        def embed(self, text: str, *, question: bool) -> bytes:
            vector = model.embed(text, question=question)
            time.sleep(1.1)
            return vector

        def near(self, vector: bytes, others: Sequence[bytes]) -> Sequence[float]:
            return model.near(vector, others)

    assert await store.meaning.read(embedder=Slow(), seconds=1.0) == (1, 3)
    assert [id for id, _ in vectors(settings)] == ["c1"]
    assert await store.meaning.read(embedder=model) == (3, 3)


async def test_vectors_of_another_model_are_replaced(store: SqliteStore, settings: Settings, model: E5, tmp_path: Path) -> None:
    await fill(store)
    await ask(store, model, "bike")
    before = vectors(settings)
    newer = E5(write(tmp_path / "newer.bin", seed=2))
    newer.model = "newer@2"
    assert (await store.meaning.search(SemanticQuery("bike"), embedder=newer, wait=0)).hits == ()
    question, answer = SAID["b"]
    assert (await ask(store, newer, f"{question}\n{answer}")).hits[0].conversation == "b"
    assert [id for id, _ in vectors(settings)] == [id for id, _ in before]
    assert not set(vectors(settings)) & set(before)


async def test_deleted_and_purged_conversations_are_not_found(store: SqliteStore, settings: Settings, model: E5) -> None:
    await fill(store)
    await ask(store, model, "bike")
    await store.conversations.delete("b")
    assert sorted(hit.conversation for hit in (await ask(store, model, "how do i bake bread")).hits) == ["a", "c"]
    await store.erasure.purge(["b"])
    assert [id for id, _ in vectors(settings)] == ["a1", "c1"]


@pytest.mark.parametrize("word", ["sits", "cats"])
async def test_vectors_of_redacted_text_are_deleted(store: SqliteStore, settings: Settings, model: E5, word: str) -> None:
    await fill(store)
    await ask(store, model, "bike")
    before = dict(vectors(settings))
    await store.erasure.redact(Secret((word,)))
    assert "a1" not in dict(vectors(settings))
    await ask(store, model, "bike")
    after = dict(vectors(settings))
    assert after["a1"] != before["a1"]
    assert (after["b1"], after["c1"]) == (before["b1"], before["c1"])


async def test_a_vector_of_changed_text_is_not_stored(store: SqliteStore, settings: Settings, model: E5) -> None:
    await fill(store)
    await store.search.index()
    reading, redacted = threading.Event(), threading.Event()

    class Waiting:
        """The same model, which continues after a redaction."""

        model = E5.model

        def embed(self, text: str, *, question: bool) -> bytes:
            reading.set()
            redacted.wait(60)
            return model.embed(text, question=question)

        def near(self, vector: bytes, others: Sequence[bytes]) -> Sequence[float]:
            return model.near(vector, others)

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: store.meaning.read(embedder=Waiting(), seconds=20))
        await anyio.to_thread.run_sync(reading.wait, 20)
        await store.erasure.redact(Secret(("sits",)))
        await store.search.index()
        redacted.set()
    kept = dict(vectors(settings))
    assert sorted(kept) == ["b1", "c1"]


async def test_a_vector_of_an_answer_that_grows_after_an_upgrade_is_deleted(store: SqliteStore, settings: Settings, tmp_path: Path) -> None:
    def talk(name: str, *texts: str) -> Path:
        lines = [line(talk=name, title=name), *(line(id=f"{name}1", role="assistant", text=text, at=1_700_000_000_000) for text in texts)]
        (tmp_path / f"{name}.talk").write_bytes(b"".join(lines))
        return tmp_path / f"{name}.talk"

    def upgrade(transaction: Transaction) -> None:
        transaction.execute("INSERT INTO search_vector SELECT no, 'm', x'01' FROM search")
        transaction.execute("INSERT INTO search_words (search_words) VALUES ('delete-all')")
        transaction.execute("UPDATE message SET is_indexed = 0")

    await take(store, talk("grows", "one"), talk("stays", "one"))
    await store.search.index()
    await store._writer.write(upgrade)
    stays = vectors(settings)[1:]
    await take(store, talk("grows", "one", "two"))
    await store.search.index()
    assert vectors(settings) == stays and len(stays) == 1
    assert [hit.message for hit in (await store.search.search("two")).hits] == [unread[0] for unread in await unembedded(store)]


async def unembedded(store: SqliteStore) -> list[tuple[str]]:
    sql = "SELECT m.id FROM search AS s JOIN message AS m ON m.no = s.message WHERE s.no NOT IN (SELECT no FROM search_vector)"
    return await store._reader.read(lambda connection: connection.execute(sql).fetchall())


async def test_one_process_embeds_at_a_time(store: SqliteStore, settings: Settings, model: E5) -> None:
    await fill(store)
    await store.search.index()
    with FileLock(settings.home / "state" / "meaning.lock"):
        assert await store.meaning.read(embedder=model) == (0, 3)
    assert await store.meaning.read(embedder=model) == (3, 3)


async def test_an_answer_without_text_is_processed_once_and_never_found(store: SqliteStore, settings: Settings, model: E5) -> None:
    await store.conversations.create(Conversation("e"))
    await store.conversations.add_message(Message("e0", "assistant", (), conversation="e"))
    page = await ask(store, model, "anything")
    assert (page.done, page.total, page.hits) == (1, 1, ())
    assert vectors(settings) == [("e0", b"")]


async def test_embedding_uses_only_its_share_of_the_time(settings: Settings, model: E5) -> None:
    store = await open_store(settings)

    class Timed:
        """The same model, with its computing time."""

        model = E5.model
        spent = 0.0

        def embed(self, text: str, *, question: bool) -> bytes:
            began = time.monotonic()
            time.sleep(0.05)
            self.spent += time.monotonic() - began
            return model.embed(text, question=question)

        def near(self, vector: bytes, others: Sequence[bytes]) -> Sequence[float]:
            return model.near(vector, others)

    try:
        await fill(store)
        await store.search.index()
        timed, began = Timed(), time.monotonic()
        await store.meaning.read(embedder=timed, seconds=20, share=0.25)
        assert time.monotonic() - began >= 4 * timed.spent
    finally:
        await store.close()
