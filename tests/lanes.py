"""Tests that need a program which may be missing: skipped without it, failed if their lane is required."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

from moot.config.settings import SandboxSettings

REQUIRED = frozenset(os.environ.get("MOOT_REQUIRE", "").split(","))
"""Lanes whose programs are required, from `MOOT_REQUIRE=browser,clients`; read before the tests clear the environment.

`browser`, `clients`, `agents` (Claude Code and Codex against scripted models), `slow-agents` (those that take seconds to start),
`strace` (the programs that allowed shell lines start), `sshd` (`moot sync` over a real connection), and `bubblewrap`, `namespaces`,
`landlock` (the mechanisms of the sandbox).
"""


def missing(lane: str, what: str) -> NoReturn:
    """Skip or fail a test whose lane can't run here; `what` says what is missing and how to get it."""
    words = f"lane {lane!r}: {what}"
    if lane in REQUIRED:
        pytest.fail(words, pytrace=False)
    pytest.skip(words)


def sandbox() -> SandboxSettings:
    """Return the settings of the sandbox for engines in this process: off if the fixture `_closed_session` found no complete mechanism."""
    return SandboxSettings(enabled=os.environ.get("MOOT_SANDBOX__ENABLED") != "false")
