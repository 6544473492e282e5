"""Completion candidates from the configuration and the store."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from moot.cli.context.numbers import numbered
from moot.config.home import home_of
from moot.guard.terminal import clean
from moot.plugins import FORMATS, PROVIDERS, TOOLS
from moot.plugins.registry import attribute
from moot.store.database.snapshot import newest_titles

Value = tuple[str, str]
"""A completion candidate and its description."""

CONVERSATIONS = 100
_PLAIN = re.compile(r"[\w .,:+/@-]+")
"""Matches titles that can be offered. Titles are untrusted, so those with special shell characters are not."""


def values(kind: str, part: str) -> Iterable[Value]:
    """Return the completion candidates of a kind that start with `part`."""
    find = _KINDS.get(kind)
    if find is None:
        return []
    fitting = (value for value in find(part) if value[0].casefold().startswith(part.casefold()))
    return {value[0]: value for value in fitting}.values()


def _conversations(part: str) -> Iterable[Value]:
    home = home_of(os.environ)
    titles = {id: " ".join(clean(title or "untitled").split())[:60] for id, title in newest_titles(home, CONVERSATIONS)}
    for number, id in enumerate(numbered(home / "state") or [], 1):
        if id in titles:
            yield str(number), titles[id]
    for id, title in titles.items() if part else ():
        yield id[: max(13, len(part))], title
        if _PLAIN.fullmatch(title):
            yield title, id[:13]


def _settings() -> Any:
    """Load the settings. Imported lazily because conversations don't need them."""
    return attribute("moot.config.loader:load")(environ=os.environ, directory=home_of(os.environ)).settings


def _agents(_: str) -> Iterable[Value]:
    found = attribute("moot.agents.known:available_agents")(_settings(), str(Path.cwd()))
    return [(name, agent.description) for name, agent in found.items()]


def _models(part: str) -> Iterable[Value]:
    settings = _settings()
    for name in ("main", "small"):
        if value := getattr(settings.models, name):
            yield name, value
            yield value, name
    for name, provider in settings.providers.items():
        yield from ((f"{model}@{name}", "") for model in provider.models)


def _tools(part: str) -> Iterable[Value]:
    before, comma, _ = part.rpartition(",")
    return [(f"{before}{comma}{name}", "") for name in TOOLS.names()]


def _skills(_: str) -> Iterable[Value]:
    found = attribute("moot.skills.library:find_skills")(home_of(os.environ), str(Path.cwd()))
    return [(skill.name, " ".join(clean(skill.text.description).split())[:60]) for skill in found]


_KINDS: dict[str, Callable[[str], Iterable[Value]]] = {
    "agent": _agents,
    "conversation": _conversations,
    "format": lambda _: [(name, "") for name in FORMATS.names()],
    "model": _models,
    "provider": lambda _: [(name, "") for name in sorted({*PROVIDERS.names(), *_settings().providers})],
    "skill": _skills,
    "tool": _tools,
}
