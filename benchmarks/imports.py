"""How fast Claude Code's JSONL comes in, with how much memory, at 0.1 and 1 GB side by side; and what watching costs while nothing happens.

Run it with `nice -n 10 python benchmarks/imports.py [MB …]`; its files lie under /tmp and are gone at the end.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import spent

WORDS = [*"abcdefgh", "run", "step", "calls", "tools", "reads", "back", "before", "goes", "next", "nobody", "waits", "answer", "folder"]
RECORD = {"isSidechain": False, "userType": "external", "cwd": "/home/user/project", "version": "2.1.330", "gitBranch": "main"}


def text(random_: random.Random, length: int) -> str:
    return " ".join(random_.choice(WORDS) + (str(random_.randint(0, 9999)) if random_.random() < 0.2 else "") for _ in range(length // 6))


def session(path: Path, size: int, random_: random.Random) -> int:
    """Writes a session of about that many bytes; how many messages it comes to."""
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
    """A folder of projects as Claude Code keeps them; how many messages are in it."""
    random_, messages = random.Random(megabytes), 0
    sizes = [megabytes // 2] + [max(1, megabytes // 40)] * 20
    for number, size in enumerate(sizes):
        project = folder / ".claude" / "projects" / f"-home-user-project{number % 4}"
        project.mkdir(parents=True, exist_ok=True)
        messages += session(project, size * 1_000_000, random_)
    return messages


def imported(home: Path) -> tuple[float, float, float, dict[str, object]]:
    """Seconds, seconds of CPU, MB at most; what was said."""
    environment = {**os.environ, "HOME": str(home), "MOOT_HOME": str(home / "moot")}
    began = time.monotonic()
    program = [sys.executable, "-m", "moot", "import", "--all", "--json"]
    process = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"the import failed: {said[-400:]!r}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, json.loads(said)


def watched(home: Path, seconds: float = 20.0) -> float:
    """The share of a core that watching takes while nothing is written, in hundredths."""
    environment = {**os.environ, "HOME": str(home), "MOOT_HOME": str(home / "moot")}
    program = [sys.executable, "-m", "moot", "import", "--all", "--watch"]
    process = subprocess.Popen(program, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        if not any("watching" in line for line in process.stderr):
            raise SystemExit("watching ended before it began")
        time.sleep(3)  # what it has begun is done
        before = spent.cpu(process.pid)
        time.sleep(seconds)
        return (spent.cpu(process.pid) - before) / seconds * 100
    finally:
        process.terminate()  # a shell's background has the other signal ignored
        process.communicate()


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or [100, 1000]
    print("    MB  messages  seconds    MB/s messages/s   CPU s  peak MB  database MB  indexed")
    for size in sizes:
        home = Path(tempfile.mkdtemp(prefix="moot-imports-", dir="/tmp"))
        try:
            generated(home, size)
            actual = sum(file.stat().st_size for file in home.rglob("*.jsonl")) / 1e6
            seconds, cpu, memory, said = imported(home)
            messages, index = int(str(said["messages"])), said["index"]
            assert isinstance(index, dict)
            stored = sum(file.stat().st_size for file in (home / "moot" / "data").iterdir() if file.is_file()) / 1e6
            share = index["done"] / index["total"] if index["total"] else 1.0
            print(
                f"{actual:6.0f} {messages:9,} {seconds:8.1f} {actual / seconds:7.1f} {messages / seconds:10,.0f} {cpu:7.1f} {memory:8.0f}"
                f" {stored:12.0f} {share:8.0%}"
            )
            print(f"       watching them while nothing is written: {watched(home):.2f} % of a core")
        finally:
            shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
