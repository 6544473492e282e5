"""A checked configuration as the frozen values that the rooms above read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from moot.config.checking import is_secret
from moot.config.schema import AgentPart, Configuration, LimitsPart, ProviderPart
from moot.config.settings import Models, Permissions, ProviderSettings, Rule, Settings, Storage
from moot.types.agent import Agent, HistorySettings
from moot.types.canonical import Json, JsonObject
from moot.types.limits import Limits

NANO = 1_000_000_000
MASK = "•••"
SHORTEST_SECRET = 8
"""Shorter ones (`none`, `ollama`) are words that an answer may hold; masking them would tear holes into it."""


def build(configuration: Configuration, home: Path) -> Settings:
    """The settings that a configuration comes to."""
    models, permissions, storage = configuration.models, configuration.permissions, configuration.storage
    return Settings(
        home=home,
        models=Models(
            main=models.main,
            small=models.small,
            compaction=models.compaction,
            image=models.image,
            transcription=models.transcription,
            fallback=tuple(models.fallback),
        ),
        providers={name: _provider(name, part) for name, part in configuration.providers.items()},
        agents={"default": Agent()} | {name: _agent(name, part) for name, part in configuration.agents.items()},
        permissions=Permissions(
            mode=permissions.mode,
            rules=tuple(Rule(rule.tool, rule.action, rule.match, rule.always) for rule in permissions.rules),
            timeout=permissions.timeout,
            unattended=permissions.unattended,
        ),
        storage=Storage(storage.url, storage.durability),
        limits=_limits(configuration.limits),
        tools=cast("dict[str, JsonObject]", configuration.tools),
        channels=cast("dict[str, JsonObject]", configuration.channels),
        ui=cast("JsonObject", configuration.ui),
    )


def shown(configuration: Configuration) -> JsonObject:
    """The configuration as JSON in the file's own shape, every secret masked."""
    return cast("JsonObject", _masked(configuration.model_dump(mode="json"), ()))


def secrets_of(configuration: Configuration) -> tuple[str, ...]:
    """Every secret text in it, longest first, so that one inside another is masked whole."""
    found: set[str] = set()
    _collect(configuration.model_dump(mode="json"), (), found)
    return tuple(sorted((text for text in found if len(text) >= SHORTEST_SECRET), key=len, reverse=True))


def _provider(name: str, part: ProviderPart) -> ProviderSettings:
    return ProviderSettings(
        name=name,
        dialect=part.dialect,
        base_url=part.base_url,
        api_key=part.api_key,
        headers=part.headers,
        models=cast("dict[str, JsonObject]", part.models),
        plan=part.plan,
        priority=part.priority,
        enabled=part.enabled,
        timeout=part.timeout,
        options=cast("JsonObject", dict(part.model_extra or {})),
    )


def _agent(name: str, part: AgentPart) -> Agent:
    return Agent(
        name=name,
        description=part.description,
        agent_type=part.agent_type,
        model=part.model,
        instructions=part.instructions,
        rules=part.rules,
        tools=None if part.tools is None else tuple(part.tools),
        skills=tuple(part.skills),
        role=part.role,
        temperature=part.temperature,
        max_steps=part.max_steps,
        effort=part.reasoning.effort,
        show_reasoning=part.reasoning.show,
        history=HistorySettings(part.history.max_tokens, part.history.compact_at, part.history.keep),
        options=cast("JsonObject", part.options),
        fallback=tuple(part.fallback),
    )


def _limits(part: LimitsPart) -> Limits:
    return Limits(**{**part.model_dump(), "cost": round(part.cost * NANO)})


def _masked(value: Json, path: tuple[str, ...]) -> Json:
    if isinstance(value, dict):
        return {key: _masked(item, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, path) for item in value]
    if isinstance(value, str) and value:
        return MASK if is_secret(path) else _without_password(value)
    return value


def _without_password(text: str) -> str:
    password = _password(text)
    return text.replace(password, MASK) if password else text


def _collect(value: Any, path: tuple[str, ...], found: set[str]) -> None:
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            _collect(item, (*path, key), found)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            _collect(item, path, found)
    elif isinstance(value, str) and value:
        if is_secret(path):
            found.add(value)
        elif password := _password(value):
            found.add(password)


def _password(text: str) -> str | None:
    if "://" not in text or "@" not in text:
        return None
    try:
        return urlsplit(text).password
    except ValueError:
        return None
