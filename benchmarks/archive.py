"""moot next to AgentsView and ccusage: importing the same sessions, their costs, and how soon a new line is found.

    python benchmarks/archive.py [--mb 60] [--rounds 3] [--agentsview PROGRAM] [--ccusage PROGRAM]

AgentsView is the package `agentsview` on PyPI, ccusage is `ccusage` on npm. A program that is not installed is skipped, which is reported.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import spent
from answers import files, sentences
from imports import session
from server import free_port, program

STORES = Path(__file__).parents[1] / "tests" / "recorded" / "stores"
COSTS = (
    *("claude-fork", "claude-1h", "claude-band", "claude-subagent", "codex-fork", "codex-repeat", "codex-subagents"),
    *("pi-fork", "opencode-fork", "opencode-same", "gemini-checkpoint"),
)
CCUSAGE_READS = ("claude", "codex")
APPENDED = 6
PAUSE = 4  # seconds between two lines
CODEX: dict[str, object] = {"originator": "codex_cli_rs", "cli_version": "0.130.0", "source": "cli", "model_provider": "openai"}


# ── the source ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Words:
    """Texts of documentation and files that are installed on this machine. No sentence occurs twice unless all are used."""

    def __init__(self, size: int) -> None:
        self._said = itertools.cycle(list(_limited(sentences(), size)))
        self._shown = itertools.cycle(list(_limited(files(6000), size)))

    def __call__(self, random_: random.Random, length: int) -> str:
        if length >= 2000 and random_.random() < 0.75:
            return next(self._shown)[:length]
        found: list[str] = []
        while sum(map(len, found)) < length:
            found.append(next(self._said))
        return " ".join(found)


def _limited(texts: Iterator[str], size: int) -> Iterator[str]:
    for text in texts:
        yield text
        size -= len(text)
        if size < 0:
            return


def rollout(folder: Path, size: int, random_: random.Random, words: Words) -> None:
    """Write a session of Codex of about `size` bytes."""
    id, clock, written, total = str(uuid.uuid4()), 1_770_000_000 + random_.randrange(9_000_000), 0, [0, 0, 0, 0]
    day = folder / time.strftime("%Y/%m/%d", time.gmtime(clock))
    day.mkdir(parents=True, exist_ok=True)
    with (day / f"rollout-{time.strftime('%Y-%m-%dT%H-%M-%S', time.gmtime(clock))}-{id}.jsonl").open("w") as file:

        def put(kind: str, **payload: object) -> None:
            nonlocal clock, written
            clock += 2
            at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(clock))
            written += file.write(json.dumps({"timestamp": at, "type": kind, "payload": payload}) + "\n")

        def item(kind: str, **fields: object) -> None:
            put("response_item", type=kind, **fields)

        def event(kind: str, **fields: object) -> None:
            put("event_msg", type=kind, **fields)

        def count() -> None:
            last = [random_.randint(9_000, 90_000), random_.randint(1_000, 9_000), random_.randint(50, 900), random_.randint(0, 50)]
            total[:] = map(sum, zip(total, last, strict=True))
            names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
            sums = [dict(zip(names, some, strict=True)) | {"total_tokens": some[0] + some[2]} for some in (total, last)]
            event("token_count", info={"total_token_usage": sums[0], "last_token_usage": sums[1], "model_context_window": 272_000})

        put("session_meta", id=id, timestamp=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(clock)), cwd="/home/user/project", **CODEX)
        while written < size:
            prompt = words(random_, 400)
            put("turn_context", turn_id=str(uuid.uuid4()), cwd="/home/user/project", model="gpt-5.1-codex", approval_policy="never")
            event("user_message", message=prompt, images=[])
            item("message", role="user", content=[{"type": "input_text", "text": prompt}])
            for _ in range(random_.randint(1, 4)):
                call = f"call_{uuid.uuid4().hex[:24]}"
                item(
                    "reasoning",
                    summary=[{"type": "summary_text", "text": words(random_, 200)}],
                    encrypted_content=secrets.token_urlsafe(900),
                )
                item("function_call", name="shell", arguments=json.dumps({"command": ["bash", "-lc", words(random_, 60)]}), call_id=call)
                output = {
                    "output": words(random_, random_.choice((300, 2000, 6000))),
                    "metadata": {"exit_code": 0, "duration_seconds": 0.3},
                }
                item("function_call_output", call_id=call, output=json.dumps(output))
                count()
            answer = words(random_, 800)
            event("agent_message", message=answer)
            item("message", role="assistant", content=[{"type": "output_text", "text": answer}])
            count()


def generated(home: Path, megabytes: float) -> None:
    """Write sessions of Claude Code and Codex, half of the size each: one long session, and ten of a fifth of its length."""
    random_, words = random.Random(1), Words(int(megabytes * 500_000))
    for number, share in enumerate([3, *[0.6] * 10, *[0.1] * 10]):
        size = int(share * megabytes / 20 * 1_000_000)
        project = home / ".claude" / "projects" / f"-home-user-project{number % 4}"
        project.mkdir(parents=True, exist_ok=True)
        session(project, size, random_, words)
        rollout(home / ".codex" / "sessions", size, random_, words)


def size_of(*places: Path) -> int:
    return sum(file.stat().st_size for place in places for file in place.rglob("*") if file.is_file())


# ── the programs ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Archive:
    """A program that imports the sessions of a home into its own store."""

    name: str
    command: tuple[str, ...]
    imports: tuple[str, ...]
    store: str
    """Folder of its store, relative to the home."""
    environ: Mapping[str, str]

    def run(self, home: Path, *options: str) -> tuple[bytes, Cost]:
        """Run a command to its end. Return its output and its cost."""
        with tempfile.TemporaryFile() as output:
            began, peak = time.monotonic(), 0.0
            process = subprocess.Popen(
                [*self.command, *options], env=environment(home, self.environ), stdout=output, stderr=subprocess.DEVNULL, cwd=home
            )
            while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
                peak = max(peak, spent.memory(process.pid, "VmRSS"))
                time.sleep(0.02)
            output.seek(0)
            if ended[1]:
                raise SystemExit(f"{self.name} failed: {output.read()[-400:]!r}")
            return output.read(), Cost(ended[2].ru_utime + ended[2].ru_stime, time.monotonic() - began, peak * 1.048576)


@dataclass(frozen=True)
class Cost:
    """The cost of a command and its child processes."""

    cpu: float
    seconds: float
    peak: float
    """MB resident in all its processes together."""


MOOT = Archive("moot", (sys.executable, "-m", "moot"), ("import", "--all", "--json"), "moot/data", {})
SERVE = ("--no-browser", "--no-update-check")


def agentsview(path: str) -> Archive:
    quiet = {"AGENTSVIEW_NO_DAEMON": "1", "AGENTSVIEW_TELEMETRY_ENABLED": "0"}
    return Archive("AgentsView", (binary(path),), ("sync",), ".agentsview", quiet)


def binary(path: str) -> str:
    """Return the program that AgentsView's Python script starts."""
    found = next(Path(path).resolve().parents[1].glob("lib/python*/site-packages/agentsview/bin/agentsview"), None)
    return str(found or path)


def environment(home: Path, more: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PYTHONPATH", "TMPDIR")}
    return {**kept, "HOME": str(home), "MOOT_HOME": str(home / "moot"), **more}


# ── importing ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def importing(archives: list[Archive], megabytes: float, rounds: int) -> None:
    home = Path(tempfile.mkdtemp(prefix="moot-archive-", dir="/tmp"))
    try:
        generated(home, megabytes)
        sources = [home / ".claude", home / ".codex"]
        source, costs, sizes = size_of(*sources), dict[str, list[Cost]](), dict[str, int]()
        sessions = sum(1 for place in sources for _ in place.rglob("*.jsonl"))
        print(f"importing {source / 1e6:.0f} MB in {sessions} sessions of Claude Code and Codex, {rounds} rounds in turn, medians")
        for number in range(rounds):
            for archive in archives if number % 2 == 0 else reversed(archives):
                prepare(home, archive)
                costs.setdefault(archive.name, []).append(archive.run(home, *archive.imports)[1])
                sizes[archive.name] = size_of(home / archive.store)
        print("                CPU s  (range)           wall s   peak MB    store MB   of source")
        for name, some in costs.items():
            cpu = [one.cpu for one in some]
            middle = [statistics.median(values) for values in (cpu, [one.seconds for one in some], [one.peak for one in some])]
            print(
                f"  {name:12} {middle[0]:6.2f}  ({min(cpu):6.2f} to {max(cpu):6.2f}) {middle[1]:7.1f} {middle[2]:9.0f}"
                f" {sizes[name] / 1e6:11.0f} {sizes[name] / source:8.2f} x"
            )
        if len(costs) > 1:
            mine, theirs = ([one.cpu for one in costs[archive.name]] for archive in archives[:2])
            ratios = sorted(a / b for a, b in zip(mine, theirs, strict=True))
            print(f"  moot's CPU: {statistics.median(ratios):.2f} times that of {archives[1].name} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
        following(archives, home)
    finally:
        for left in home.parent.glob(f"{home.name}*"):
            shutil.rmtree(left, ignore_errors=True)


def prepare(home: Path, archive: Archive) -> None:
    """Leave only an empty store of this program, as after its first start, so that creating it is not measured."""
    for store in ("moot", ".agentsview"):
        shutil.rmtree(home / store, ignore_errors=True)
    away = [(home / name, home.with_name(f"{home.name}{name}")) for name in (".claude", ".codex")]
    for place, other in away:
        place.rename(other)
    for _ in range(2):
        archive.run(home, *archive.imports)
    for place, other in away:
        other.rename(place)


# ── following ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def following(archives: list[Archive], home: Path) -> None:
    """Print the time from appending a line to a session until a search over HTTP finds a word of it."""
    print(f"from an appended line to the first hit over HTTP: median (range) of {APPENDED}, in the shortest and the longest session")
    sessions = sorted(home.glob(".claude/projects/*/*.jsonl"), key=lambda path: path.stat().st_size)
    for archive in archives:
        prepare(home, archive)
        archive.run(home, *archive.imports)
        with serving(archive, home) as (url, headers):
            figures = [[found_after(path, url, headers) for _ in range(APPENDED)] for path in (sessions[0], sessions[-1])]
        print(
            f"  {archive.name:12} "
            + "   ".join(f"{statistics.median(some):5.2f} s ({min(some):.2f} to {max(some):.2f})" for some in figures)
        )


@contextmanager
def serving(archive: Archive, home: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Start the archive's server, which follows the sessions. Yield the URL of its search and the headers of a request."""
    port, token = free_port(), secrets.token_urlsafe(32)
    if archive is MOOT:
        (home / "moot" / "config.yaml").write_text("imports: {watch: true}\n")
    command = [*archive.command, "serve", "--port", str(port), *(() if archive is MOOT else SERVE)]
    path = "/api/search" if archive is MOOT else "/api/v1/search"
    environ = {**environment(home, archive.environ), "MOOT_TOKEN": token}
    with program(command, port, path, environ, output=subprocess.DEVNULL):
        time.sleep(PAUSE)  # finish the work of starting
        yield f"http://127.0.0.1:{port}{path}", {"authorization": f"Bearer {token}"} if archive is MOOT else {}


def found_after(path: Path, url: str, headers: Mapping[str, str]) -> float:
    """Append a prompt with a new word to a session. Return the seconds until a search finds it."""
    word, id, line = f"word{uuid.uuid4().hex[:12]}", str(uuid.uuid4()), json.loads(path.read_bytes().splitlines()[-1])
    at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    line |= {"uuid": id, "parentUuid": line["uuid"], "type": "user", "timestamp": at, "message": {"role": "user", "content": f"say {word}"}}
    began = time.monotonic()
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
    request = urllib.request.Request(f"{url}?{urllib.parse.urlencode({'q': word})}", headers=dict(headers))
    while time.monotonic() < began + 60:
        found = json.loads(urllib.request.urlopen(request, timeout=10).read())
        if found.get("data") or found.get("results"):
            took = time.monotonic() - began
            time.sleep(PAUSE)
            return took
        time.sleep(0.01)
    raise SystemExit(f"{word} was not found within a minute")


# ── costs ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def costs(archives: list[Archive], ccusage: str | None) -> None:
    """Print the cost that each program reports for prepared homes with forks, resumed sessions, sub-agents and cache prices."""
    names = [archive.name for archive in archives] + (["ccusage"] if ccusage else [])
    print("costs of prepared homes in dollars; * = wrong")
    print("  home                     truth " + "".join(f"{name:>14}" for name in names))
    for store in COSTS:
        with tempfile.TemporaryDirectory(prefix="moot-archive-", dir="/tmp") as folder:
            home = Path(shutil.copytree(STORES / store, Path(folder) / "user"))
            truth = json.loads((home / "expected.json").read_bytes())["cost"]
            said = [dollars(archive, home) for archive in archives]
            said += [of_ccusage(ccusage, home, store.partition("-")[0])] if ccusage else []
        cells = ["-" if one is None else f"{one:.5f}{' ' if abs(one - truth) < 1e-4 else '*'}" for one in said]
        print(f"  {store:20} {truth:9.5f} " + "".join(f"{cell:>14}" for cell in cells))


def dollars(archive: Archive, home: Path) -> float:
    archive.run(home, *archive.imports)
    if archive is MOOT:
        return json.loads(archive.run(home, "stats", "--json")[0])["total"]["cost"] / 1e9
    said = json.loads(archive.run(home, "usage", "daily", "--json", "--all", "--offline", "--no-sync")[0])
    return said["totals"]["totalCost"]["microdollars"] / 1e6


def of_ccusage(program: str, home: Path, agent: str) -> float | None:
    if agent not in CCUSAGE_READS:
        return None
    command = [program, agent, "daily", "--json", "--offline"]
    said = json.loads(subprocess.run(command, env=environment(home, {}), capture_output=True, check=True).stdout)
    return said["totals"].get("totalCost", said["totals"].get("costUSD"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--agentsview", default="agentsview", metavar="PROGRAM")
    parser.add_argument("--ccusage", default="ccusage", metavar="PROGRAM")
    options = parser.parse_args()
    found = {name: shutil.which(getattr(options, name)) for name in ("agentsview", "ccusage")}
    for name in (name for name, path in found.items() if path is None):
        print(f"{name} is not installed and is skipped (--{name} PROGRAM names its file)")
    archives = [MOOT, *([agentsview(found["agentsview"])] if found["agentsview"] else [])]
    importing(archives, options.mb, options.rounds)
    costs(archives, found["ccusage"])


if __name__ == "__main__":
    main()
