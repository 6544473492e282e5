"""The cost of `moot serve` compared with a relay that only forwards bytes, over HTTP and in the same run.

The provider, this client and the measured server share the machine's cores. moot streams the AI SDK's dialect, and uses its log, the raw
bytes and its loop. `limits.runs_per_user` is 0 because all streams belong to one user. The relay is measured first and last in each
repetition: if the two differ, another program used the machine and the run is discarded. Every answer is checked for its whole text.

    W1      one stream of 5,000 chunks, flat out
    W2      100 streams of 500 chunks, 10 ms apart
    W3      50 runs of 5 tool rounds and 100 chunks; a round is the extra cost compared with no tools, divided by 250
    idle    1,000 watchers on 100 conversations without activity

    python benchmarks/server.py [--reps 3] [--only W1,W2,W3,idle]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import load
import spent
import uvloop
from load import Load
from stream import free_port

HERE = Path(__file__).parent
ROUNDS = 5
LOADS = {
    "W1": Load(1, 5000),
    "W2": Load(100, 500, delay=10),
    "W3": Load(50, 100, rounds=ROUNDS),
    "W3 without": Load(50, 100),
}
REPEATS = {"W1": 3}
"""Number of times that a short load runs in one repetition. The median is used."""
AGREED = 1.25
"""Maximum ratio of the two measurements of the relay."""
CONVERSATIONS, WATCHERS, WATCHED = 100, 10, 10.0
CONFIG = """
models: {{main: bench@bench}}
providers:
  bench: {{dialect: openai-chat, base_url: "http://127.0.0.1:{port}/v1", api_key: none, models: {{bench: {{context: 10000000}}}}}}
permissions: {{rules: [{{tool: bench_add, action: allow}}]}}
agents: {{default: {{tools: [bench_add]}}}}
limits: {{runs_per_user: 0}}
"""


@dataclass
class Figures:
    """Results of one load on one server."""

    cpu: float
    """Milliseconds per 1,000 chunks; for W3 of the whole load."""
    wall: float
    first: list[float]
    lag: list[float]
    memory: float
    """MiB at the peak."""
    lost: list[str]


@dataclass
class Target:
    """A running server."""

    name: str
    port: int
    path: str
    pid: int
    ui: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    begun: float = 0.0
    """MiB resident before the first request."""
    figures: dict[str, list[Figures]] = field(default_factory=dict[str, list[Figures]])


# ── what is compared ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def answers(port: int, path: str) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2).read(1)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


@contextmanager
def program(
    command: list[str], port: int, ready: str, environ: Mapping[str, str] | None = None, *, output: int | None = None
) -> Iterator[int]:
    """Start a server, wait until it responds on its port, and yield its process id. Stop it at the end of the block."""
    process = subprocess.Popen(command, env={**os.environ, **(environ or {})}, stdout=output, stderr=output)
    try:
        until = time.monotonic() + 30
        while not answers(port, ready):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"it does not answer: {' '.join(command)}")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def relay(name: str, upstream: int) -> Iterator[Target]:
    port = free_port()
    with program([sys.executable, str(HERE / "relay.py"), str(port), str(upstream)], port, "/cpu") as pid:
        yield Target(name, port, "/v1/chat/completions", pid)


@contextmanager
def moot(folder: Path, upstream: int) -> Iterator[Target]:
    port, token, home = free_port(), secrets.token_urlsafe(32), folder / "home"
    home.mkdir()
    (home / "config.yaml").write_text(CONFIG.format(port=upstream))
    path = os.pathsep.join(filter(None, (str(site(folder / "site")), os.environ.get("PYTHONPATH"))))
    environ = {"MOOT_HOME": str(home), "MOOT_TOKEN": token, "PYTHONPATH": path}
    with program([sys.executable, "-m", "moot", "serve", "--port", str(port)], port, "/readyz", environ) as pid:
        yield Target("moot serve", port, "/api/chat", pid, ui=True, headers={"authorization": f"Bearer {token}"})


def site(folder: Path) -> Path:
    """Create a folder for PYTHONPATH with the tool `bench_add` as an installed package, and return it."""
    metadata = folder / "moot_bench-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: moot-bench\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[moot.tools]\nbench_add = bench_add:BenchAdd\n")
    (folder / "bench_add.py").write_bytes((HERE / "bench_add.py").read_bytes())
    return folder


# ── the comparison ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def measured(target: Target, what: Load) -> Figures:
    spent.forget(target.pid)
    before = spent.cpu(target.pid)
    outcome = uvloop.run(load.run(target.port, target.path, what, ui=target.ui, headers=target.headers))
    used = (spent.cpu(target.pid) - before) * 1e3
    per = used if what.rounds or what == LOADS["W3 without"] else used / (what.streams * what.chunks / 1000)
    return Figures(per, outcome.wall, outcome.first, outcome.lag, spent.memory(target.pid), outcome.wrong)


def race(targets: list[Target], names: list[str], reps: int) -> None:
    for target in targets:
        target.begun = spent.memory(target.pid, "VmRSS")
        for _ in range(2):
            uvloop.run(load.run(target.port, target.path, Load(20, 100), ui=target.ui, headers=target.headers))
    for number in range(reps):
        for name in names:
            for target in targets:
                if name.startswith("W3") and not target.ui:
                    continue
                for _ in range(REPEATS.get(name, 1)):
                    one = measured(target, LOADS[name])
                    target.figures.setdefault(name, []).append(one)
                    if one.lost:
                        print(f"{target.name} lost {len(one.lost)} of {LOADS[name].streams} answers: {one.lost[0]}", file=sys.stderr)
                print(f"rep {number} {name:<11} {target.name:<12} {one.cpu:9.2f} ms", file=sys.stderr, flush=True)


async def watched(target: Target) -> tuple[int, float, float]:
    """Return the number of watchers that are still connected at the end, the share of a core that the server used, and its resident MiB."""
    shared = {"port": target.port, "headers": target.headers}
    made = [load.chat(Load(1, 1).prompt) for _ in range(CONVERSATIONS)]
    streams = [await load.send(target.port, load.request(target.port, target.path, one, target.headers), 60) for one in made]
    assert all(load.said(load.body_of(stream.pieces)[1])[0] for stream in streams), "a conversation was not answered"
    loop, open_ones = asyncio.get_running_loop(), []
    for one in made:
        data = load.request(body=b"", path=f"/api/conversations/{json.loads(one)['id']}/events?after=0", **shared)
        for _ in range(WATCHERS):
            open_ones.append((await loop.create_connection(lambda data=data: load.Stream(data), "127.0.0.1", target.port))[1])
    await asyncio.sleep(3)
    before = spent.cpu(target.pid)
    await asyncio.sleep(WATCHED)
    share = (spent.cpu(target.pid) - before) / WATCHED
    listening = sum(not one.done.done() and b" 200 " in one.pieces[0][:20] for one in open_ones if one.pieces)
    resident = spent.memory(target.pid, "VmRSS")
    for one in open_ones:
        one.transport.abort()
    return listening, share, resident


# ── the results ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def at(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else float("nan")


def middle(target: Target, name: str, what: Callable[[Figures], float]) -> float:
    return median(what(one) for one in target.figures[name])


def pooled(target: Target, name: str, column: str) -> list[float]:
    return [value for one in target.figures[name] for value in getattr(one, column)]


def line(label: str, value: str, reach: str = "") -> None:
    print(f"{label:<62}{value:>16}   {reach}")


def agreed(name: str, first: Target, last: Target) -> bool:
    """Return True if no other program used the machine, as far as the relay shows."""
    one, other = (middle(target, name, lambda figures: figures.cpu) for target in (first, last))
    line(f"{name}: relay first and last, CPU ms per 1,000 chunks", f"{one:.2f}  {other:.2f}")
    return max(one, other) / min(one, other) <= AGREED


def streams_told(name: str, first: Target, ours: Target, last: Target) -> None:
    def cpu(figures: Figures) -> float:
        return figures.cpu

    both = (middle(first, name, cpu) + middle(last, name, cpu)) / 2
    mine = middle(ours, name, cpu)
    spread = [figures.cpu for figures in ours.figures[name]]
    line(f"{name}: moot, CPU ms per 1,000 chunks", f"{mine:.2f}", f"({min(spread):.2f} to {max(spread):.2f})")
    line(f"{name}: moot compared with the relay", f"{mine / both:.2f} times", f"(to reach: {6 if name == 'W1' else 2})")
    lost = [text for figures in ours.figures[name] for text in figures.lost]
    line(f"{name}: answers lost", str(len(lost)), "(to reach: 0)")
    if name != "W2":
        return
    floor = pooled(first, name, "first") + pooled(last, name, "first")
    line("W2: first chunk p50 / p99 of the relay, ms", f"{at(floor, 0.5):.0f} / {at(floor, 0.99):.0f}")
    found = pooled(ours, name, "first")
    over = at(found, 0.5) - at(floor, 0.5), at(found, 0.99) - at(floor, 0.99)
    line("W2: first chunk p50 / p99 of moot over the relay's, ms", f"{over[0]:.0f} / {over[1]:.0f}", "(to reach: 30 / 100)")
    line("W2: end lag p99 of the relay, ms", f"{at(pooled(first, name, 'lag'), 0.99):.0f}")
    line("W2: end lag p99 of moot, ms", f"{at(pooled(ours, name, 'lag'), 0.99):.0f}", "(to reach: 150)")
    peak = max(figures.memory for figures in ours.figures[name])
    line("W2: peak of memory over idle, MiB", f"{peak - ours.begun:.0f}", f"(to reach: 80; idle {ours.begun:.0f})")


def rounds_told(ours: Target) -> None:
    calls = LOADS["W3"].streams * ROUNDS
    for label, what in (("CPU", lambda one: one.cpu), ("wall", lambda one: one.wall * 1e3)):
        each = (middle(ours, "W3", what) - middle(ours, "W3 without", what)) / calls
        line(f"W3: a tool round, {label} ms", f"{each:.2f}", "(to reach: 3, aim: 2.5)" if label == "CPU" else "")
    line("W3: answers lost", str(sum(len(figures.lost) for figures in ours.figures["W3"])), "(to reach: 0)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--only", default="W1,W2,W3,idle")
    options = parser.parse_args()
    wanted = options.only.split(",")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    names = [name for name in LOADS if name.partition(" ")[0] in wanted]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        source = free_port()
        stack.enter_context(program([sys.executable, str(HERE / "upstream.py"), str(source)], source, "/"))
        first, last = (stack.enter_context(relay(name, source)) for name in ("relay", "relay, last"))
        ours = stack.enter_context(moot(Path(folder), source))
        race([first, ours, last], names, options.reps)
        idle = uvloop.run(watched(ours)) if "idle" in wanted else None
    print(f"\nmoot serve compared with an ASGI relay, {options.reps} reps: medians\n")
    quiet = True
    for name in (name for name in names if not name.startswith("W3")):
        quiet = agreed(name, first, last) and quiet
        streams_told(name, first, ours, last)
    if "W3" in wanted:
        rounds_told(ours)
    if idle:
        line(f"idle: watchers that still listen, of {CONVERSATIONS * WATCHERS}", str(idle[0]))
        line("idle: share of a core", f"{idle[1]:.1%}", "(to reach: 10 %)")
        line("idle: memory, MiB", f"{idle[2]:.0f}", "(to reach: 250)")
    if not quiet:
        print("\nthe relay's two measurements differ, so another program used the machine: discard this run", file=sys.stderr)
    return not quiet


if __name__ == "__main__":
    sys.exit(main())
