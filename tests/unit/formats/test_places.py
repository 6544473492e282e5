from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from moot.plugins import FORMATS

PLACES: list[tuple[str, Mapping[str, str], list[str]]] = [
    ("opencode", {}, ["HOME/.local/share/opencode/opencode.db"]),
    ("opencode", {"XDG_DATA_HOME": "/data", "OPENCODE_DB": "mine.db"}, ["/data/opencode/mine.db"]),
    ("opencode", {"OPENCODE_DB": "/else/mine.db"}, ["/else/mine.db"]),
    ("opencode", {"OPENCODE_DB": ":memory:"}, []),
    ("open-webui", {}, []),
    ("open-webui", {"DATA_DIR": "/data"}, ["/data/webui.db"]),
    ("open-webui", {"DATABASE_URL": "sqlite:////data/own.db"}, ["/data/own.db"]),
    ("open-webui", {"DATABASE_URL": "postgresql://somewhere/webui"}, []),
    ("ollama", {}, ["HOME/Library/Application Support/Ollama/db.sqlite", "HOME/.ollama/db.sqlite"]),
    ("pi", {"PI_CODING_AGENT_DIR": "/agent"}, ["/agent/sessions"]),
    ("pi", {"PI_CODING_AGENT_DIR": "/agent", "PI_CODING_AGENT_SESSION_DIR": "/sessions"}, ["/sessions"]),
    ("qwen", {"QWEN_HOME": "/home/qwen"}, ["/home/qwen/projects"]),
    ("qwen", {"QWEN_HOME": "/home/qwen", "QWEN_RUNTIME_DIR": "/runtime"}, ["/runtime/projects"]),
    ("gptme", {"GPTME_LOGS_HOME": "/logs"}, ["/logs", "HOME/Library/Application Support/gptme/logs"]),
    ("llm", {"LLM_USER_PATH": "/llm"}, ["/llm/logs.db"]),
    ("gemini", {"GEMINI_CLI_HOME": "/else"}, ["/else/.gemini/tmp"]),
    ("vibe", {"VIBE_HOME": "/vibe"}, ["/vibe/logs/session/unified"]),
    ("lmstudio", {}, ["HOME/.lmstudio/conversations", "HOME/.cache/lm-studio/conversations"]),
]


@pytest.mark.parametrize(("name", "environ", "expected"), PLACES)
def test_environment_variables_set_a_programs_location(tmp_path: Path, name: str, environ: Mapping[str, str], expected: list[str]) -> None:
    format: Any = FORMATS.make(name)
    assert [str(place).replace(str(tmp_path), "HOME") for place in format.places(tmp_path, environ)] == expected


def test_databases_of_development_versions_of_opencode_are_found(tmp_path: Path) -> None:
    folder = tmp_path / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode-dev.db").touch()
    format: Any = FORMATS.make("opencode")
    assert list(format.places(tmp_path, {})) == [folder / "opencode.db", folder / "opencode-dev.db"]
