"""Build the frozen settings from a validated configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias, cast

from moot.config.settings import ImportSettings, Models, Permissions, ProviderSettings, Rule, ServerSettings, Settings, Storage
from moot.types.agent import Agent, HistorySettings
from moot.types.canonical import JsonObject
from moot.types.limits import Limits
from moot.types.mcp import McpServer
from moot.types.retention import Keeping, Retention

NANO = 1_000_000_000

_Part: TypeAlias = dict[str, Any]
"""A section of a validated configuration."""


def build(configuration: JsonObject, home: Path) -> Settings:
    """Return the settings for a complete, validated configuration, as returned by `check`."""
    whole = cast("_Part", configuration)
    models, permissions = whole["models"], whole["permissions"]
    return Settings(
        home=home,
        models=Models(*(models[name] for name in _TYPES), fallback=tuple(models["fallback"])),
        providers={name: _provider(name, part) for name, part in whole["providers"].items()},
        agents={"default": Agent()} | {name: _agent(name, part) for name, part in whole["agents"].items()},
        mcp={name: _mcp_server(name, part) for name, part in whole["mcp"].items()},
        permissions=Permissions(
            mode=permissions["mode"],
            rules=tuple(Rule(**rule) for rule in permissions["rules"]),
            timeout=permissions["timeout"],
            unattended=permissions["unattended"],
        ),
        storage=Storage(**whole["storage"]),
        retention=_retention(whole["retention"]),
        imports=ImportSettings(**whole["imports"]),
        server=_server(whole["server"]),
        limits=Limits(**{**whole["limits"], "cost": round(whole["limits"]["cost"] * NANO)}),
        tools=whole["tools"],
        channels=whole["channels"],
        ui=whole["ui"],
    )


_TYPES = ("main", "small", "compaction", "image", "transcription")
_PROVIDER = ("dialect", "base_url", "api_key", "headers", "models", "plan", "priority", "enabled", "timeout")


def _provider(name: str, part: _Part) -> ProviderSettings:
    known = {key: part[key] for key in _PROVIDER}
    return ProviderSettings(name=name, **known, options={key: value for key, value in part.items() if key not in _PROVIDER})


def _mcp_server(name: str, part: _Part) -> McpServer:
    words: _Part = {"args": tuple(part["args"])}
    return McpServer(name, **part | words)


def _retention(part: _Part) -> Retention:
    projects = {name: Keeping(**keeping) for name, keeping in part["projects"].items()}
    return Retention(part["keep_days"], part["archived_days"], part["trash_days"], projects)


def _server(part: _Part) -> ServerSettings:
    lists: _Part = {name: tuple(part[name]) for name in ("allowed_hosts", "allowed_origins")}
    return ServerSettings(**part | lists)


def _agent(name: str, part: _Part) -> Agent:
    return Agent(
        name=name,
        description=part["description"],
        agent_type=part["agent_type"],
        model=part["model"],
        instructions=part["instructions"],
        rules=part["rules"],
        tools=None if part["tools"] is None else tuple(part["tools"]),
        skills=tuple(part["skills"]),
        mcp=None if part["mcp"] is None else tuple(part["mcp"]),
        role=part["role"],
        temperature=part["temperature"],
        max_steps=part["max_steps"],
        effort=part["reasoning"]["effort"],
        show_reasoning=part["reasoning"]["show"],
        history=HistorySettings(**part["history"]),
        options=part["options"],
        fallback=tuple(part["fallback"]),
    )
