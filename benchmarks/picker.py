"""One key in a list of 10,000: filtering and drawing, beside a bare substring filter over the same titles in the same run.

python benchmarks/picker.py [ITEMS]
"""

from __future__ import annotations

import random
import statistics
import sys
import time

from prompt_toolkit.utils import get_cwidth

from moot.cli.browsing.rows import COLUMNS
from moot.cli.picking.drawing import Sheet, View, draw
from moot.cli.picking.items import Choice, Item, Scope
from moot.cli.picking.listing import Listing

WORDS = [
    "fix",
    "the",
    "parser",
    "and",
    "write",
    "tests",
    "for",
    "release",
    "notes",
    "config",
    "provider",
    "stream",
    "漢字",
    "café",
    "index",
    "of",
    "cost",
]
TYPED = "fix parser cnfg"


def main(number: int) -> None:
    chance = random.Random(1)
    titles = [" ".join(chance.choices(WORDS, k=8)) for _ in range(number)]
    items = [
        Item(str(at), ("2 h", title, "", "$0.01", "12", "model", "src"), f"{title} model@provider /src") for at, title in enumerate(titles)
    ]
    sheet = Sheet(120, 40, True, lambda text: len(text) if text.isascii() else sum(map(get_cwidth, text)))
    listing = Listing()
    listing.add(items)
    choice = Choice((Scope("all", ()),), COLUMNS)
    folded = [title.casefold() for title in titles]
    ours: list[float] = []
    bare: list[float] = []
    for end in range(1, len(TYPED) + 1):
        typed = TYPED[:end]
        start = time.perf_counter()
        listing.type(typed)
        draw(View(choice, 0, listing, True), sheet)
        ours.append((time.perf_counter() - start) * 1000)
        start = time.perf_counter()
        words = typed.split()
        [at for at, title in enumerate(folded) if all(word in title for word in words)]
        bare.append((time.perf_counter() - start) * 1000)
    print(f"{number:,} items, {len(TYPED)} keys      median ms   worst ms")
    for name, times in (("our filter and drawing", ours), ("bare substring filter", bare)):
        print(f"  {name:24} {statistics.median(times):9.1f} {max(times):10.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
