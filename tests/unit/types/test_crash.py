"""Crash points: a real process dies where a test requests it, and nowhere else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PROGRAM = """
from moot.types import crash
for n in range(1, 4):
    crash.point("other")
    crash.point("here")
    print(n, flush=True)
"""


def run(**environment: str) -> tuple[int, list[str]]:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout.split()


@pytest.mark.parametrize(("where", "reached"), [("here", []), ("here:1", []), ("here:2", ["1"]), ("here:3", ["1", "2"])])
def test_the_process_is_killed_at_the_named_point_and_time(where: str, reached: list[str]) -> None:
    assert run(MOOT_TESTING="1", MOOT_CRASH_AT=where) == (-signal.SIGKILL, reached)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"MOOT_CRASH_AT": "here"},
        {"MOOT_TESTING": "0", "MOOT_CRASH_AT": "here"},
        {"MOOT_TESTING": "1"},
        {"MOOT_TESTING": "1", "MOOT_CRASH_AT": "here:4"},
        {"MOOT_TESTING": "1", "MOOT_CRASH_AT": "somewhere-else"},
    ],
)
def test_crash_points_do_nothing_outside_tests(environment: dict[str, str]) -> None:
    assert run(**environment) == (0, ["1", "2", "3"])
