"""Agents that speak the Agent Client Protocol: how each is started, and how it differs from the others. Plain data, one row each.

Those marked *seen* are covered by moot's own tests; the others follow their documentation.
"""

from __future__ import annotations

from dataclasses import dataclass

from moot.types.agent import KnownAgent


@dataclass(frozen=True, slots=True)
class AcpAgent:
    """One row."""

    name: str
    """The name in `acp:NAME` and for `-a`."""
    description: str = ""
    command: tuple[str, ...] = ()
    install: str = ""
    login: str = ""
    """The agent's own login command."""
    keeps: tuple[str, ...] = ()
    """Our environment variables that it gets: its keys and URLs."""
    method: str = ""
    """The `authenticate` method to call before a session is opened; empty for none."""
    files: bool = True
    """Offer the agent to read and write files through moot."""
    asking: tuple[str, ...] = ("default", "ask", "build")
    """Its modes in which it asks before it acts, in order of preference. In any other mode it is left unchanged."""
    planning: tuple[str, ...] = ("plan", "read-only", "architect")
    """Its modes in which it only reads and plans."""

    def known(self) -> KnownAgent:
        """Return the row for lists of agents."""
        return KnownAgent(self.name, f"acp:{self.name}", self.description, self.install, programs=self.command[:1])


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
    ),
    AcpAgent(  # seen; with file access it can't create a file: it reads it first, and treats "not found" as a failure
        "gemini",
        "Gemini CLI, over ACP",
        ("gemini", "--acp"),
        "npm install --global @google/gemini-cli",
        "gemini",
        keeps=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_APPLICATION_CREDENTIALS"),
        files=False,
    ),
    AcpAgent(  # seen
        "qwen",
        "Qwen Code, over ACP",
        ("qwen", "--acp"),
        "npm install --global @qwen-code/qwen-code",
        "qwen",
        keeps=("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "DASHSCOPE_API_KEY"),
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

KNOWN = tuple(agent.known() for agent in ACP_AGENTS)


def facts_of(name: str) -> AcpAgent:
    """Return the row of that name, or defaults without a command for any other agent."""
    return next((agent for agent in ACP_AGENTS if agent.name == name), AcpAgent(name))
