"""The command line of Claude Code: its program, arguments and environment."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from moot.agents.outside.options import Launch
from moot.errors import ConfigError
from moot.types.agent import McpServer, Mode
from moot.types.canonical import JsonObject, dumps
from moot.types.run import RunRequest

INSTALL = "pip install 'moot[claude]'"
MODES: dict[Mode, str] = {"ask": "default", "edits": "default", "plan": "plan", "auto": "default"}
"""Claude Code's permission mode for each mode of moot.
In its permissive modes it doesn't ask, so moot's rules would not apply. In `default` it always asks.
"""
SERVER = "moot"
"""The name of the MCP server that provides moot's tools."""

_SPOKEN = (
    *("--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "--include-partial-messages"),
    *("--permission-prompt-tool", "stdio"),
)
_KEPT = ("ANTHROPIC_", "CLAUDE_", "DISABLE_", "AWS_", "CLOUD_ML_", "VERTEX_", "GOOGLE_", "AZURE_", "OTEL_", "BASH_")
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"})
_OF_ANOTHER = frozenset({"CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID"})
"""Environment variables that are set if Claude Code has started moot. They are not passed on."""
_EFFORTS = frozenset({"low", "medium", "high", "max"})


@dataclass(frozen=True, slots=True)
class SessionStart:
    """The start of a turn: a new session, an existing session, or a fork."""

    session: str = ""
    fork: bool = False
    at: str = ""
    """The uuid of the line after which the fork starts, or empty to fork at the session's end."""


def program() -> str:
    """Return the bundled program, or else the one on the PATH. Raise ConfigError if there is none, or if the package is not installed."""
    found = find_spec("claude_agent_sdk")
    if found is None or found.origin is None:
        raise ConfigError("The package 'claude-agent-sdk', which contains Claude Code, is not installed.", fix=INSTALL)
    bundled = Path(found.origin).parent / "_bundled" / ("claude.exe" if os.name == "nt" else "claude")
    if bundled.is_file():
        return str(bundled)
    other = shutil.which("claude")
    if other is None:
        raise ConfigError(f"The package 'claude-agent-sdk' has no executable for this machine at {str(bundled)!r}.", fix=INSTALL)
    return other


def arguments_of(request: RunRequest, launch: Launch, mode: Mode, begins: SessionStart, *, serves: bool) -> tuple[str, ...]:
    """Return the whole command line. `serves` is True if moot provides tools."""
    words = [*launch.command, *_SPOKEN, "--permission-mode", MODES[mode]]
    if model := model_of(request):
        words += ["--model", model]
    if system_prompt := "\n\n".join(text for text in (request.agent.instructions, request.agent.rules) if text):
        words += ["--append-system-prompt", system_prompt]
    steps = request.settings.get("max_steps")
    if turns := (steps if isinstance(steps, int) else 0) or request.agent.max_steps:
        words += ["--max-turns", str(turns)]
    effort = str(request.settings.get("effort") or request.agent.effort or "")
    if effort in _EFFORTS:
        words += ["--effort", effort]
    if serves:
        server: JsonObject = {"mcpServers": {SERVER: {"type": "sdk", "name": SERVER}}}
        words += ["--mcp-config", dumps(server).decode()]
    # with `=`, a value may start with a dash
    if begins.session:
        words.append(f"--resume={begins.session}")
    if begins.session and begins.fork:
        words.append("--fork-session")
        words += [f"--resume-session-at={begins.at}"] if begins.at else []
    return tuple(words)


def mcp_config(servers: Sequence[McpServer]) -> JsonObject:
    """Return MCP servers in the format of Claude Code."""
    return {
        server.name: {"type": "stdio", "command": server.command, "args": list(server.args), "env": dict(server.env)}
        if server.command
        else {"type": server.protocol, "url": server.url, "headers": dict(server.headers)}
        for server in servers
    }


def model_of(request: RunRequest) -> str:
    """Return the requested model under Claude Code's own name for it, or an empty string for its default."""
    wanted = request.run.model or ("" if request.agent.model == "main" else request.agent.model)
    return wanted.rpartition("@")[0] if "@" in wanted else wanted


def environment_of(launch: Launch) -> dict[str, str]:
    """Return the environment variables to add to those that a child process usually gets."""
    variables = {"CLAUDE_CODE_ENTRYPOINT": "sdk-py", "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"}
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        variables["IS_SANDBOX"] = "1"  # as root it refuses some modes outside of a container
    return {**variables, **launch.env}


def kept_names(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the names of the environment variables that are passed on to Claude Code: those for its account, settings and network."""
    return tuple(
        name for name in environ if (name.startswith(_KEPT) or name.upper() in _PROXIES or name == "IS_SANDBOX") and name not in _OF_ANOTHER
    )
