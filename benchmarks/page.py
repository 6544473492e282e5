"""The cost of the page in a browser: fetched bytes, blocked time, and the time until a long conversation is visible.

Debian's Chromium, headless, with a real `moot serve` and a scripted model, all on one machine.

    first view     fetched bytes for a new conversation, each file by gzip: when the view is complete, and afterwards
    an answer      2,000 deltas of Markdown, streamed into the page: tasks over 50 ms, the longest one, and CPU
    a long one     a conversation of 10,000 messages, from the start of the navigation to the first paint of its last message
    file tree      a project of 100,000 files, from the click on its link to the first paint of its file tree

The page must be built (`make web`); the browser's fixtures are those of `tests/browser`.

    PYTHONPATH=tests python benchmarks/page.py [--reps 3] [--messages 10000] [--files 100000]
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import re
import shutil
import sys
import tempfile
import urllib.request
from dataclasses import replace
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, CDPSession, Page, Response, expect, sync_playwright

from browser.conftest import FLAGS, PAGE
from browser.moot_server import Served, served
from browser.test_conversation import messages, say
from moot.config.settings import Settings
from moot.store import open_store
from moot.testing.script import Reply
from moot.types.conversation import Conversation
from moot.types.ids import new_id
from moot.types.message import Message, text_part

DELTAS, PIECE = 2_000, 8
"""Deltas of an answer, and characters per delta."""
LONG = 50.0
"""ms"""
PARAGRAPH = (
    "A paragraph of **an answer** with `code`, [a link](https://example.org) and a list:\n\n* one\n* two\n\n```python\nx = 1\n```\n\n"
)
ANSWER = (PARAGRAPH * DELTAS)[: DELTAS * PIECE - len("\n\nThe end.")] + "\n\nThe end."
SCRIPT = (
    Reply(when="at length", text=ANSWER, chunk_size=PIECE, delay=0.004, times=0),
    Reply(when="", text="Hello from the model.", times=0),
)
SETTLED = 3_000
"""Milliseconds after which a view has fetched everything. Its event stream stays open, so the network never becomes idle."""
LAST = "The last message of many."
_STANDS = """{
    const look = () => document.querySelector('main h1')
        ? (window.early = [location.href, ...performance.getEntriesByType('resource').map((one) => one.name)])
        : requestAnimationFrame(look)
    requestAnimationFrame(look)
}"""
"""Record the addresses fetched until the view was complete."""
_TASKS = """() => {
    window.tasks = []
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((one) => one.duration))).observe({ type: 'longtask' })
}"""
_PAINTED = """(last) => new Promise((resolve) => {
    const look = () => document.querySelector('[role=log]')?.textContent.includes(last)
        ? requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
        : requestAnimationFrame(look)
    look()
})"""
"""Return the milliseconds from the start of the navigation to the paint of the first frame with the text."""


_FILES = """(address) => new Promise((resolve) => {
    const began = performance.now()
    const look = () => document.querySelector('[role=treeitem]')
        ? requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)))
        : requestAnimationFrame(look)
    history.pushState(null, '', address)
    look()
})"""
"""Show another view as a click on its link does. Return the milliseconds until the first frame with its file tree is painted."""


async def long_conversation(home: Path, count: int) -> str:
    """Create a conversation of `count` messages, half of them with Markdown, and return its id."""
    store = await open_store(Settings(home=home))
    made = await store.conversations.create(replace(Conversation(new_id()), title="A long one", directory="/"))
    parent = None
    for number in range(count):
        said = LAST if number == count - 1 else f"Message {number}. {PARAGRAPH if number % 2 else 'And what comes then?'}"
        role = "assistant" if number % 2 else "user"
        message = Message(new_id(), role, (text_part(said),), conversation=made.id, parent=parent, status="finished")
        parent = (await store.conversations.add_message(message)).id
    await store.close()
    return made.id


def signed_in(browser: Browser, server: Served) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.goto(server.login())
    expect(page).not_to_have_url(re.compile("#.*code"))
    page.locator("main h1").first.wait_for()
    return page


def first_view(browser: Browser, server: Served) -> tuple[float, float]:
    """Return the gzip-compressed kB that a browser with an empty cache has fetched when the view is complete, and some seconds later."""
    seen = signed_in(browser, server).context
    page = browser.new_context(storage_state=seen.storage_state()).new_page()
    fetched: list[Response] = []
    page.on("response", lambda one: fetched.append(one))
    page.add_init_script(_STANDS)
    page.goto(server.url)
    page.locator("main h1").first.wait_for()
    page.wait_for_timeout(SETTLED)
    early: list[str] = page.evaluate("window.early")
    files = {one.url: one for one in fetched if one.status == 200 and one.request.resource_type in ("document", "script", "stylesheet")}
    weights = {url: len(gzip.compress(one.body())) / 1000 for url, one in files.items()}
    return sum(weight for url, weight in weights.items() if url in early), sum(weights.values())


def streamed(browser: Browser, server: Served) -> tuple[list[float], float]:
    """Return the durations of the long tasks during an answer, and the CPU time of the page's thread, in ms."""
    conversation = server.say("hello", model="scripted@told")
    page = signed_in(browser, server)
    page.goto(f"{server.url}/c/{conversation}")
    expect(messages(page).get_by_text("Hello from the model.")).to_be_visible(timeout=30_000)
    page.wait_for_timeout(SETTLED)
    page.evaluate(_TASKS)
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = busy(devtools)
    say(page, "at length please")
    page.evaluate(_PAINTED, "The end.")  # a locator searches all elements again and again, which are long tasks of their own
    tasks: list[float] = page.evaluate("window.tasks")
    took = busy(devtools) - before
    page.context.close()
    return tasks, took


def busy(devtools: CDPSession) -> float:
    """Return the CPU time used so far, in ms."""
    found = {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}
    return found["TaskDuration"] * 1000


def opened(browser: Browser, server: Served, conversation: str) -> float:
    """Return the seconds from the navigation to the paint of the last message, in a browser that has the page's files."""
    page = signed_in(browser, server)
    page.goto(f"{server.url}/c/{conversation}", wait_until="commit")
    took: float = page.evaluate(_PAINTED, LAST)
    page.context.close()
    return took / 1000


def large_project(folder: Path, server: Served, count: int) -> str:
    """Create a project with so many empty files, 400 in each folder, and return its id."""
    for number in range(0, count, 400):
        place = folder / f"folder-{number:06}"
        place.mkdir(parents=True)
        for file in range(min(400, count - number)):
            (place / f"file-{file:03}.txt").touch()
    body = json.dumps({"name": "large", "root_path": str(folder)}).encode()
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{server.url}/api/projects", body, headers)) as answer:
        return str(json.load(answer)["id"])


def tree_shown(browser: Browser, server: Served, project: str) -> float:
    """Return the ms from the click on the link to a project's files to the paint of its file tree."""
    page = signed_in(browser, server)
    page.goto(f"{server.url}/settings/projects")
    page.wait_for_timeout(SETTLED)
    took: float = page.evaluate(_FILES, f"/projects/{project}")
    page.context.close()
    return took


def row(name: str, value: str, reach: str = "") -> None:
    print(f"{name:<62}{value:>12}   {reach}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=100_000)
    options = parser.parse_args()
    program = shutil.which("chromium")
    if program is None or not PAGE.is_file():
        print("it needs Debian's chromium, and the built page: `make web`", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), script=SCRIPT) as server:
        project = large_project(Path(folder, "large"), server, options.files)
        long = asyncio.run(long_conversation(server.moot.home, options.messages))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
            first, later = first_view(browser, server)
            answers = [streamed(browser, server) for _ in range(options.reps)]
            paints = [opened(browser, server, long) for _ in range(options.reps)]
            trees = [tree_shown(browser, server, project) for _ in range(options.reps)]
            browser.close()
    print(f"\nThe page in headless Chromium, {options.reps} reps, load {os.getloadavg()[0]:.1f}\n")
    row("first view: page, scripts and styles, kB by gzip", f"{first:.0f}", "(to reach: 350)")
    row(f"first view: {SETTLED / 1000:.0f} s later, kB by gzip", f"{later:.0f}")
    longest = [max(tasks, default=0.0) for tasks, _ in answers]
    counts = " ".join(str(sum(task > LONG for task in tasks)) for tasks, _ in answers)
    row(f"an answer of {DELTAS:,} deltas: CPU of the page's thread, ms a delta", f"{min(took for _, took in answers) / DELTAS:.2f}")
    row(f"an answer of {DELTAS:,} deltas: tasks over {LONG:.0f} ms in each", counts, "(to reach: 0)")
    row(f"an answer of {DELTAS:,} deltas: longest task, ms, at best", f"{min(longest):.0f}", f"({min(longest):.0f} to {max(longest):.0f})")
    spread = f"({min(paints):.2f} to {max(paints):.2f}; to reach: 1)"
    row(f"a conversation of {options.messages:,} messages: painted after s", f"{median(paints):.2f}", spread)
    spread = f"({min(trees):.0f} to {max(trees):.0f}; to reach: 200)"
    row(f"a project of {options.files:,} files: file tree painted after ms", f"{median(trees):.0f}", spread)
    return 0


if __name__ == "__main__":
    sys.exit(main())
