"""Where a dialect's requests go below the base URL, and how they prove who asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """The paths and the authentication of one dialect's first vendor."""

    post: str
    models: str
    authentication: Callable[[str], Mapping[str, str]]
    """The headers for a key, which may be empty."""
    version: str = ""
    """A path's end that the base URL must not have: people copy it from examples of the other kind."""


def _bearer(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _anthropic(key: str) -> Mapping[str, str]:
    version = {"anthropic-version": "2023-06-01"}
    return {"x-api-key": key, **version} if key else version


SHAPES: Mapping[str, Shape] = {
    "openai-chat": Shape("/chat/completions", "/models", _bearer),
    "anthropic": Shape("/v1/messages", "/v1/models?limit=1000", _anthropic, version="/v1"),
}


def shape_of(dialect: str) -> Shape | None:
    """The shape of a dialect; a `-schema` variant differs in the body alone. None when it has none."""
    return SHAPES.get(dialect.removesuffix("-schema"))
