"""What starting costs: processor time (user and system) of short commands against a bare interpreter, medians of nine, bytecode compiled.

python benchmarks/start.py

The floors come first: the same packages of others imported by an empty script, below which no command can go.
"""

from __future__ import annotations

import compileall
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import moot
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

TIMES = 9
FLOORS = {
    "chat list": "orjson, pysqlite3",
    "run": "asyncio, anyio, uvloop, orjson, pysqlite3, aiohttp",
}
BUDGETS = {"version": 8, "completion words": 8, "chat list": 14, "run": 45}
PEERS = ("llm", "gptme", "codex", "claude", "gemini", "opencode")


def cost(command: Sequence[str], environ: Mapping[str, str]) -> float:
    """Seconds of processor time, the median."""
    taken: list[float] = []
    for _ in range(TIMES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(taken)


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

        def line(name: str, command: Sequence[str], budget: int | None = None) -> None:
            times = cost(command, environ) / bare
            print(f"{name:<40} {times:5.1f} x" + (f"  (at most {budget})" if budget else ""))

        for name, packages in FLOORS.items():
            line(f"floor of {name}: {packages}"[:40], [sys.executable, "-c", f"import {packages}"])
        program = [sys.executable, "-m", "moot"]
        for words in (["run", "--no-tools", "one"], ["chat", "list"]):  # a home that has been used
            subprocess.run([*program, *words], env=environ, stdout=subprocess.DEVNULL, check=True)
        for name, words in {
            "version": ["version"],
            "completion words": ["completion", "words", "bash", "moot chat show "],
            "chat list": ["chat", "list"],
            "run": ["run", "hi"],
        }.items():
            line(f"moot {name}" + (" (to its end)" if name == "run" else ""), [*program, *words], BUDGETS[name])
        for peer in PEERS:
            if found := shutil.which(peer):
                line(f"{peer} --version", [found, "--version"])


if __name__ == "__main__":
    main()
