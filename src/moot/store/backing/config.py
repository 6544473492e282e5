"""Removing API keys and passwords from a configuration; names of environment variables stay."""

from __future__ import annotations

from typing import cast

from moot.config.document import parse
from moot.config.secret import MASK, secrets_of
from moot.config.tree import Node, Place
from moot.errors import ConfigError
from moot.types.canonical import Json, JsonObject

__all__ = ["without_secrets"]


def without_secrets(data: bytes) -> bytes:
    """Return the text with each secret masked, or only a comment if it can't be parsed."""
    try:
        text = data.decode()
        tree = _plain(parse(text, Place("user", "config.yaml")))
    except (UnicodeDecodeError, ConfigError):
        return b"# the configuration was unreadable when this backup was made, so it is not included\n"
    for secret in secrets_of(cast("JsonObject", tree)):
        if "${" not in secret:
            text = text.replace(secret, MASK)
    return text.encode()


def _plain(node: Node) -> Json:
    if isinstance(node.value, dict):
        return {name: _plain(child) for name, child in node.value.items()}
    if isinstance(node.value, list):
        return [_plain(child) for child in node.value]
    return node.text or cast("Json", node.value)
