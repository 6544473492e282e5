"""CPU cost of a streamed chunk and of a tool round, compared with a relay that only forwards bytes.

A relay process that forwards a stream of 5,000 chunks alternates with a process of moot, in which the same stream goes through provider,
log (with the raw bytes) and watcher. Every answer is checked for its whole text.

    python benchmarks/stream.py [--chunks 5000] [--reps 7]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median

import anyio
import upstream

from moot.types.event import Event

HERE = Path(__file__).parent
CONFIG = """
models: {{main: bench@bench}}
providers:
  bench: {{dialect: openai-chat, base_url: "http://127.0.0.1:{port}/v1", api_key: none, models: {{bench: {{context: 10000000}}}}}}
permissions: {{mode: auto}}
limits: {{runs_per_user: 0}}
"""
ROUNDS = 5
BATCH = 20
"""Number of runs per measurement of tool rounds. Their mean is used."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def program(*arguments: object) -> Iterator[int]:
    """Start a server from this folder, wait until it is ready, and yield its port. Stop it at the end of the block."""
    port = free_port()
    name, *rest = [str(argument) for argument in arguments]
    process = subprocess.Popen([sys.executable, str(HERE / name), str(port), *rest])
    try:
        for _ in range(200):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        else:
            raise SystemExit(f"{name} does not listen")
        yield port
    finally:
        process.terminate()
        process.wait()


# ── the relay ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def ask(port: int, method: str, path: str, body: bytes = b"") -> bytes:
    """Send an HTTP request on its own connection. Return the raw bytes of the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"%b %b HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % (method.encode(), path.encode(), len(body))
    )
    writer.write(body)
    answer = await reader.read(-1)
    writer.close()
    return answer


async def relay_cpu(port: int, chunks: int) -> float:
    """Return the CPU milliseconds of the relay for one stream."""

    async def spent() -> int:
        return int((await ask(port, "GET", "/cpu")).rpartition(b"\r\n\r\n")[2])

    before = await spent()
    answer = await ask(port, "POST", "/", json.dumps({"messages": [{"role": "user", "content": prompt(chunks)}]}).encode())
    after = await spent()
    if answer.count(b'"content":"') != chunks + 1:
        raise SystemExit("the relay lost text")
    return (after - before) / 1e6


def prompt(chunks: int, rounds: int = 0) -> str:
    return f"bench chunks={chunks} rounds={rounds}"


# ── moot, in its own process ────────────────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def moot(port: int, home: Path) -> AsyncIterator[object]:
    from moot.config.loader import load
    from moot.engine import open_engine

    home.mkdir()
    (home / "config.yaml").write_text(CONFIG.format(port=port))
    async with open_engine(load(home=home, environ={}, directory=home).settings) as engine:
        yield engine


async def moot_cpu(engine, directory: Path, chunks: int, rounds: int = 0) -> tuple[float, float, float]:
    """Milliseconds of one prompt, from its submission until its run has ended and a watcher has seen the end: CPU, CPU of the loop's
    thread alone, and wall."""
    from moot.types.message import text_part
    from moot.types.run import Prompt

    begun = time.process_time_ns(), time.thread_time_ns(), time.perf_counter_ns()
    submitted = await engine.runs.submit(Prompt((text_part(prompt(chunks, rounds)),), directory=str(directory), mode="auto"))
    batches: list[tuple[Event, ...]] = []
    async with aclosing(engine.tail.watch(submitted.conversation.id, after=submitted.seq)) as watched:
        async for batch in watched:
            batches.append(batch)
            if batch[-1].key == "run" and batch[-1].phase == "end":
                break
    await engine.runs.wait(submitted.run.id)
    ended_at = time.process_time_ns(), time.thread_time_ns(), time.perf_counter_ns()
    cpu, own, wall = ((after - before) / 1e6 for before, after in zip(begun, ended_at, strict=True))
    said, outputs, raw = what_was_seen(batches)
    if said != upstream.text(chunks) or outputs != rounds or raw < chunks:
        raise SystemExit(f"moot lost something: {len(said)} characters of {chunks} chunks, {outputs} of {rounds} tool outputs, {raw} raws")
    return cpu, own, wall


def what_was_seen(batches: list[tuple[Event, ...]]) -> tuple[str, int, int]:
    """Return the text and the numbers of tool outputs and raw frames that a watcher received. Called after the time is measured."""
    events = [event for batch in batches for event in batch]
    chunks = [chunk for event in events for chunk in event.chunks]
    for chunk in chunks:
        if chunk["type"] == "error":
            raise SystemExit(f"moot failed: {chunk['errorText']}")
    said = "".join(str(chunk["delta"]) for chunk in chunks if chunk["type"] == "text-delta")
    return said, sum(chunk["type"] == "tool-output-available" for chunk in chunks), sum(event.raw is not None for event in events)


async def moot_worker(port: int, home: Path) -> None:
    """Print the mean figures of a run for each line `chunks rounds times` on stdin."""
    from moot.__main__ import relax_garbage_collector

    relax_garbage_collector()  # as in the real process
    directory = home.with_name("work")
    directory.mkdir()
    async with moot(port, home) as engine:
        while line := await asyncio.to_thread(sys.stdin.readline):
            chunks, rounds, times = (int(number) for number in line.split())
            spent = [await moot_cpu(engine, directory, chunks, rounds) for _ in range(times)]
            print(*(sum(column) / times for column in zip(*spent, strict=True)), flush=True)


# ── the comparison ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=5000)
    parser.add_argument("--reps", type=int, default=7)
    parser.add_argument("--worker", nargs=2, metavar=("PORT", "HOME"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        anyio.run(moot_worker, int(options.worker[0]), Path(options.worker[1]), backend_options={"use_uvloop": True})
        return
    with tempfile.TemporaryDirectory() as folder, program("upstream.py") as source, program("relay.py", source) as relay:
        command = [sys.executable, __file__, "--worker", str(source), str(Path(folder) / "home")]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
        try:
            race(options, relay, worker)
        finally:
            worker.communicate()


def race(options: argparse.Namespace, relay: int, worker: subprocess.Popen[str]) -> None:
    assert worker.stdin and worker.stdout

    def measured(chunks: int, rounds: int, times: int) -> list[float]:
        print(chunks, rounds, times, file=worker.stdin, flush=True)
        answer = worker.stdout.readline().split()
        if not answer:
            raise SystemExit("the measured process is gone; its output is above")
        return [float(figure) for figure in answer]

    per, thousand = options.chunks, 1000 / options.chunks
    asyncio.run(relay_cpu(relay, per))
    measured(per, 0, 1)
    measured(10, ROUNDS, 3)
    floor, ours, own, speed, plain, tools = [], [], [], [], [], []
    for _ in range(options.reps):
        floor.append(asyncio.run(relay_cpu(relay, per)) * thousand)
        cpu, loop, took = measured(per, 0, 1)
        ours.append(cpu * thousand)
        own.append(loop * thousand)
        speed.append(per / took * 1000)
        plain.append(measured(10, 0, BATCH)[0])
        tools.append(measured(10, ROUNDS, BATCH)[0])
    rounds = [(with_tools - without) / ROUNDS for with_tools, without in zip(tools, plain, strict=True)]
    print(f"\nOne stream of {per} chunks flat out, {options.reps} reps: median (least to most)\n")
    row("bare ASGI relay, CPU ms per 1,000 chunks", floor)
    row("moot, from provider to watcher, CPU ms per 1,000", ours)
    row("    of it on the event loop, the rest in the writer", own)
    row("moot, chunks a second", speed, "8,.0f")
    print(f"{'moot compared with the relay':<54}{median(ours) / median(floor):8.1f} times   (to reach: 6)\n")
    row("a run without tools, CPU ms", plain)
    row(f"a tool round, CPU ms ({ROUNDS} in a run, less a run without)", rounds)
    print(f"{'':<54}{'':8}         (to reach: 3, aim: 2)")


def row(name: str, values: list[float], form: str = "8.2f") -> None:
    print(f"{name:<54}{median(values):{form}}   ({min(values):{form.lstrip('8')}} to {max(values):{form.lstrip('8')}})")


if __name__ == "__main__":
    main()
