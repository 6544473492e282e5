"""The cost of drawing a streamed answer, compared with the same run into a pipe.

One process feeds 5,000 chunks of Markdown to a Transcript and draws it at the frame rate of a terminal (30 per second of the stream's
time); then the real `moot run` prints the same answer into a pipe and on a pseudo-terminal, with a scripted provider, and their CPU is
printed.

    python benchmarks/screen.py [--chunks 5000] [--reps 3]
"""

from __future__ import annotations

import argparse
import os
import pty
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from moot.cli.terminal.look import Look
from moot.cli.transcript.run import Transcript
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply
from moot.types.event import Event

FRAME = 1 / 30
SECONDS = 50.0
"""Assumed duration of the stream: 100 chunks per second, like a fast model."""
_PARAGRAPH = (
    "## Heading {n}\n\nSome **bold words** and `code` in a paragraph of some length, with a [link](https://example.com/{n}).\n\n"
    "- an item with *emphasis*\n- another one\n\n```python\ndef function_{n}(value: int) -> str:\n    return str(value)  # comment\n```\n\n"
    "| name | value |\n|---|---:|\n| one | {n} |\n| two | 2 |\n\n"
)


def text_of(chunks: int) -> str:
    """Return Markdown text for `chunks` deltas of eight characters."""
    text = ""
    number = 0
    while len(text) < chunks * 8:
        number += 1
        text += _PARAGRAPH.format(n=number)
    return text[: chunks * 8]


def drawn(text: str) -> tuple[float, float, int]:
    """Draw the text. Return the CPU seconds in total, the slowest frame in ms, and the number of frames."""
    transcript = Transcript(Look(100, colour=True))
    deltas = [text[at : at + 8] for at in range(0, len(text), 8)]
    step = SECONDS / len(deltas)
    slowest, frames, due = 0.0, 0, 0.0
    began = time.process_time()
    for number, delta in enumerate(deltas):
        transcript.feed(Event("chunks", ({"type": "text-delta", "id": "1", "delta": delta},), at=int(number * step * 1e6) + 1))
        if number * step >= due:
            due = number * step + FRAME
            frame = time.perf_counter()
            transcript.take()
            transcript.live(10, number * step)
            slowest = max(slowest, time.perf_counter() - frame)
            frames += 1
    transcript.end()
    transcript.take()
    return time.process_time() - began, slowest * 1000, frames


def run(home: str, terminal: bool) -> float:
    """Return the CPU seconds of one `moot run`."""
    environ = {**os.environ, "MOOT_HOME": home, "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "moot", "run", "--no-tools", "say it"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if terminal:
        leader, follower = pty.openpty()
        process = subprocess.Popen(command, env=environ, stdin=follower, stdout=follower, stderr=follower)
        os.close(follower)
        reader = threading.Thread(target=_drain, args=(leader,))
        reader.start()
        process.wait()
        reader.join()
    else:
        process = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.communicate()
    if process.returncode:
        raise SystemExit(f"moot run failed with {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 65536):
            pass
    except OSError:  # Linux reports a closed other end like this
        os.close(descriptor)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=5000)
    parser.add_argument("--reps", type=int, default=3)
    options = parser.parse_args()
    text = text_of(options.chunks)
    cpu, slowest, frames = drawn(text)
    print(f"Transcript alone: {options.chunks:,} chunks in {frames:,} frames")
    print(f"  CPU             {cpu * 1000:8.0f} ms")
    print(f"  slowest frame   {slowest:8.1f} ms   (at most 50)")
    with ScriptedProcess([Reply(when="", text=text, chunk_size=8, times=0)]) as server, tempfile.TemporaryDirectory() as home:
        (Path(home) / "config.yaml").write_text(server.config())
        run(home, terminal=False)  # compiles, and creates the database
        pairs = [(run(home, terminal=False), run(home, terminal=True)) for _ in range(options.reps)]
    pipe, screen = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
    print(f"moot run, CPU: pipe {pipe * 1000:.0f} ms, terminal {screen * 1000:.0f} ms: {screen / pipe:.2f} times   (at most 3)")


if __name__ == "__main__":
    main()
