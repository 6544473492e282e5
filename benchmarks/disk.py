"""Disk space that an import takes, per table, compared with the size of its source.

    python benchmarks/disk.py [MB] [--home FOLDER]

The sources are sessions of Claude Code and Codex like real ones. Answers are documentation of this machine, and tool outputs are its files
and logs in varied sizes. Ids are random, and reasoning has signatures, which can't be compressed. Then `moot import --all` runs once, and
nothing else.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from answers import files, sentences

_MEAN = 1_200_000  # size of a session in bytes
_OUTPUTS = 24_000  # largest usual output of a tool


class Words:
    """Text of this machine, each piece used once; it starts again at the end."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._sentences = self._forever(sentences)
        self._files = self._forever(lambda: files(_OUTPUTS))

    @staticmethod
    def _forever(make: Callable[[], Iterator[str]]) -> Iterator[str]:
        while True:
            yield from make()

    def prose(self, count: int) -> str:
        return "\n\n".join(next(self._sentences) for _ in range(count))

    def output(self) -> str:
        kind = self._chance.random()
        if kind < 0.25:  # a log or a list, with hashes and numbers that occur only here
            return "\n".join(self._line(next(self._sentences)[:60]) for _ in range(self._chance.randint(4, 120)))
        if kind < 0.26:
            return "".join(next(self._files) for _ in range(20))
        return next(self._files)

    def _line(self, text: str) -> str:
        chance = self._chance
        clock = f"{chance.randint(0, 23):02}:{chance.randint(0, 59):02}:{chance.randint(0, 59):02}.{chance.randint(0, 999_999):06}"
        return f"2026-11-{chance.randint(1, 28):02}T{clock} {chance.randbytes(20).hex()} {text} {chance.randint(0, 9_999_999)} ms"

    def sealed(self, least: int, most: int) -> str:
        return base64.b64encode(self._chance.randbytes(self._chance.randint(least, most))).decode()

    def id(self) -> str:
        return str(uuid.UUID(bytes=self._chance.randbytes(16), version=4))


def claude_code(folder: Path, words: Words, chance: random.Random, size: int) -> int:
    """Write a session and return its size."""
    session, parent, clock, lines, written = words.id(), None, chance.randint(1_700_000_000, 1_760_000_000), list[str](), 0
    head = {"isSidechain": False, "userType": "external", "cwd": "/home/user/project", "version": "2.1.330", "gitBranch": "main"}

    def put(**fields: Any) -> None:
        nonlocal parent, clock, written
        clock += chance.randint(1, 40)
        at = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(clock))}.{chance.randint(0, 999):03}Z"
        own = words.id()
        lines.append(json.dumps({"parentUuid": parent, **head, "sessionId": session, "uuid": own, "timestamp": at, **fields}))
        parent, written = own, written + len(lines[-1]) + 1

    def said(*content: dict[str, Any], stop: str | None = None) -> dict[str, Any]:
        usage = {"input_tokens": chance.randint(3, 900), "cache_read_input_tokens": chance.randint(0, 150_000), "output_tokens": 300}
        answer = {"id": f"msg_{words.id()}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage}
        return {**answer, "content": [*content], "stop_reason": stop}

    while written < size:
        put(type="user", message={"role": "user", "content": words.prose(chance.randint(1, 4))})
        for _ in range(chance.randint(1, 12)):
            call, path = f"toolu_{words.id().replace('-', '')[:24]}", f"/home/user/project/src/{chance.randint(0, 400)}/module.py"
            if chance.random() < 0.4:
                put(type="assistant", message=said({"type": "thinking", "thinking": words.prose(2), "signature": words.sealed(200, 800)}))
            put(type="assistant", message=said({"type": "text", "text": words.prose(chance.randint(1, 3))}))
            name, given = chance.choice((("Read", {"file_path": path}), ("Bash", {"command": f"sed -n 1,200p {path}", "timeout": 60_000})))
            put(type="assistant", message=said({"type": "tool_use", "id": call, "name": name, "input": given}, stop="tool_use"))
            output = words.output()
            result = (
                {"stdout": output, "stderr": "", "interrupted": False} if name == "Bash" else {"type": "text", "file": {"content": output}}
            )
            put(
                type="user",
                message={"role": "user", "content": [{"tool_use_id": call, "type": "tool_result", "content": output}]},
                toolUseResult=result,
            )
        put(type="assistant", message=said({"type": "text", "text": words.prose(6)}, stop="end_turn"))
    target = folder / ".claude" / "projects" / f"-home-user-project{chance.randint(0, 5)}" / f"{session}.jsonl"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(f"{line}\n" for line in lines))
    return written


def codex(folder: Path, words: Words, chance: random.Random, size: int) -> int:
    """Write a session and return its size."""
    session, clock, lines, written = words.id(), chance.randint(1_700_000_000, 1_760_000_000), list[str](), 0

    def put(kind: str, **payload: Any) -> None:
        nonlocal clock, written
        clock += chance.randint(1, 40)
        at = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(clock))}.{chance.randint(0, 999):03}Z"
        lines.append(json.dumps({"timestamp": at, "type": kind, "payload": payload}))
        written += len(lines[-1]) + 1

    put(
        "session_meta",
        id=session,
        timestamp="2026-11-01T00:00:00.000Z",
        cwd="/home/user/project",
        originator="codex_cli_rs",
        cli_version="0.150.0",
    )
    put("turn_context", cwd="/home/user/project", approval_policy="on-request", model="gpt-5.5-codex")
    while written < size:
        asked = words.prose(chance.randint(1, 4))
        put("event_msg", type="user_message", message=asked)
        put("response_item", type="message", role="user", content=[{"type": "input_text", "text": asked}])
        for _ in range(chance.randint(1, 12)):
            call = f"call_{words.id().replace('-', '')[:24]}"
            thought = words.prose(1)
            summary = [{"type": "summary_text", "text": thought}]
            put("response_item", type="reasoning", summary=summary, content=None, encrypted_content=words.sealed(300, 1200))
            command = json.dumps({"command": ["bash", "-lc", f"sed -n 1,200p src/{chance.randint(0, 400)}/module.py"]})
            put("response_item", type="function_call", name="shell", arguments=command, call_id=call)
            put(
                "response_item",
                type="function_call_output",
                call_id=call,
                output=json.dumps({"output": words.output(), "metadata": {"exit_code": 0}}),
            )
        answer = words.prose(6)
        put("event_msg", type="agent_message", message=answer)
        put("response_item", type="message", role="assistant", content=[{"type": "output_text", "text": answer}])
    target = folder / ".codex" / "sessions" / "2026" / "11" / "01" / f"rollout-2026-11-01T00-00-00-{session}.jsonl"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(f"{line}\n" for line in lines))
    return written


def generated(folder: Path, megabytes: int) -> int:
    """Write sessions until they have about this size. Return the number of bytes."""
    chance = random.Random(megabytes)
    words, written, number = Words(chance), 0, 0
    while written < megabytes * 1_000_000:
        write = codex if number % 3 == 2 else claude_code
        written += write(folder, words, chance, int(min(chance.expovariate(1 / _MEAN), megabytes * 250_000)))
        number += 1
    return written


def tables(database: Path) -> Iterator[tuple[str, int]]:
    """Yield each table and index with its bytes in the file, largest first, then the free pages."""
    from moot.store.database.connection import sqlite

    connection = sqlite.connect(str(database))
    try:
        yield from connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC")
    except sqlite.OperationalError:  # this SQLite has no dbstat
        yield from sqlite3.connect(database).execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC")
    (free,) = connection.execute("SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size").fetchone()
    yield "(free pages)", free
    connection.close()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("megabytes", nargs="?", type=int, default=64)
    arguments.add_argument("--home", type=Path, help="a folder for sources and database that is kept; sources in it are used again")
    options = arguments.parse_args()
    folder: Path = options.home or Path(tempfile.mkdtemp(prefix="moot-disk-", dir="/tmp"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if not any(folder.glob(".c*")):
            generated(folder, options.megabytes)
        source = sum(path.stat().st_size for path in folder.rglob("*.jsonl"))
        home = folder / "moot"
        shutil.rmtree(home, ignore_errors=True)
        began = time.monotonic()
        environment = {**os.environ, "HOME": str(folder), "MOOT_HOME": str(home)}
        done = subprocess.run(
            [sys.executable, "-m", "moot", "import", "--all", "--json"], env=environment, stdout=subprocess.PIPE, check=True
        )
        seconds, used = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        total = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
        for name, size in tables(home / "data" / "moot.db"):
            if size > source / 1000:
                print(f"{name:32} {size / 1e6:8.2f} MB {size / source:6.3f}")
        log = home / "data" / "moot.db-wal"
        print(f"{'(write-ahead log)':32} {(log.stat().st_size if log.exists() else 0) / 1e6:8.2f} MB")
        print(f"{total / 1e6:.1f} MB of disk for {source / 1e6:.1f} MB of sources: {total / source:.2f} times")
        print(f"{seconds:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of CPU, largest process {used.ru_maxrss / 1e3:.0f} MB")
        said = json.loads(done.stdout)
        print({name: said.get(name) for name in ("conversations", "messages", "index", "seconds")})
    finally:
        if options.home is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
