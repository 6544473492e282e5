"""`moot upgrade-check`: what an upgrade would change, without changing anything."""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from moot.store.migrations import newest

GOLDEN = Path(__file__).parents[1] / "recorded" / "schemas"


@pytest.fixture
def moot(tmp_path: Path) -> MootProcess:
    return make(tmp_path)


def place(moot: MootProcess, schema: int) -> Path:
    database = moot.home / "data" / "moot.db"
    database.parent.mkdir()
    database.write_bytes(gzip.decompress((GOLDEN / f"{schema}.db.gz").read_bytes()))
    return database


def checked(moot: MootProcess) -> tuple[int, dict[str, Any], dict[str, list[str]]]:
    """Return the exit code, the output, and the states of its steps by name."""
    ended = moot.run("upgrade-check", "--json")
    found = json.loads(ended.stdout)
    states: dict[str, list[str]] = {}
    for step in found["steps"]:
        states.setdefault(step["name"], []).append(step["state"])
    assert found["exit_code"] == ended.returncode
    return ended.returncode, found, states


def test_an_old_database_is_described_and_not_changed(moot: MootProcess) -> None:
    database = place(moot, 3)
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    code, found, states = checked(moot)
    assert (code, found["schema"], found["newest_schema"], len(found["migrations"])) == (0, 3, newest(), newest() - 3)
    assert states["database"] == ["change"] and states["backup"] == ["change"] and states["server"] == ["ok"]
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert not (database.parent / "backups").exists()
    text = moot.run("upgrade-check").stdout.decode()
    assert f"schema 3 becomes {newest()} at the next start" in text and "moot backup" in text


def test_a_new_home_needs_nothing(moot: MootProcess) -> None:
    code, found, states = checked(moot)
    assert (code, found["schema"], found["migrations"]) == (0, None, []) and states["database"] == ["ok"]


@pytest.mark.damaged
def test_a_database_of_a_newer_version_or_of_another_program_blocks(moot: MootProcess) -> None:
    database = place(moot, 3)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(f"PRAGMA user_version = {newest() + 1}")
    code, found, states = checked(moot)
    assert (code, found["schema"], states["database"]) == (2, newest() + 1, ["blocked"])
    database.write_bytes(b"not a database, but long enough to look at" * 100)
    code, found, states = checked(moot)
    assert (code, found["schema"], states["database"]) == (2, None, ["blocked"])


def test_unknown_keys_and_keys_without_effect_need_attention(moot: MootProcess) -> None:
    (moot.home / "config.yaml").write_text("server:\n  prot: 80\n")
    code, found, states = checked(moot)
    assert (code, states["configuration"]) == (1, ["attention"]) and "prot" in str(found["steps"])
    (moot.home / "config.yaml").write_text("agents:\n  mine:\n    options: {fast: true}\n")
    code, found, states = checked(moot)
    assert code == 1 and set(states["configuration"]) == {"attention"} and "agents.mine.options" in str(found["steps"])
