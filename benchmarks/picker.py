"""The time until the list of 10,000 conversations is visible, and until a key takes effect in it.

* Time and CPU until the first screen, next to all of `moot version`, alternating in the same run; medians of 9. The process itself reads
  the CPU time when it imports asyncio, which happens directly after the first screen.
* The time from a key to the first byte that it changes on the terminal, in the real process.
* Filtering and drawing for one key, next to a bare substring filter over the same titles.

python benchmarks/picker.py [CONVERSATIONS] [REPETITIONS]
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import random
import select
import statistics
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

from prompt_toolkit.utils import get_cwidth

from moot.cli.commands.chat.browser import COLUMNS
from moot.cli.terminal.prompts.items import Choice, Item, Listing, Scope
from moot.cli.terminal.prompts.layout import Canvas, View, draw
from moot.config.settings import Settings
from moot.engine import open_engine
from moot.types.conversation import Conversation
from moot.types.ids import new_id

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


MOOT = [sys.executable, "-m", "moot"]
TOLD = """
import os, sys, time

class Told:
    def find_spec(self, name, path=None, target=None):
        if name == "asyncio":
            sys.meta_path.remove(self)
            with open(os.environ["TOLD"], "w") as file:
                file.write(str(time.process_time()))

sys.meta_path.insert(0, Told())
"""


def titles_of(number: int) -> list[str]:
    chance = random.Random(1)
    return [" ".join(chance.choices(WORDS, k=8)) for _ in range(number)]


async def seed(home: Path, titles: list[str]) -> None:
    async with open_engine(Settings(home)) as engine:
        for start in range(0, len(titles), 500):
            made = [
                Conversation(new_id(), title=title, title_source="user", directory="/src", model="model@mine")
                for title in titles[start : start + 500]
            ]
            await asyncio.gather(*map(engine.store.conversations.create, made))


class Terminal:
    """A process of `moot` with these arguments, on a pseudo-terminal of 120 by 40."""

    def __init__(self, environ: dict[str, str], *words: str) -> None:
        self.begun = time.perf_counter()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvpe(MOOT[0], [*MOOT, *words], environ)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def until(self, wanted: bytes) -> float:
        """Wait for these bytes. Return the milliseconds since the start."""
        seen = b""
        while wanted not in seen:
            seen += os.read(self.terminal, 65536)
        return (time.perf_counter() - self.begun) * 1000

    def key(self, key: str) -> float:
        """Wait until the terminal is quiet and press a key. Return the milliseconds until the first byte of output."""
        while select.select([self.terminal], [], [], 0.3)[0]:
            os.read(self.terminal, 65536)
        begun = time.perf_counter()
        os.write(self.terminal, key.encode())
        select.select([self.terminal], [], [], 10)
        return (time.perf_counter() - begun) * 1000

    def end(self) -> float:
        """Wait for the end of the process. Return its CPU time in ms."""
        try:
            while os.read(self.terminal, 65536):
                pass
        except OSError:  # a pseudo-terminal reports its closed end like this
            pass
        _, _, usage = os.wait4(self.pid, 0)
        os.close(self.terminal)
        return (usage.ru_utime + usage.ru_stime) * 1000


def starts(environ: dict[str, str], repetitions: int) -> None:
    told = Path(environ["TOLD"])
    rows: dict[str, list[tuple[float, float]]] = {"moot version": [], "the first screen": [], "a key acts": []}
    for _ in range(repetitions):
        version = Terminal(environ, "version")
        seen = version.until(b"moot")
        rows["moot version"].append((seen, version.end()))
        listed = Terminal(environ, "chat", "list")
        seen = listed.until(b"close")
        os.write(listed.terminal, b"\x04")  # early: the key waits until keys are read
        acted = listed.until(b"\x1b[J")
        cpu = listed.end()
        rows["the first screen"].append((seen, float(told.read_text()) * 1000))
        rows["a key acts"].append((acted, cpu))
    version_ms = [statistics.median(column) for column in zip(*rows["moot version"], strict=True)]
    print(f"start, medians of {repetitions}         ms   CPU ms    ratio   CPU ratio")
    for name, pairs in rows.items():
        wall, cpu = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"  {name:24} {wall:8.0f} {cpu:8.0f} {wall / version_ms[0]:8.1f} {cpu / version_ms[1]:11.1f}")


def keys(environ: dict[str, str]) -> None:
    listed = Terminal(environ, "chat", "list")
    listed.until(b"close")
    listed.key("\x1b[F")  # the end of the list: all of it is fetched
    times = [listed.key(key) for key in TYPED]
    os.write(listed.terminal, b"\x03")
    listed.end()
    print(f"{len(TYPED)} keys, each until the terminal changes: median {statistics.median(times):.1f} ms, worst {max(times):.1f} ms")


def filtering(titles: list[str]) -> None:
    items = [
        Item(str(at), ("2 h", title, "", "$0.01", "12", "model", "src"), f"{title} model@provider /src") for at, title in enumerate(titles)
    ]
    canvas = Canvas(120, 40, True, lambda text: len(text) if text.isascii() else sum(map(get_cwidth, text)))
    listing = Listing()
    listing.add(items)
    choice = Choice((Scope("all", ()),), COLUMNS)
    folded = [title.casefold() for title in titles]
    ours: list[float] = []
    bare: list[float] = []
    for end in range(1, len(TYPED) + 1):
        typed = TYPED[:end]
        start = time.perf_counter()
        listing.set_filter(typed)
        draw(View(choice, 0, listing, True), canvas)
        ours.append((time.perf_counter() - start) * 1000)
        start = time.perf_counter()
        words = typed.split()
        [at for at, title in enumerate(folded) if all(word in title for word in words)]
        bare.append((time.perf_counter() - start) * 1000)
    print(f"{len(TYPED)} keys                    median ms   worst ms")
    for name, times in (("our filter and drawing", ours), ("bare substring filter", bare)):
        print(f"  {name:24} {statistics.median(times):9.1f} {max(times):10.1f}")


def main() -> None:
    number, repetitions = [*map(int, sys.argv[1:]), *(10_000, 9)[len(sys.argv) - 1 :]]
    titles = titles_of(number)
    with tempfile.TemporaryDirectory() as root:
        home, site = Path(root, "home"), Path(root, "site")
        site.mkdir()
        (site / "sitecustomize.py").write_text(TOLD)
        asyncio.run(seed(home, titles))
        environ = {**os.environ, "MOOT_HOME": str(home), "TERM": "xterm-256color", "PYTHONPATH": str(site), "TOLD": str(Path(root, "told"))}
        os.chdir(root)
        print(f"{number:,} conversations")
        starts(environ, repetitions)
        keys(environ)
    filtering(titles)


if __name__ == "__main__":
    main()
