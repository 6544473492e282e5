"""Names of the configuration sections, without importing the schema, which is too slow for short commands. A test compares both."""

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
"""Sections that are validated but have no effect in this version."""
