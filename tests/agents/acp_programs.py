"""The real agents that speak ACP: their command lines, and an environment in which they reach only the scripted models."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.programs import LANE, claude_environment, closed, codex_environment, node
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


def _write(path: Path, settings: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings), encoding="utf-8")


def _opencode_environment(url: str, home: Path, _: Path) -> dict[str, str]:
    model = {"tool_call": True, "reasoning": True, "limit": {"context": 128_000, "output": 8_000}}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{url}/v1", "apiKey": "sk-scripted"}, "models": {"one": model}}
    settings = {
        "provider": {"scripted": provider},
        "model": "scripted/one",
        "small_model": "scripted/one",
        "autoupdate": False,
        "share": "disabled",
    }
    _write(home / ".config" / "opencode" / "opencode.json", {**settings, "permission": {"bash": "ask", "edit": "ask"}})
    quiet = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    places = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state", "XDG_CACHE_HOME": ".cache"}
    own = {name: str(home / place) for name, place in places.items()}  # the tests use other folders
    return {"HOME": str(home), **own, **{f"OPENCODE_DISABLE_{name}": "1" for name in quiet}, **_without_proxies()}


def _without_proxies() -> dict[str, str]:
    """For programs that send everything to a proxy, even for loopback addresses."""
    return {name: value for name, value in closed().items() if "proxy" not in name.lower()}


def _gemini_environment(url: str, home: Path, _: Path) -> dict[str, str]:
    _write(
        home / ".gemini" / "settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        },
    )
    key = {"GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return {"HOME": str(home), **key, **closed()}


def _qwen_environment(url: str, home: Path, _: Path) -> dict[str, str]:
    _write(
        home / ".qwen" / "settings.json",
        {
            "security": {"auth": {"selectedType": "openai"}},
            "general": {"disableAutoUpdate": True},
            "privacy": {"usageStatisticsEnabled": False},
        },
    )
    key = {"OPENAI_API_KEY": "sk-scripted", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "one"}
    return {"HOME": str(home), **key, **_without_proxies()}


def _claude_environment(url: str, home: Path, _: Path) -> dict[str, str]:
    sandbox = {"IS_SANDBOX": "1"} if os.geteuid() == 0 else {}
    return {"HOME": str(home), **claude_environment(url), **sandbox}


def _codex_environment(url: str, home: Path, directory: Path) -> dict[str, str]:
    return {"HOME": str(home), **codex_environment(url, home, directory)}


GEMINI = ("@google/gemini-cli/bundle/gemini.js", "--acp", "-m", "gemini-2.5-flash")
PROGRAMS = (
    AcpProgram("opencode", "bash", "command", _opencode, _opencode_environment, (("description", "Compute"),)),
    AcpProgram("gemini", "run_shell_command", "command", _by_node(*GEMINI), _gemini_environment),
    AcpProgram(
        *("qwen", "run_shell_command", "command", _by_node("@qwen-code/qwen-code/cli.js", "--acp"), _qwen_environment),
        (("is_background", False),),
    ),
    AcpProgram("claude-agent-acp", "Bash", "command", _by_node("@agentclientprotocol/claude-agent-acp/dist/index.js"), _claude_environment),
    AcpProgram("codex-acp", "exec_command", "cmd", _by_node("@agentclientprotocol/codex-acp/dist/index.js"), _codex_environment),
)
