"""Any text survives the store byte for byte, or is rejected with a message, whatever it means in SQL, JSON or FTS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from moot.config.settings import Settings
from moot.errors import MootError, UsageError
from moot.store import SqliteStore, open_store
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import Message, text_part

pytestmark = pytest.mark.anyio

TORTURE = [
    "nul\0nul",
    "\U0001f600\U0010ffff\uffff",
    "\u202eRTL \u05d0\u05d1 \u0627\u0644",
    "e\u0301 \u00e9 \u212b \u00c5",  # the same characters, composed and decomposed: different texts
    "a" + "\u0301" * 100_000,
    "'; DROP TABLE message; --",
    '"] } \\" \\u0000',
    "$.title %s ?1 :x @y",
    "\ufeffBOM\u2028\u2029\x85",
    "",
]
ANY = some.one_of(some.sampled_from(TORTURE), some.text(some.characters(), max_size=40))
"""Surrogates included."""


def is_text(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


@given(texts=some.lists(ANY, min_size=6, max_size=6), raw=some.binary(max_size=30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
async def test_every_field_keeps_every_text(store: SqliteStore, texts: list[str], raw: bytes) -> None:
    title, agent, model, said, value, reason = texts
    id = new_id()
    made = Conversation(id, title=title, title_source="user", agent=agent, model=model, directory=f"/{reason}")
    try:
        await store.conversations.create(made)
    except UsageError as error:
        assert not all(map(is_text, (title, agent, model, reason)))
        assert "lone surrogates" in error.fix
        return
    found = await store.conversations.get(id)
    assert (found.title, found.agent, found.model, found.directory) == (title, agent, model, f"/{reason}")
    message = Message(f"m-{id}", "user", (text_part(said),), conversation=id)
    await store.conversations.add_message(message)
    (stored,) = await store.conversations.branch(id)
    if is_text(said):
        assert stored.parts == message.parts
    chunk: Any = {"type": "text-delta", "id": value, "delta": said}
    await store.log.append(id, [Event("raw", (chunk,), raw, body={value: said})])
    event = (await store.log.read(id))[-1]
    assert event.raw == raw
    if is_text(said) and is_text(value):
        assert (event.chunks, event.body) == ((chunk,), {value: said})
    else:  # lone surrogates become U+FFFD in chunks, and nothing else changes
        assert is_text(str(event.chunks[0]["delta"]))
        assert len(str(event.chunks[0]["delta"])) == len(said)
    assert [other.id for other in (await store.conversations.list(limit=1)).items] == [id]


async def test_names_are_never_sql_or_patterns(store: SqliteStore) -> None:
    for text in TORTURE[:-1]:
        made = await store.conversations.create(Conversation(new_id(), title=text, title_source="user", key=text, directory=text))
        assert (await store.conversations.get(text)).id == made.id
        assert [one.id for one in (await store.conversations.list(directory=text)).items] == [made.id]
    for text in ("%", "_", "*", "' OR 1=1 --", "x' UNION SELECT 1 --", "\0"):
        with pytest.raises(MootError):
            await store.conversations.get(text)
    for cursor in ("' OR 1=1", "\0", "999999999999999999999999", "-1", "eyJ9"):
        with pytest.raises(UsageError):
            await store.conversations.list(cursor=cursor)


async def test_a_letter_with_a_million_accents_is_searched_fast(tmp_path: Path) -> None:
    store = await open_store(Settings(home=tmp_path))
    await store.conversations.create(Conversation("a"))
    await store.conversations.add_message(Message("m", "user", (text_part("needle a" + "\u0301" * 1_000_000),), conversation="a"))
    assert [hit.message for hit in (await store.search.search("needle", wait=60)).hits] == ["m"]
    (stored,) = await store.conversations.branch("a")
    assert len(stored.parts[0]["text"]) == 1_000_008  # type: ignore[arg-type]
    await store.close()


@pytest.mark.slow
def test_a_message_of_100_megabytes_is_stored_and_found(spawn: Any, tmp_path: Path) -> None:
    out, err = spawn("large", tmp_path, 100).communicate(timeout=300)
    assert err == b""
    assert float(out) < 12
