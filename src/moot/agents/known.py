"""Outside agents that run without configuration, and the catalogue of all agents by folder.

Each agent service has a tuple of plain data (`KnownAgent`), named in the table `KNOWN_AGENTS` of `plugins/`. Commands that list agents
import this module, so it doesn't import the code that runs agents. Agents marked *seen* are covered by moot's own tests; the others follow
their documentation.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

from moot.config.agents.builtin import BUILT_IN
from moot.config.agents.project import ProjectAgents, project_agents
from moot.config.settings import Settings
from moot.errors import MootError, UsageError
from moot.plugins import AGENT_DEFINITIONS, KNOWN_AGENTS
from moot.types.agent import Agent, KnownAgent
from moot.types.canonical import JsonObject
from moot.types.model import ModelRole

__all__: list[str] = []

log = logging.getLogger("moot.agents")


@dataclass(frozen=True, slots=True)
class AcpAgent:
    """An agent that speaks ACP: one row of `ACP_AGENTS`."""

    name: str
    """The name in `acp:NAME` and for `-a`."""
    description: str = ""
    command: tuple[str, ...] = ()
    install: str = ""
    login: str = ""
    """The agent's own login command."""
    keeps: tuple[str, ...] = ()
    """Environment variables that are passed on to the agent, such as its keys and URLs."""
    method: str = ""
    """The `authenticate` method to call before a session is opened; empty for none."""
    files: bool = True
    """True if moot offers to read and write files for the agent."""
    asking: tuple[str, ...] = ("default", "ask", "build")
    """The agent's modes in which it asks before it acts, in order of preference.
    If a session offers none of them, its mode is not changed.
    """
    planning: tuple[str, ...] = ("plan", "read-only", "architect")
    """The agent's modes in which it only reads and plans, in order of preference."""
    skills: str = ""
    """Path of the agent's skills folder, relative to the user's home folder; empty if unknown."""

    def known(self) -> KnownAgent:
        """Return the entry for lists of agents."""
        return KnownAgent(self.name, f"acp:{self.name}", self.description, self.install, programs=self.command[:1], skills=self.skills)


_MODEL_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY")
_PLACES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")

ACP_AGENTS = (
    AcpAgent(  # seen
        "opencode",
        "OpenCode, over ACP",
        ("opencode", "acp"),
        "npm install --global opencode-ai",
        "opencode auth login",
        keeps=(*_MODEL_KEYS, *_PLACES, "OPENCODE_CONFIG"),
        skills=".config/opencode/skills",
    ),
    AcpAgent(  # seen; with file access it can't create files: it first reads the file and treats "not found" as a failure
        "gemini",
        "Gemini CLI, over ACP",
        ("gemini", "--acp"),
        "npm install --global @google/gemini-cli",
        "gemini",
        keeps=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_APPLICATION_CREDENTIALS"),
        files=False,
        skills=".gemini/skills",
    ),
    AcpAgent(  # seen
        "qwen",
        "Qwen Code, over ACP",
        ("qwen", "--acp"),
        "npm install --global @qwen-code/qwen-code",
        "qwen",
        keeps=("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "DASHSCOPE_API_KEY"),
        skills=".qwen/skills",
    ),
    AcpAgent(  # seen
        "claude-agent-acp",
        "Claude Code, over ACP",
        ("claude-agent-acp",),
        "npm install --global @agentclientprotocol/claude-agent-acp",
        "claude auth login",
        keeps=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"),
    ),
    AcpAgent(  # seen
        "codex-acp",
        "Codex, over ACP",
        ("codex-acp",),
        "npm install --global @agentclientprotocol/codex-acp",
        "codex login",
        keeps=("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"),
        asking=("read-only",),
    ),
    AcpAgent(
        "vibe",
        "Mistral Vibe, over ACP",
        ("vibe-acp",),
        "uv tool install mistral-vibe",
        "vibe --setup",
        keeps=("MISTRAL_API_KEY", "VIBE_HOME"),
    ),
    AcpAgent(
        "goose",
        "goose, over ACP",
        ("goose", "acp"),
        "brew install block-goose-cli",
        "goose configure",
        keeps=(*_MODEL_KEYS, *_PLACES, "GOOSE_PROVIDER", "GOOSE_MODEL"),
        asking=("approve", "smart_approve"),
        planning=("chat",),
    ),
    AcpAgent(
        "kimi", "Kimi Code, over ACP", ("kimi", "acp"), "uv tool install kimi-cli", "kimi login", keeps=("KIMI_API_KEY", "KIMI_BASE_URL")
    ),
    AcpAgent(
        "junie",
        "JetBrains Junie, over ACP",
        ("junie", "--acp=true"),
        "npm install --global @jetbrains/junie-cli",
        "junie",
        keeps=("JUNIE_API_KEY",),
    ),
    AcpAgent(
        "cursor-agent",
        "Cursor, over ACP",
        ("cursor-agent", "acp"),
        "curl https://cursor.com/install -fsS | bash",
        "cursor-agent login",
        keeps=("CURSOR_API_KEY", "CURSOR_AUTH_TOKEN"),
        method="cursor_login",
        asking=("agent",),
    ),
    AcpAgent(
        "copilot",
        "GitHub Copilot, over ACP",
        ("copilot", "--acp", "--stdio"),
        "npm install --global @github/copilot",
        "copilot login",
        keeps=("GH_TOKEN", "GITHUB_TOKEN", "COPILOT_GITHUB_TOKEN"),
    ),
    AcpAgent(
        "auggie",
        "Augment's Auggie, over ACP",
        ("auggie", "--acp"),
        "npm install --global @augmentcode/auggie",
        "auggie login",
        keeps=("AUGMENT_SESSION_AUTH", "AUGMENT_API_TOKEN"),
    ),
    AcpAgent("kiro", "Kiro, over ACP", ("kiro-cli", "acp"), "curl -fsSL https://cli.kiro.dev/install | bash", "kiro-cli login"),
)

ACP = tuple(agent.known() for agent in ACP_AGENTS)


def facts_of(name: str) -> AcpAgent:
    """Return the row for this agent name. For an unknown agent, return default values without a command."""
    return next((agent for agent in ACP_AGENTS if agent.name == name), AcpAgent(name))


CLAUDE_CODE = (
    KnownAgent(
        "claude-code",
        "claude-code",
        "Claude Code, unmodified",
        "pip install 'moot[claude]'",
        package="claude_agent_sdk",
        skills=".claude/skills",
    ),
)

CODEX = (
    KnownAgent("codex", "codex", "Codex, unmodified", "npm install --global @openai/codex", programs=("codex",), skills=".codex/skills"),
)


@dataclass(frozen=True, slots=True)
class Presence:
    """The availability of an agent's program on this machine."""

    ready: bool
    program: str = ""
    """Path of the program; empty for moot's own agents and for Python packages."""
    missing: str = ""
    """A description of what is missing; empty if nothing is missing."""
    install: str = ""
    """The command that installs the program."""

    def to_json(self) -> JsonObject:
        return {"ready": self.ready, "program": self.program, "missing": self.missing, "install": self.install}


def known_agents() -> dict[str, KnownAgent]:
    """Return every outside agent that runs without configuration, installed or not."""
    tables: list[tuple[KnownAgent, ...]] = [KNOWN_AGENTS.load(name) for name in KNOWN_AGENTS.names()]
    return {known.name: known for table in tables for known in table}


def agents_of_project(settings: Settings, directory: str) -> ProjectAgents:
    """Return the trusted agents defined in a folder and in the root of its repository."""
    return project_agents(settings.home, Path(directory)) if directory else ProjectAgents()


def agent_named(settings: Settings, name: str, directory: str = "") -> Agent | None:
    """Return the agent with this name, or None.

    The order of precedence is: agents of the folder's project, agents in moot's home folder, agents of packages, built-in agents.

    Raise ConfigError if the project has the agent but its file is not trusted or not valid, and UsageError if a package is broken.
    """
    project = agents_of_project(settings, directory)
    if (agent := project.agents.get(name) or settings.agents.get(name)) is not None:
        return agent
    if name in AGENT_DEFINITIONS:
        return _of_package(name)
    if name in BUILT_IN:
        return BUILT_IN[name]
    known = known_agents()
    found = known.get(name) or next((entry for entry in known.values() if entry.agent_type == name), None)
    if found is None and (error := project.refused.get(name)) is not None:
        raise error
    return found.agent() if found is not None else None


def fallback_agents(settings: Settings, agent: Agent, directory: str = "") -> list[str]:
    """Return the entries of `fallback` that are names of agents. The other entries are models."""
    names = [name for name in agent.fallback if "@" not in name and name not in get_args(ModelRole) and name != agent.name]
    return [name for name in names if _is_agent(settings, name, directory)]


def _is_agent(settings: Settings, name: str, directory: str) -> bool:
    try:
        return agent_named(settings, name, directory) is not None
    except MootError:
        return True  # the agent exists, but can't be used here


def fallback_models(settings: Settings, agent: Agent, directory: str = "") -> tuple[str, ...]:
    """Return the models to try after the agent's own model: the agent's fallback models, or else the configured fallback models."""
    agents = {agent.name, *fallback_agents(settings, agent, directory)}
    return tuple(name for name in agent.fallback if name not in agents) or settings.models.fallback


def available_agents(settings: Settings, directory: str = "") -> dict[str, Agent]:
    """Return the agents to choose from in a folder, without hidden ones.
    Known outside agents are included only if their program is installed.
    """
    known = {name: entry.agent() for name, entry in known_agents().items() if _presence(entry, ()).ready}
    packages = {name: agent for name in AGENT_DEFINITIONS.names() if (agent := _usable(name)) is not None}
    nearest = {**known, **BUILT_IN, **packages, **settings.agents, **agents_of_project(settings, directory).agents}
    order = dict.fromkeys(("default", *BUILT_IN, *settings.agents, *nearest))
    return {name: nearest[name] for name in order if not nearest[name].hidden}


def default_agent(settings: Settings, directory: str = "") -> str:
    """Return the name of the agent for conversations that don't specify one: the nearest agent marked as default, or else `default`."""
    for agents in (agents_of_project(settings, directory).agents, settings.agents):
        if (name := next((name for name, agent in agents.items() if agent.default), None)) is not None:
            return name
    return "default"


def _of_package(name: str) -> Agent:
    """Return the agent that is defined by a package. Raise UsageError if the package is broken."""
    agent, package = AGENT_DEFINITIONS.load(name), AGENT_DEFINITIONS.package(name)
    if not isinstance(agent, Agent):
        raise UsageError(
            f"The package {package} defines the agent {name!r} as {type(agent).__name__}.", fix="Report this to the author of the package."
        )
    return replace(agent, name=name, origin=package)


def _usable(name: str) -> Agent | None:
    try:
        return _of_package(name)
    except UsageError as error:
        log.warning("%s", error.advice())
        return None


def presence_of(agent: Agent, environ: Mapping[str, str] = os.environ) -> Presence:
    """Return the availability of the agent's program. An unknown agent counts as available; its run reports errors."""
    known = next((entry for entry in known_agents().values() if entry.agent_type == agent.agent_type), None)
    command = agent.options.get("command")
    words = tuple(str(word) for word in command) if isinstance(command, list) else ()
    if known is not None:
        return _presence(known, words, environ)
    program = _found(words[:1], environ)
    if words and not program:
        return Presence(False, missing=f"{words[0]!r} is not on the PATH", install=f"Set agents.{agent.name}.options.command.")
    return Presence(True, program)


def _presence(known: KnownAgent, command: tuple[str, ...], environ: Mapping[str, str] = os.environ) -> Presence:
    programs = command[:1] or known.programs
    program = _found(programs, environ)
    if known.package and find_spec(known.package) is None:
        return Presence(False, program, f"the Python package {known.package!r} is not installed", known.install)
    if programs and not program:
        return Presence(False, "", f"{' or '.join(repr(name) for name in programs)} is not on the PATH", known.install)
    return Presence(True, program)


def _found(programs: tuple[str, ...], environ: Mapping[str, str]) -> str:
    paths = (shutil.which(program, path=environ.get("PATH", "")) for program in programs)
    return next((path for path in paths if path), "")
