"""The home folder, and the environment variables that moot and model vendors use."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from moot.plugins.registry import attribute

NO_SETTINGS = frozenset({"MOOT_HOME", "MOOT_TOKEN", "MOOT_CRASH_AT", "MOOT_TESTING", "MOOT_DEBUG", "MOOT_LOG"})
"""Variables starting with `MOOT_` that are not settings."""

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
"""Built-in provider → the variables in which its vendor's own tools look for the key. The first one set wins."""


def home_of(environ: Mapping[str, str]) -> Path:
    """Return `MOOT_HOME` or else the platform's data folder, as an absolute path."""
    named = environ.get("MOOT_HOME", "")
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "linux":  # same as platformdirs, whose import takes three times as long as starting Python
        shared = Path(environ.get("XDG_DATA_HOME", ""))
        return (shared if shared.is_absolute() else Path.home() / ".local" / "share") / "moot"
    return Path(attribute("platformdirs:user_data_path")("moot", appauthor=False)).absolute()
