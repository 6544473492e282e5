"""CPU cost of 5,000 chunks of Markdown on a terminal, compared with the same run into a pipe.

`moot run` into a pipe and `moot` on a pseudo-terminal (100 by 30) alternate. Each is a whole process including its start. Both are also
measured with a short answer, so that the cost of the stream alone is visible. The slowest frame is the REPL's own measurement.

    python benchmarks/repl.py [--chunks 5000] [--reps 3] [--delay 0.004]
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from statistics import median

from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

PARAGRAPH = (
    "## Part {n}\n\nSome **bold** words, `code` and a [link](https://example.org/{n}) in a sentence of usual length that continues.\n\n"
    "* one thing\n* another *thing*\n\n```python\ndef f(x: int) -> int:\n    return x + {n}\n```\n\n"
)
MOOT = [sys.executable, "-m", "moot"]
ENDED = "the-very-end"


def text(chunks: int, size: int = 6) -> str:
    made = ""
    while len(made) < chunks * size:
        made += PARAGRAPH.format(n=len(made))
    return made[: chunks * size]


def spent(pid: int) -> float:
    """Wait for the end of a child process and return its CPU seconds."""
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, f"it ended with {status}"
    return usage.ru_utime + usage.ru_stime


def piped(prompt: str, environ: dict[str, str], folder: Path) -> float:
    process = subprocess.Popen(
        [*MOOT, "run", "--no-tools", prompt], cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    data = process.stdout.read()
    assert ENDED.encode() in data, data[-200:]
    return spent(process.pid)


def shown(prompt: str, environ: dict[str, str], folder: Path) -> tuple[float, float, int]:
    """Return the CPU seconds, the slowest frame in ms, and the bytes written to the terminal."""
    reader, writer = os.pipe()
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.dup2(writer, 2)
        os.execvpe(MOOT[0], MOOT, {**environ, "TERM": "xterm-256color", "MOOT_DEBUG": "1"})
    os.close(writer)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    seen = b""
    for wanted, keys in ((b"bench@mine", prompt.encode() + b"\r"), (ENDED.encode(), b"q\r")):
        start = len(seen)
        while wanted not in seen[start:] or select.select([terminal], [], [], 1.0)[0]:  # until it is quiet
            seen += os.read(terminal, 65536)
        os.write(terminal, keys)
    try:
        while piece := os.read(terminal, 65536):
            seen += piece
    except OSError:
        pass
    cpu = spent(pid)
    with os.fdopen(reader, "rb") as file:
        said = file.read().decode("utf-8", "replace")
    found = re.search(r"slowest took ([\d.]+) ms", said)
    assert found, said[-500:]
    return cpu, float(found[1]), len(seen)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=5000)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds between two chunks")
    options = parser.parse_args()
    script = [
        Reply(when="long", text=text(options.chunks) + f"\n\n{ENDED}", chunk_size=6, delay=options.delay, times=0),
        Reply(when="", text=ENDED, times=0),
    ]
    with tempfile.TemporaryDirectory() as root, ScriptedProcess(script, models=("bench",)) as server:
        home, folder = Path(root, "home"), Path(root, "work")
        home.mkdir()
        folder.mkdir()
        (home / "config.yaml").write_text(server.config())
        environ = {**os.environ, "MOOT_HOME": str(home), "HOME": root}
        rows: list[tuple[float, float, float, float, float, int]] = []
        for _ in range(options.reps):
            pipe_short, (pty_short, _, _) = piped("hi", environ, folder), shown("hi", environ, folder)
            pipe_long, (pty_long, frame, size) = piped("long", environ, folder), shown("long", environ, folder)
            rows.append((pipe_short, pipe_long, pty_short, pty_long, frame, size))
    pipe_short, pipe_long, pty_short, pty_long, frame, size = (median(column) for column in zip(*rows, strict=True))
    pace = f", one every {options.delay * 1000:g} ms" if options.delay else ""
    print(f"{options.chunks} chunks of Markdown{pace}, CPU seconds, medians of {options.reps}")
    print(f"{'':22}{'start + one word':>18}{'start + stream':>18}{'stream':>10}")
    print(f"{'moot run, in a pipe':22}{pipe_short:18.2f}{pipe_long:18.2f}{pipe_long - pipe_short:10.2f}")
    print(f"{'moot, on a terminal':22}{pty_short:18.2f}{pty_long:18.2f}{pty_long - pty_short:10.2f}")
    stream = (pty_long - pty_short) / (pipe_long - pipe_short)
    print(f"ratio of the whole run {pty_long / pipe_long:.2f} (at most 3), of the stream alone {stream:.2f}")
    print(f"slowest frame {frame:.1f} ms of CPU (at most 50); {int(size):,} bytes to the terminal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
