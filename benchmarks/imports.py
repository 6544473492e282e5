"""Speed and memory of importing 0.1 and 1 GB of Claude Code's JSONL files, and the cost of watching unchanged files.

Run it with `nice -n 10 python benchmarks/imports.py [MB …]`; its files are under /tmp and are deleted at the end.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import spent

WORDS = [*"abcdefgh", "run", "step", "calls", "tools", "reads", "back", "before", "goes", "next", "nobody", "waits", "answer", "folder"]
RECORD = {"isSidechain": False, "userType": "external", "cwd": "/home/user/project", "version": "2.1.330", "gitBranch": "main"}


def phrase() -> str:
    words = [random.choice(WORDS) + (str(random.randint(0, 9999)) if random.random() < 0.2 else "") for _ in range(10)]
    return " ".join(words)


PHRASES = [phrase() for _ in range(50_000)]
"""Every fifth word has its own number, so that no text occurs twice and all are generated quickly."""


def text(random_: random.Random, length: int) -> str:
    return " ".join(random_.choices(PHRASES, k=length // 60 + 1))


def session(path: Path, size: int, random_: random.Random, text: Callable[[random.Random, int], str] = text) -> int:
    """Write a session of about `size` bytes, with texts by `text`. Return its number of messages."""
    id, parent, written, messages, clock = str(uuid.uuid4()), None, 0, 0, 1_760_000_000

    def put(file: object, **fields: object) -> None:
        nonlocal parent, written, clock
        own = str(uuid.uuid4())
        clock += 3
        at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(clock))
        line = json.dumps({"parentUuid": parent, **RECORD, "sessionId": id, "uuid": own, "timestamp": at, **fields}) + "\n"
        parent = own
        written += len(line)
        file.write(line)  # type: ignore[attr-defined]

    with (path / f"{id}.jsonl").open("w") as file:
        while written < size:
            put(file, type="user", message={"role": "user", "content": text(random_, 400)})
            messages += 2
            for step in range(random_.randint(1, 4)):
                call, answer = f"toolu_{uuid.uuid4().hex[:20]}", f"msg_{uuid.uuid4().hex[:20]}"
                usage = {"input_tokens": 12, "cache_read_input_tokens": 9000, "cache_creation_input_tokens": 300, "output_tokens": 200}
                said = {"id": answer, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage}
                use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": text(random_, 60)}}
                put(
                    file, type="assistant", message={**said, "content": [{"type": "text", "text": text(random_, 500)}], "stop_reason": None}
                )
                put(file, type="assistant", message={**said, "content": [use], "stop_reason": "tool_use"})
                output = text(random_, random_.choice((300, 2000, 6000)))
                result = {"tool_use_id": call, "type": "tool_result", "content": output}
                put(file, type="user", message={"role": "user", "content": [result]}, toolUseResult={"stdout": output, "stderr": ""})
                del step
            done = {"id": f"msg_{uuid.uuid4().hex[:20]}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
            put(
                file,
                type="assistant",
                message={**done, "content": [{"type": "text", "text": text(random_, 800)}], "stop_reason": "end_turn"},
            )
    return messages


def generated(folder: Path, megabytes: int) -> int:
    """Create a folder of projects as Claude Code stores them. Return the number of messages in it."""
    random_, messages = random.Random(megabytes), 0
    sizes = [megabytes // 2] + [max(1, megabytes // 40)] * 20
    for number, size in enumerate(sizes):
        project = folder / ".claude" / "projects" / f"-home-user-project{number % 4}"
        project.mkdir(parents=True, exist_ok=True)
        messages += session(project, size * 1_000_000, random_)
    return messages


def bare(home: Path) -> tuple[float, float]:
    """Return wall and CPU seconds of a loop that parses each line and inserts it into a SQLite table, one transaction per file."""
    database = sqlite3.connect(home / "bare.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("CREATE TABLE line (no INTEGER PRIMARY KEY, raw BLOB NOT NULL)")
    began, cpu = time.monotonic(), time.process_time()
    for path in home.rglob("*.jsonl"):
        database.execute("BEGIN")
        with path.open("rb") as lines:
            for line in lines:
                orjson.loads(line)
                database.execute("INSERT INTO line (raw) VALUES (?)", (line,))
        database.execute("COMMIT")
    took = time.monotonic() - began, time.process_time() - cpu
    database.close()
    for file in home.glob("bare.db*"):
        file.unlink()
    return took


@dataclass
class Imported:
    """The cost of one `moot import`."""

    seconds: float
    cpu: float
    """CPU seconds of all its processes."""
    storing: tuple[float, float]
    """CPU seconds until everything was stored: of the program itself, and of its reader process."""
    peak: float
    """MB resident in all its processes together; shared pages count for each."""
    said: dict[str, Any]


def imported(home: Path) -> Imported:
    environment = {**os.environ, "HOME": str(home), "MOOT_HOME": str(home / "moot")}
    program = [sys.executable, "-m", "moot", "import", "--all", "--json"]
    seen: list[tuple[float, float, float]] = []
    with tempfile.TemporaryFile() as output:
        began = time.monotonic()
        process = subprocess.Popen(program, env=environment, stdout=output, stderr=subprocess.DEVNULL)
        peak = reader = 0.0
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            own = spent.one(process.pid)
            reader = max(reader, spent.cpu(process.pid) - own)
            seen.append((time.monotonic() - began, own, reader))
            peak = max(peak, spent.memory(process.pid, "VmRSS"))
            time.sleep(0.05)
        seconds = time.monotonic() - began
        output.seek(0)
        answer = output.read()
    if ended[1]:
        raise SystemExit(f"the import failed: {answer[-400:]!r}")
    said = json.loads(answer)
    until = seconds - said["seconds"]["indexed"]
    _, own, reader = max((one for one in seen if one[0] <= until), default=(0.0, 0.0, 0.0))
    return Imported(seconds, ended[2].ru_utime + ended[2].ru_stime, (own, reader), peak * 1.048576, said)


def watched(home: Path, seconds: float = 20.0) -> float:
    """Return the share of a core, in percent, that watching uses while nothing is written."""
    environment = {**os.environ, "HOME": str(home), "MOOT_HOME": str(home / "moot")}
    program = [sys.executable, "-m", "moot", "import", "--all", "--watch"]
    process = subprocess.Popen(program, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        if not any("watching" in line for line in process.stderr):
            raise SystemExit("watching ended before it began")
        time.sleep(3)  # finish the work in progress
        before = spent.cpu(process.pid)
        time.sleep(seconds)
        return (spent.cpu(process.pid) - before) / seconds * 100
    finally:
        process.terminate()  # a background process of a shell ignores the other signal
        process.communicate()


HEAD = (
    "    MB    lines messages | storing s    MB/s  lines/s messages/s  CPU s + reader's  MB/s with a core for each"
    " | index s  CPU s  indexed | peak MB  database MB  load | bare loop s  CPU s"
)


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or [100, 1000]
    print(HEAD)
    for size in sizes:
        home = Path(tempfile.mkdtemp(prefix="moot-imports-", dir="/tmp"))
        try:
            generated(home, size)
            files = list(home.rglob("*.jsonl"))
            actual = sum(file.stat().st_size for file in files) / 1e6
            lines = sum(map(count, files))
            loop, its_cpu = bare(home)
            print(f"{actual:6.0f} {lines:8,} {row(home, actual, lines, imported(home))} | {loop:11.1f} {its_cpu:6.1f}", flush=True)
            print(f"       watching them while nothing is written: {watched(home):.2f} % of a core", flush=True)
        finally:
            shutil.rmtree(home, ignore_errors=True)


def row(home: Path, size: float, lines: int, took: Imported) -> str:
    messages, index, seconds = int(took.said["messages"]), took.said["index"], took.said["seconds"]["stored"]
    own, reader = took.storing
    stored = sum(file.stat().st_size for file in (home / "moot" / "data").iterdir() if file.is_file()) / 1e6
    share = index["done"] / index["total"] if index["total"] else 1.0
    return (
        f"{messages:8,} | {seconds:9.1f} {size / seconds:7.1f} {lines / seconds:8,.0f} {messages / seconds:10,.0f}"
        f" {own:6.1f} + {reader:8.1f} {size / max(own, reader):26.1f}"
        f" | {took.said['seconds']['indexed']:7.1f} {took.cpu - own - reader:6.1f} {share:8.0%}"
        f" | {took.peak:7.0f} {stored:12.0f} {os.getloadavg()[0]:5.1f}"
    )


def count(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


if __name__ == "__main__":
    main()
