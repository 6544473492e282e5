"""Consecutive kills at instants chosen by a seed: a few in every run of the suite, a thousand with `make chaos`."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
from test_kill import judge, points, script, stage, travel

from moot.testing.scripted import ScriptedServer

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SEEDS = int(os.environ.get("MOOT_CHAOS_SEEDS", "3"))
KILLS = 4
"""Maximum number of kills of one run."""


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_kills_in_a_row_lose_and_repeat_nothing(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    async with ScriptedServer(script) as server:
        with stage(tmp_path) as (home, work, acks):
            for _ in range(chance.randint(1, KILLS)):
                crash_at = f"{chance.choice(points())}:{chance.randint(1, 3)}"
                if await travel(home, server.openai_url, work, acks, crash_at) != -signal.SIGKILL:
                    break  # the run had ended, or does not pass this point often enough
            assert await travel(home, server.openai_url, work, acks) == 0
            await judge(home, work, acks)
