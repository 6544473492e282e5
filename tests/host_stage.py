"""Other machines for the tests of synchronization: a program named `ssh` runs the commands here, in folders that stand for their homes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moot.config.settings import HostSettings
from moot.imports.conversations import ImportOptions
from moot.imports.hosts.sync import HostReport, sync_hosts
from moot.types.store import Store

SESSION = "11111111-2222-4333-8444-555555555555"
FILE = f".claude/projects/-home-ana-code/{SESSION}.jsonl"
SSH = """#!/bin/sh
while [ $# -gt 2 ]; do shift; done
HOME="{homes}/$1"; export HOME
cd "$HOME" || {{ echo "Could not resolve hostname $1" >&2; exit 255; }}
{before}
exec sh -c "$2"
"""


def line(number: int, text: str, *, at: str = "2026-08-01T10:00", session: str = SESSION) -> str:
    role = "user" if number % 2 else "assistant"
    content: Any = text if role == "user" else [{"type": "text", "text": text}]
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": {"input_tokens": 10, "output_tokens": 5}}
    parent = f"{session[:-1]}{number - 1}" if number > 1 else None
    facts = {"type": role, "uuid": f"{session[:-1]}{number}", "parentUuid": parent, "sessionId": session, "cwd": "/home/ana/code"}
    return json.dumps({**facts, "timestamp": f"{at}:{number:02}.000Z", "message": message}) + "\n"


class Machines:
    """The homes of other machines, and moot's own."""

    def __init__(self, folder: Path) -> None:
        self.homes, self.home, self.bin = folder / "homes", folder / "moot", folder / "bin"
        self.bin.mkdir()
        self.answer("")

    def answer(self, before: str) -> None:
        """Let the machines run shell commands before they answer."""
        program = self.bin / "ssh"
        program.write_text(SSH.format(homes=self.homes, before=before))
        program.chmod(0o755)

    def tool(self, name: str, script: str) -> Path:
        """Replace a program on all machines."""
        file = self.bin / name
        file.write_text(f"#!/bin/sh\n{script}")
        file.chmod(0o755)
        return file

    def write(self, host: str, path: str, content: str | bytes) -> Path:
        file = self.homes / host / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def copied(self, host: str) -> set[str]:
        home = self.home / "data" / "hosts" / host / "home"
        return {str(path.relative_to(home)) for path in home.rglob("*") if not path.is_dir()}

    def copy(self, host: str, path: str) -> Path:
        return self.home / "data" / "hosts" / host / "home" / path

    async def sync(self, store: Store, *hosts: str, timeout: float = 20, **wanted: Any) -> list[HostReport]:
        settings = [HostSettings(host, host, timeout=timeout) for host in hosts]
        return await sync_hosts(store, settings, self.home / "data", ImportOptions(**wanted))


def opencode(path: Path, sessions: Sequence[str]) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript(
        "PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0;"
        "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, slug TEXT, directory TEXT, title TEXT, version TEXT,"
        " time_created INTEGER, time_updated INTEGER);"
        "CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);"
        "CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);"
    )
    for session in sessions:
        add_session(connection, session)
    return connection


def add_session(connection: sqlite3.Connection, session: str) -> None:
    connection.execute("INSERT INTO session VALUES (?, 'p', NULL, 's', '/w', ?, '1', 1, 1)", (session, session))
    connection.execute(
        "INSERT INTO message VALUES (?, ?, 1, 1, ?)", (f"m{session}", session, json.dumps({"role": "user", "time": {"created": 1}}))
    )
    part = json.dumps({"type": "text", "text": f"question of {session}"})
    connection.execute("INSERT INTO part VALUES (?, ?, ?, 1, 1, ?)", (f"p{session}", f"m{session}", session, part))
    connection.commit()


async def titles(store: Store, host: str | None = None) -> list[tuple[str, str, int]]:
    found = (await store.conversations.list(host=host)).items
    return sorted((one.host, one.title, one.message_count) for one in found)
