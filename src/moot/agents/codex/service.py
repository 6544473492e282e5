"""The agent service `codex`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from moot.agents.codex.talking import Plan, Talk
from moot.agents.outside.leg import Said, run_leg
from moot.agents.outside.options import Launch, choice_of, directory_of, launch_of
from moot.agents.outside.process import Program
from moot.types.agent import Mode
from moot.types.canonical import JsonObject
from moot.types.context import RunContext
from moot.types.run import RunOutcome, RunRequest

HINT = "npm install --global @openai/codex"
NEEDS = (
    *("CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""Our environment variables that Codex needs: folders, account, network."""

SANDBOXES = ("read-only", "workspace-write", "danger-full-access")
APPROVALS = ("untrusted", "on-request", "never")
_BY_MODE: dict[Mode, str] = {"plan": "read-only", "ask": "workspace-write", "edits": "workspace-write", "auto": "danger-full-access"}
"""In every mode Codex asks about what it does not consider harmless, so that moot's rules apply; then moot's mode answers."""
_TYPES = frozenset({"main", "small", "compaction", "image", "transcription", "fallback"})
_EFFORTS = {"none": "minimal", "low": "low", "medium": "medium", "high": "high", "max": "xhigh"}


def _double(behaviour: str) -> JsonObject:
    """Return options that run a test double of the program."""
    spec = find_spec("moot")
    folder = Path(spec.origin).parent if spec is not None and spec.origin is not None else Path()
    return {"command": [sys.executable, "-S", "-E", str(folder / "testing" / "codex_program.py"), behaviour]}


class Codex:
    """Codex with its own model, login, settings and tools. Its options: `command`, `args`, `env`, `sandbox`, `approval`."""

    trials: Mapping[str, JsonObject] = {"answer": _double("answer"), "slow": _double("slow")}

    async def run(self, request: RunRequest, context: RunContext) -> RunOutcome:
        launch = launch_of(request, ("codex",), known=("sandbox", "approval"))
        plan = await _plan(request, context)

        async def talk(said: Said) -> RunOutcome:
            async with _program(launch, request) as program:
                return await Talk(request, context, program, plan, said).hold()

        return await run_leg(request, context, talk)


def _program(launch: Launch, request: RunRequest) -> Program:
    command = (*launch.command, "app-server")
    return Program(command, cwd=directory_of(request), env=launch.env, hint=HINT, keeps=NEEDS)


async def _plan(request: RunRequest, context: RunContext) -> Plan:
    """Return how to start this run. Raise ConfigError."""
    agent, options = request.agent, request.settings
    wanted = request.run.model or agent.model
    effort = str(options.get("effort") or agent.effort or "")
    schema = options.get("schema")
    return Plan(
        directory=str(directory_of(request)),
        model="" if wanted in _TYPES else wanted.rpartition("@")[0] or wanted,
        effort=_EFFORTS.get(effort, ""),
        sandbox=choice_of(request, "sandbox", SANDBOXES) or _BY_MODE[context.mode],
        approval=choice_of(request, "approval", APPROVALS) or "untrusted",
        instructions="\n\n".join(filter(None, (agent.instructions, agent.rules))),
        schema=schema if isinstance(schema, dict) else None,
        servers=request.servers,
    )
