"""The real agents that speak ACP: their command lines, and an environment in which they reach only the scripted models."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.programs import (
    LANE,
    claude_environment,
    codex_environment,
    gemini_environment,
    node,
    opencode_environment,
    qwen_environment,
)
from lanes import missing

MODULES = LANE / "slow" / "node_modules"


@dataclass(frozen=True, slots=True)
class AcpProgram:
    """One agent that can be run."""

    name: str
    """The name in `acp:NAME`."""
    shell: str
    """The name of its tool that runs a command, as its model calls it."""
    argument: str
    """The argument of that tool that contains the command."""
    command: Callable[[], list[str]]
    environment: Callable[[str, Path, Path], dict[str, str]]
    """Write the agent's settings, given the models' URL, the home and the working directory."""
    more: tuple[tuple[str, Any], ...] = ()
    """Further arguments of that tool."""


def _module(path: str) -> Path:
    found = MODULES / path
    if not found.exists():
        missing("slow-agents", f"{path.split('/')[0]} is not there; run `npm install --ignore-scripts` in tests/agents/slow")
    return found


def _by_node(path: str, *words: str) -> Callable[[], list[str]]:
    return lambda: [node(), str(_module(path)), *words]


def _opencode() -> list[str]:
    found = next(iter(sorted(MODULES.glob("opencode-*-*/bin/opencode"))), None)  # the generic build comes before those for older processors
    if found is None:
        missing("slow-agents", "there is no OpenCode; run `npm install --ignore-scripts` in tests/agents/slow")
    return [str(found), "acp"]


def _claude_environment(url: str, home: Path, _: Path) -> dict[str, str]:
    sandbox = {"IS_SANDBOX": "1"} if os.geteuid() == 0 else {}
    return {"HOME": str(home), **claude_environment(url), **sandbox}


def _codex_environment(url: str, home: Path, directory: Path) -> dict[str, str]:
    return {"HOME": str(home), **codex_environment(url, home, directory)}


GEMINI = ("@google/gemini-cli/bundle/gemini.js", "--acp", "-m", "gemini-2.5-flash")
PROGRAMS = (
    AcpProgram("opencode", "bash", "command", _opencode, opencode_environment, (("description", "Compute"),)),
    AcpProgram("gemini", "run_shell_command", "command", _by_node(*GEMINI), gemini_environment),
    AcpProgram(
        *("qwen", "run_shell_command", "command", _by_node("@qwen-code/qwen-code/cli.js", "--acp"), qwen_environment),
        (("is_background", False),),
    ),
    AcpProgram("claude-agent-acp", "Bash", "command", _by_node("@agentclientprotocol/claude-agent-acp/dist/index.js"), _claude_environment),
    AcpProgram("codex-acp", "exec_command", "cmd", _by_node("@agentclientprotocol/codex-acp/dist/index.js"), _codex_environment),
)
