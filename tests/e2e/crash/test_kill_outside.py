"""kill -9 while an outside agent works: at the points of its turn, and with the agent's own process left running."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from checker import check_run, check_shown, everything
from outside import settings_of

from moot.store import open_store

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

HERE = Path(__file__).parent
APPENDS = 8
"""Minimum per answer: four lines of moot, and points before and after each."""


async def travel(home: Path, work: Path, acks: Path, crash_at: str = "") -> int:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "MOOT_TESTING": "1", "MOOT_CRASH_AT": crash_at}
    arguments = [sys.executable, str(HERE / "outside.py"), str(home), "-", str(work), str(acks)]
    process = await asyncio.create_subprocess_exec(*arguments, env=environment, stderr=asyncio.subprocess.PIPE)
    _, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode in (0, -signal.SIGKILL), errors.decode()
    return process.returncode or 0


def at_work(work: Path) -> list[str]:
    """Processes whose working directory is the folder: the agents."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdecimal() and (entry / "cwd").readlink() == work:
                found.append(entry.name)
    return found


async def judge(home: Path, acks: Path) -> str:
    """Check the run's status, that all shown events are stored, and that nothing is open."""
    store = await open_store(settings_of(home))
    try:
        (run,) = await store.records.runs()
        events = await everything(store, run.conversation)
        check_shown(events, acks)
        check_run(run, await store.conversations.message(run.message), events)
        for id in {event.exchange for event in events if event.exchange}:
            exchange = await store.records.exchange(id)
            assert exchange is not None and exchange.ended is not None
        if run.status == "failed":
            assert run.error is not None and "was interrupted" in run.error.message
        return run.status
    finally:
        await store.close()


@pytest.mark.parametrize(
    "crashes",
    [
        ("agent.begun",),
        ("agent.noted",),
        *((f"agent.line:{number}",) for number in range(1, APPENDS)),
        ("agent.closed",),
        ("agent.line:7", "agent.cut"),
    ],
    ids=" then ".join,
)
async def test_a_kill_during_a_turn_keeps_the_shown_text_and_leaves_no_process(crashes: tuple[str, ...], tmp_path: Path) -> None:
    home, work, acks = tmp_path / "home", tmp_path / "work", tmp_path / "acks"
    home.mkdir()
    work.mkdir()
    for crash_at in crashes:
        assert await travel(home, work, acks, crash_at) == -signal.SIGKILL, f"{crash_at} was never passed"
    assert await travel(home, work, acks) == 0
    status = await judge(home, acks)
    assert status in ("finished", "failed")
    with anyio.fail_after(60):
        while at_work(work):
            await anyio.sleep(0.02)
