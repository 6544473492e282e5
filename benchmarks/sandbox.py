"""Wall and CPU time that each available sandbox adds to the command `true`: medians of paired runs.

python benchmarks/sandbox.py

Each pair runs `true` once without and once with the sandbox, so that both see the same load.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import tempfile
import time
from pathlib import Path

from moot.guard.processes import output
from moot.guard.sandbox.mechanisms import problem_of
from moot.types.sandbox import MECHANISMS, Confinement

PAIRS = 40

Cost = tuple[float, float]
"""Milliseconds: wall time, and processor time of the command and its children."""


async def cost(folder: Path, sandbox: Confinement | None) -> Cost:
    """Run `true` and return its cost."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = await output(["/bin/sh", "-c", "true"], cwd=folder, sandbox=sandbox)
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.code:
        raise SystemExit(f"the command failed: {done.stderr.decode(errors='replace')}")
    return wall * 1000, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


async def main() -> None:
    print(f"{'mechanism':12}{'ms without':>12}{'ms with':>10}{'ms added':>10}{'CPU ms added':>14}   (range of ms added)")
    for mechanism in MECHANISMS:
        if problem := await problem_of(mechanism):
            print(f"{mechanism:12}not available: {problem}")
            continue
        with tempfile.TemporaryDirectory(prefix="moot-") as name:
            work = Path(name, "work")
            work.mkdir()
            sandbox = Confinement(mechanism, work, (work,), Path(name))
            pairs = [(await cost(work, None), await cost(work, sandbox)) for _ in range(PAIRS + 1)][1:]  # the first one warms the caches
        added = sorted(confined[0] - bare[0] for bare, confined in pairs)
        cpu = statistics.median(confined[1] - bare[1] for bare, confined in pairs)
        bare, confined = (statistics.median(pair[side][0] for pair in pairs) for side in (0, 1))
        middle = statistics.median(added)
        print(f"{mechanism:12}{bare:12.1f}{confined:10.1f}{middle:10.1f}{cpu:14.1f}   ({added[0]:.1f} to {added[-1]:.1f})")


if __name__ == "__main__":
    asyncio.run(main())
