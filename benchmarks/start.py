"""CPU time (user and system) of short commands relative to a bare interpreter: medians of nine runs, with compiled bytecode.

python benchmarks/start.py

The first rows are lower bounds: empty scripts that import the same third-party packages. A run has two figures: the time until its request
arrives at the provider, which is what a user waits for, and the time until its end.
"""

from __future__ import annotations

import asyncio
import compileall
import os
import pty
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import moot
from moot.testing._server import Recorded
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply
from moot.testing.scripted import ScriptedServer

TIMES = 9
FLOORS = {
    "chat list": "orjson, pysqlite3",
    "run": "asyncio, anyio, uvloop, orjson, pysqlite3, aiohttp",
}
BUDGETS = {"version": 8, "completion words": 8, "chat list": 14, "run": 45, "prompt": 25}
"""Time of a run until it reaches the provider."""
PEERS = ("llm", "gptme", "codex", "claude", "gemini", "opencode")


def cost(command: Sequence[str], environ: Mapping[str, str]) -> float:
    """Return the median processor time in seconds."""
    taken: list[float] = []
    for _ in range(TIMES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(taken)


async def cost_of_reaching(command: Sequence[str], environ: Mapping[str, str], home: Path) -> float:
    """Return the median processor time in seconds that a run has used when its first request arrives at the provider."""
    spent: list[float] = []
    pid = 0

    def arrived(request: Recorded) -> Reply:
        if not spent[-1]:
            spent[-1] = time.clock_gettime(_clock_of(pid))
        return Reply(text="hi")

    async with ScriptedServer(arrived) as server:
        (home / "config.yaml").write_text(config(server.openai_url))
        for number in range(TIMES + 1):
            spent.append(0.0)
            process = await asyncio.create_subprocess_exec(
                *command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ
            )
            pid = process.pid
            if await process.wait() or not spent[-1]:
                raise SystemExit(f"{' '.join(command)} did not reach the provider")
            if not number:
                spent.clear()  # caches the configuration for the next ones
    return statistics.median(spent)


def cost_of_prompt(command: Sequence[str], environ: Mapping[str, str], status: bytes) -> float:
    """Return the median processor time, in seconds, that the REPL has used when its first status line is on the terminal."""
    spent: list[float] = []
    for _ in range(TIMES):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvpe(command[0], list(command), {**environ, "TERM": "xterm-256color"})
        seen = b""
        while status not in seen:
            seen += os.read(terminal, 65536)
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()  # the shell waits for a process without work
        spent.append(sum(time.clock_gettime(_clock_of(one)) for one in (pid, *map(int, children))))
        os.write(terminal, b"\x04")
        with suppress(OSError):  # how a pseudo-terminal reports its end
            while os.read(terminal, 65536):
                pass
        os.waitpid(pid, 0)
        os.close(terminal)
    return statistics.median(spent)


def _clock_of(pid: int) -> int:
    """Return the id of the clock for a process's CPU time including all threads, like clock_getcpuclockid(3) on Linux."""
    return (~pid << 3) | 2


def config(url: str) -> str:
    """Return a configuration with one provider and one model."""
    provider = f'{{dialect: openai-chat, base_url: "{url}", api_key: scripted-key, models: {{scripted: {{context: 100000}}}}}}'
    return f"models: {{main: scripted@mine}}\nproviders:\n  mine: {provider}\n"


def main() -> None:
    compileall.compile_dir(str(Path(moot.__file__).parent), quiet=2)
    with tempfile.TemporaryDirectory() as folder, ScriptedProcess([Reply(text="hi", times=0)]) as server:
        home = Path(folder, "home")
        home.mkdir()
        (home / "config.yaml").write_text(server.config())
        environ = {**os.environ, "MOOT_HOME": str(home)}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        bare = cost([sys.executable, "-c", "pass"], environ)
        print(f"a bare interpreter: {bare * 1000:.0f} ms of processor time")

        def show(name: str, seconds: float, budget: int | None = None) -> None:
            print(f"{name:<44} {seconds / bare:5.1f} x" + (f"  (at most {budget})" if budget else ""))

        def line(name: str, command: Sequence[str], budget: int | None = None) -> None:
            show(name, cost(command, environ), budget)

        for name, packages in FLOORS.items():
            line(f"floor of {name}: {packages}"[:44], [sys.executable, "-c", f"import {packages}"])
        program = [sys.executable, "-m", "moot"]
        for words in (["run", "--no-tools", "one"], ["chat", "list"]):  # a home that was used before
            subprocess.run([*program, *words], env=environ, stdout=subprocess.DEVNULL, check=True)
        for name, words in {
            "version": ["version"],
            "completion words": ["completion", "words", "bash", "moot chat show "],
            "chat list": ["chat", "list"],
        }.items():
            line(f"moot {name}", [*program, *words], BUDGETS[name])
        show("moot (first prompt)", cost_of_prompt(program, environ, b"scripted@mine"), BUDGETS["prompt"])
        line("moot run (to its end)", [*program, "run", "hi"])
        reaching = asyncio.run(cost_of_reaching([*program, "run", "hi"], environ, home))
        show("moot run (reaches the provider)", reaching, BUDGETS["run"])
        for peer in PEERS:
            if found := shutil.which(peer):
                line(f"{peer} --version", [found, "--version"])


if __name__ == "__main__":
    main()
