"""Index text files and search them: `python benchmarks/knowledge.py [FILES]`. Print seconds for indexing and milliseconds per search."""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

import anyio

from moot.config.settings import Settings
from moot.engine import open_engine
from moot.types.knowledge import KnowledgeScope
from moot.types.token import LOCAL_USER

WORDS_PER_FILE = 1500
SEARCHES = 50


def write_files(folder: Path, count: int) -> list[str]:
    """Write text files of random words, and return the words."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 10))) for _ in range(20_000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    for number in range(count):
        text = chance.choices(words, weights, k=WORDS_PER_FILE)
        paragraphs = (" ".join(text[at : at + 60]) for at in range(0, len(text), 60))
        (folder / f"{number:05}.md").write_text(f"# Document {number}\n\n" + "\n\n".join(paragraphs), encoding="utf-8")
    return words


async def measure(count: int) -> None:
    """Index the files, index them again, and search."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "documents")
        folder.mkdir()
        words = write_files(folder, count)
        async with open_engine(Settings(Path(name, "home"))) as engine:
            library = engine.runtime.library(LOCAL_USER)
            source = await library.add(folder)
            started = time.perf_counter()
            result = await library.refresh(source)
            print(f"index {result.indexed} files: {time.perf_counter() - started:.1f} s")
            started = time.perf_counter()
            await library.refresh(source)
            print(f"index them again, unchanged: {(time.perf_counter() - started) * 1000:.0f} ms")
            chance, taken = random.Random(2), list[float]()
            for _ in range(SEARCHES):
                query = " ".join(chance.choices(words[:2000], k=2))
                started = time.perf_counter()
                await library.search(query, KnowledgeScope())
                taken.append((time.perf_counter() - started) * 1000)
            taken.sort()
            print(f"search: {taken[len(taken) // 2]:.1f} ms median, {taken[-1]:.1f} ms slowest of {SEARCHES}")


if __name__ == "__main__":
    anyio.run(measure, int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
