"""Codex: an npm package."""

from __future__ import annotations

from moot.types.agent import KnownAgent

KNOWN = (KnownAgent("codex", "codex", "Codex, as it is", "npm install --global @openai/codex", programs=("codex",)),)
