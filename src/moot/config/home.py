"""Where moot lives, and which environment variables are its own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from moot.plugins.registry import attribute

NO_SETTINGS = frozenset({"MOOT_HOME", "MOOT_TOKEN", "MOOT_CRASH_AT", "MOOT_TESTING", "MOOT_DEBUG", "MOOT_LOG"})
"""Variables that are read elsewhere and set nothing in the configuration."""

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "minimax": ("MINIMAX_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "moonshot": ("MOONSHOT_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "vercel": ("AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"),
    "xai": ("XAI_API_KEY",),
    "zhipu": ("ZAI_API_KEY", "ZHIPU_API_KEY", "ZHIPUAI_API_KEY"),
}
"""Built-in provider → the variables its vendor's own tools read the key from, first one wins."""


def home_of(environ: Mapping[str, str]) -> Path:
    """`MOOT_HOME`, else the platform's data folder; absolute."""
    named = environ.get("MOOT_HOME", "")
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "linux":  # as platformdirs has it, whose import costs three bare interpreters
        shared = Path(environ.get("XDG_DATA_HOME", ""))
        return (shared if shared.is_absolute() else Path.home() / ".local" / "share") / "moot"
    return Path(attribute("platformdirs:user_data_path")("moot", appauthor=False)).absolute()
