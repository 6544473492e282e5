"""A home in which every supported program has stored some conversations, each in its usual place.

They are recorded sessions and the formats' samples.

`python tests/agent_machine.py FOLDER` creates one to experiment with, and prints how to use it.
"""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import sys
import zipfile
from contextlib import closing
from pathlib import Path

from format_samples import samples_of
from moot.plugins import FORMATS
from moot.types.format import Sample

RECORDED = Path(__file__).parent / "recorded" / "formats"
WEBUI = "srv/open-webui"
"""Open WebUI's folder, set by `DATA_DIR` because it has no usual place."""

COMING = {
    "aichat": 2,
    "cherry": 1,
    "clai": 1,
    "claude": 4,
    "codex": 4,
    "gemini": 3,
    "gptme": 2,
    "llm": 2,
    "lmstudio": 1,
    "mtm": 2,
    "ollama": 1,
    "open-webui": 1,
    "opencode": 2,
    "pi": 2,
    "qwen": 2,
    "tai": 1,
    "talkcody": 1,
    "vibe": 2,
}
"""Number of conversations that each program has stored."""

GIVEN = {"anthropic": 1, "chatgpt": 1, "claude-ai": 1, "md": 2, "openai": 1, "ui": 1}
"""The same for files in the folder `Downloads`."""

LANGUAGES = """# Lunch

## User

会议记录在哪里？

## Assistant

Le compte rendu du déjeuner est dans le dossier partagé.

## User

Где протокол встречи?

## Assistant

Im Ordner für größere Übersichten.
"""

_RECORDED = {
    "claude/projects": ".claude/projects",
    "codex/sessions": ".codex/sessions",
    "gemini": ".gemini/tmp/project/chats",
    "qwen": ".qwen/projects/-home-user-project/chats",
    "pi": ".pi/agent/sessions/--home-user-project--",
    "gptme": ".local/share/gptme/logs/2026-11-21-laughing-purple-dinosaur",
    "vibe": ".vibe/logs/session/unified",
}
_SAMPLES = {
    "aichat/session": ".config/aichat/sessions/lists.yaml",
    "aichat/log": ".config/aichat/messages.md",
    "cherry/first": ".config/CherryStudio/agents.db",
    "clai/chat": ".config/.clai/conversations/lists.json",
    "claude/session": ".claude/projects/-srv-sample/11111111-2222-4333-8444-555555555555.jsonl",
    "codex/session": ".codex/sessions/2025/11/21/rollout-2025-11-21T20-31-00-sample.jsonl",
    "gemini/chat": ".gemini/tmp/sample/chats/session-sample.jsonl",
    "gemini/older": ".gemini/tmp/older/chats/session-older.json",
    "gptme/conversation": ".local/share/gptme/logs/sample/conversation.jsonl",
    "lmstudio/conversation": ".lmstudio/conversations/1700000000000.conversation.json",
    "mtm/notebook": "notes/.mutsumi/lists.mtm",
    "mtm-1/notebook": "notes/.mutsumi/fork.mtm",
    "ollama/database": "Library/Application Support/Ollama/db.sqlite",
    "open-webui/database": f"{WEBUI}/webui.db",
    "pi/session": ".pi/agent/sessions/--srv-sample--/2026-11-21T20-44-43-782Z_s1.jsonl",
    "qwen/session": ".qwen/projects/-srv-sample/chats/sample.jsonl",
    "tai/sessions": ".tailored-ai/agent.db",
    "talkcody/database": ".local/share/com.talkcody/talkcody.db",
    "vibe/session": ".vibe/logs/session/unified/sample",
    "anthropic/request": "Downloads/request to anthropic.json",
    "md/written down": "Downloads/written down.md",
    "openai/request": "Downloads/request to openai.json",
    "ui/messages": "Downloads/messages.json",
}
_EXPORTS = {"chatgpt": "Downloads/chatgpt export.zip", "claude-ai": "Downloads/claude export.zip"}


def assemble(home: Path) -> dict[str, str]:
    """Fill the home. Return the environment variables that a program started there needs in addition to HOME."""
    for source, place in _RECORDED.items():
        shutil.copytree(RECORDED / source, home / place, dirs_exist_ok=True)
    for name, place in _SAMPLES.items():
        _write(home / place, _sample(name))
    for format, place in _EXPORTS.items():
        _write(home / place, _zipped(_sample(f"{format}/conversations")))
    opencode_database(home / ".local/share/opencode/opencode.db")
    _database(home / ".config/io.datasette.llm/logs.db", (RECORDED / "llm" / "logs.sql").read_text())
    _write(home / "Downloads/lunch.md", LANGUAGES.encode())
    workspace = json.dumps({"folder": (home / "notes").as_uri()}).encode()
    _write(home / ".config/Code/User/workspaceStorage/1/workspace.json", workspace)
    return {"DATA_DIR": str(home / WEBUI)}


def opencode_database(path: Path) -> Path:
    """Create OpenCode's database from its schema and the recorded rows."""
    _database(path, (RECORDED / "opencode" / "schema.sql").read_text())
    with closing(sqlite3.connect(path)) as connection:
        for rows in sorted((RECORDED / "opencode").glob("ses_*.json")):
            for table, found in json.loads(rows.read_text()).items():
                for row in found:
                    values = [json.dumps(value) if isinstance(value, dict | list) else value for value in row.values()]
                    marks = ", ".join("?" * len(row))
                    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", values)
        connection.commit()
    return path


def _sample(name: str) -> Sample:
    format, _, sample = name.partition("/")
    made = FORMATS.load(format)()
    return samples_of(made)[sample]


def _zipped(conversations: Sample) -> bytes:
    assert isinstance(conversations, bytes)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", conversations)
    return held.getvalue()


def _write(path: Path, data: Sample) -> None:
    for file, content in {path: data}.items() if isinstance(data, bytes) else ((path / name, one) for name, one in data.items()):
        assert isinstance(content, bytes)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _database(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


if __name__ == "__main__":
    target = Path(sys.argv[1]).resolve()
    variables = {"HOME": str(target), "MOOT_HOME": str(target / ".moot"), **assemble(target)}
    sys.stdout.write("".join(f"export {name}='{value}'\n" for name, value in variables.items()))
