"""Languages without spaces between words."""

from __future__ import annotations

import asyncio
import random

import pytest

from moot.store import SqliteStore
from moot.types.conversation import Conversation
from moot.types.message import Message, text_part


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "found", "missed"),
    [
        ("東京towerの計画中止", "東京tower 京tower towerの 東京 京 towerの計画 tower 止 計画中止。", "東tower 東京の tower計 の止"),
        ("新しいLLMモデルを試す", "LLMモ LLMモデル しいLLM いLLMモデル モデル 試す", "しLLM LLMデル"),
        ("한국어tokenizer검색 테스트", "한국어tokenizer 국어 tokenizer검 tokenizer검색 검색 테스트 token", "한tokenizer 국검"),
        ("人々のGPT-4o使用例", "人々 人々の GPT-4o使用 4o使 使用例 GPT", "人の 用使"),
        ("日本人々", "人々 日本人々", "日人"),
        ("สวัสดีครับ ภาษาไทยกับpython", "สวัสดี ครับ ไทย ภาษาไทย python thon", "ลาว"),
        ("Tiếng Việt rất hay", "tieng viet Việt", "thai"),
    ],
)
async def test_text_without_spaces_is_found_next_to_words(store: SqliteStore, text: str, found: str, missed: str) -> None:
    await store.conversations.create(Conversation("a"))
    await store.conversations.add_message(Message("m", "user", (text_part(text),), conversation="a"))
    for query in (*found.split(), *(f'"{one}"' for one in found.split())):
        assert [hit.message for hit in (await store.search.search(query)).hits] == ["m"], query
    for query in missed.split():
        page = await store.search.search(query)
        assert page.loose or not page.hits, query
        assert not (await store.search.search(f'"{query}"')).hits, query


@pytest.mark.anyio
async def test_two_characters_of_chinese_are_found_in_a_store_of_others(store: SqliteStore) -> None:
    await chinese(store, 2000)


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.anyio
async def test_ten_words_of_two_characters_are_found_among_a_hundred_thousand_messages(store: SqliteStore) -> None:
    await chinese(store, 100_000)


async def chinese(store: SqliteStore, count: int) -> None:
    """Each of ten words is found in exactly the messages that a full scan finds, at their start and in their middle."""
    words = ["检索", "会话", "模型", "日志", "重放", "导出", "备份", "费用", "图片", "代码"]
    signs = [*(chr(code) for code in range(0x4E00, 0x4E00 + 600)), *"".join(words)]
    chance = random.Random(7)
    texts: dict[str, str] = {}
    await store.conversations.create(Conversation("a"))
    for start in range(0, count, 1000):
        messages: list[Message] = []
        for number in range(start, min(start + 1000, count)):
            text = (
                "".join(chance.choices(signs, k=24))
                + (chance.choice(words) if number % 40 == 0 else "")
                + "".join(chance.choices(signs, k=9))
            )
            texts[f"m{number}"] = text
            messages.append(Message(f"m{number}", "user", (text_part(text),), conversation="a", created_at=(number + 1) * 1000))
        await asyncio.gather(*(store.conversations.add_message(message) for message in messages))
    await store.search.index(seconds=200)
    for word in words:
        expected = [id for id, text in reversed(texts.items()) if word in text]
        assert expected
        page = await store.search.search(word, limit=200)
        assert [hit.message for hit in page.hits] == expected[:200], word
        assert all(f"\x02{word}\x03" in hit.snippet for hit in page.hits)
