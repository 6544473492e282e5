"""Detection and masking of secret values in a configuration."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from moot.types.canonical import Json, JsonObject

MASK = "•••"
SHORTEST = 8
"""Minimum length of a value to mask, in characters. Shorter values (`none`, `ollama`) may be ordinary words."""

_SECRET = re.compile(r"(?i)(^|.*[_-])(key|apikey|token|secret|password|authorization|headers)")
_ENVIRONMENT = re.compile(r"(?i)(.*_)?env")
_SECRET_VARIABLE = re.compile(
    r"(?i).*(key|token|secret|passw|passphrase|credential|auth|cookie|session|dsn|(^|_)(pat|pass|pwd|url|uri)($|_)).*"
)
"""Matches names of environment variables whose values may be secret. URLs may contain passwords or tokens."""


def is_secret(path: tuple[str | int, ...]) -> bool:
    """Return True if the value at a path is secret. For environment variables in a mapping such as `env`, this depends on their names."""
    for step, inner in zip(path, (*path[1:], ""), strict=True):
        if not isinstance(step, str):
            continue
        if _SECRET.fullmatch(step):
            return True
        if _ENVIRONMENT.fullmatch(step) and not (isinstance(inner, str) and inner and not _SECRET_VARIABLE.fullmatch(inner)):
            return True
    return False


def password_in(text: str) -> str | None:
    """Return the password in a URL, or None if there is none."""
    if "://" not in text or "@" not in text:
        return None
    try:
        return urlsplit(text).password
    except ValueError:
        return None


def mask_secrets(configuration: JsonObject) -> JsonObject:
    """Return the configuration with every secret masked."""
    return {key: _masked(value, (key,)) for key, value in configuration.items()}


def secrets_of(configuration: JsonObject) -> tuple[str, ...]:
    """Return all secret texts, longest first, so that a secret that contains another secret is masked completely."""
    found: set[str] = set()
    _collect(configuration, (), found)
    return tuple(sorted((text for text in found if len(text) >= SHORTEST), key=len, reverse=True))


def _masked(value: Json, path: tuple[str, ...]) -> Json:
    if isinstance(value, dict):
        return {key: _masked(item, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, path) for item in value]
    if not isinstance(value, str) or not value:
        return value
    password = password_in(value)
    return MASK if is_secret(path) else value.replace(password, MASK) if password else value


def _collect(value: Json, path: tuple[str, ...], found: set[str]) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _collect(item, (*path, key), found)
    elif isinstance(value, list):
        for item in value:
            _collect(item, path, found)
    elif isinstance(value, str) and value:
        if is_secret(path):
            found.add(value)
        elif password := password_in(value):
            found.add(password)
