"""Agent definitions, the outside agents that moot knows, and MCP servers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from moot.types.canonical import JsonObject, empty
from moot.types.hooks import RunHooks
from moot.types.model import Effort


@dataclass(frozen=True, slots=True)
class McpServer:
    """One MCP server in the configuration (`mcp`): a program that communicates over stdio, or a URL."""

    name: str
    command: str = ""
    """Empty = connect to `url`."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Resolved values, added to the program's default environment; never shown, logged or stored."""
    url: str = ""
    protocol: Literal["http", "sse"] = "http"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Resolved values; never shown, logged or stored."""
    enabled: bool = True
    trust_hints: bool = False
    """True if moot believes the server's claims that a tool is read-only or can be repeated. False claims can then do harm."""
    plugin: str = ""
    """Name of the plugin that contains the server, which starts only while the plugin is unchanged."""
    problem: str = ""
    """Reason why the server can't be used and is not enabled, such as an environment variable that is not set; otherwise empty."""

    def __repr__(self) -> str:
        return f"McpServer(name={self.name!r}, command={self.command!r}, url={self.url!r})"

    @property
    def place(self) -> str:
        """The command line of the program, quoted for a shell, or the URL."""
        return self.url or shlex.join((self.command, *self.args))


Mode: TypeAlias = Literal["ask", "edits", "plan", "auto"]
"""ask: everything except reading needs approval · edits: file edits in the allowed paths need none · plan: read-only · auto: nothing
needs approval."""
MODES: tuple[Mode, ...] = ("plan", "ask", "edits", "auto")
"""All modes, from the one that allows least to the one that allows most."""


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """The part of a conversation's history that a step sends to the model."""

    max_tokens: int | None = None
    """None = as much as the model's context allows."""
    compact_at: float = 0.8
    keep: int = 6


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """Selection of the parts of an agent's system prompt."""

    parts: tuple[str, ...] | None = None
    """Names of the parts, in this order; None = all built-in ones."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values for `{{name}}` in the agent's own texts."""
    max_tokens: int | None = None
    """Maximum size of the system prompt in tokens. Parts other than the agent's own texts are truncated to fit; None = no limit."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A named agent definition."""

    name: str = "default"
    description: str = ""
    agent_type: str = "moot"
    model: str = "main"
    """A model type (main, small …) or `model@provider`."""
    instructions: str = ""
    """Text that replaces the first paragraph of the built-in system prompt; empty = the paragraph is not replaced."""
    rules: str = ""
    tools: tuple[str, ...] | None = None
    """Names of the tools that the agent may use; None = all tools that are not hidden, () = none."""
    allowed_uris: tuple[str, ...] = ()
    """Folders that the agent's new conversations may use in addition to their directory."""
    skills: tuple[str, ...] | None = None
    """Names of the skills that the agent may use, in the order in which they are offered; None = all, () = none."""
    mcp: tuple[str, ...] | None = None
    """Names of the MCP servers that the agent may use; None = all, () = none."""
    role: Literal["read", "write"] = "write"
    """`read` = the agent gets only tools that change nothing; `write` = it gets all its tools."""
    temperature: float | None = None
    max_steps: int | None = None
    effort: Effort | None = None
    show_reasoning: bool = True
    history: HistorySettings = field(default_factory=HistorySettings)
    options: JsonObject = field(default_factory=empty)
    """Options of the agent service, which defines their schema."""
    fallback: tuple[str, ...] = ()
    """Models to try, in order, if the main model fails before any output is shown. The list can also name agents, which continue a run when
    its provider refuses further calls."""
    hooks: RunHooks = field(default_factory=RunHooks)
    """Tool calls before and after each of the agent's runs."""
    prompt: PromptSettings = field(default_factory=PromptSettings)
    agents: tuple[str, ...] = ()
    """Names of the agents that this agent may call."""
    isolation: Literal["none", "worktree"] = "none"
    output_format: str = ""
    """`markdown`, `plain`, or a description of the answer format."""
    hidden: bool = False
    """True if the agent is left out of lists. It can still be selected by name."""
    beta: bool = False
    default: bool = False
    """True if new conversations use this agent unless they name another one."""
    version: str = ""
    origin: str = ""
    """Source of the definition: a file, a place in the configuration, or a package; `built-in` or `known` for moot's own agents.
    Empty = a program defined it."""
    forked_from: str = ""
    """Name of the agent that this one was copied from; empty = none."""


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """An outside agent that works without configuration once its program is installed."""

    name: str
    """The value for `-a`."""
    agent_type: str
    description: str
    install: str
    """The install command, shown to the user."""
    programs: tuple[str, ...] = ()
    """Names of the executable, one of which must be installed; () = `package` includes the program."""
    package: str = ""
    """The Python package that drives the agent; empty = none is needed."""
    skills: str = ""
    """Folder with the agent's skills, relative to the user's home folder; empty = the agent has none, or it is unknown."""

    def agent(self) -> Agent:
        """Return the equivalent agent definition; the agent chooses its own model."""
        return Agent(name=self.name, description=self.description, agent_type=self.agent_type, model="", origin="known")
