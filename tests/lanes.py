"""Tests that need a program which is not everywhere: skipped by name without it, failed where the lane is asked for."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

REQUIRED = frozenset(os.environ.get("MOOT_REQUIRE", "").split(","))
"""Lanes whose programs must be there, as `MOOT_REQUIRE=browser,clients` says; read before the tests close the environment.

`browser`, `clients`, `agents` (Claude Code and Codex against scripted models) and `slow-agents` (those that take seconds to start).
"""


def missing(lane: str, what: str) -> NoReturn:
    """Ends a test whose lane can't run here; `what` says what is absent and how to get it."""
    words = f"lane {lane!r}: {what}"
    if lane in REQUIRED:
        pytest.fail(words, pytrace=False)
    pytest.skip(words)
