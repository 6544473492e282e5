"""Plugins that tests write and read."""

from __future__ import annotations

import json
from pathlib import Path

from moot.skills.plugins import PluginCandidate, read_plugin_source


async def candidate(source: Path | str, home: Path, *, plugin: str = "", commit: str = "", path: str = "") -> PluginCandidate:
    return await read_plugin_source(str(source), home, Path("/"), plugin=plugin, commit=commit, path=path)


def write(folder: Path, files: dict[str, object]) -> Path:
    """Write a plugin. Other values than text become JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder
