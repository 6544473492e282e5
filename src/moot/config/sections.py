"""The sections of a configuration; the schema is held to them by a test, and importing it takes longer than a short command has."""

from __future__ import annotations

SECTIONS = (
    "models",
    "providers",
    "agents",
    "mcp",
    "permissions",
    "hooks",
    "cron",
    "webhooks",
    "channels",
    "commands",
    "tools",
    "server",
    "storage",
    "retention",
    "imports",
    "limits",
    "ui",
)

NO_EFFECT_YET = ("hooks", "cron", "webhooks", "commands")
"""Sections that are read and checked, and that nothing of this version acts on."""
