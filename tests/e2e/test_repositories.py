"""Statistics by repository: conversations without a project are grouped by the git repository of their folder."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make


@pytest.fixture
def moot(tmp_path: Path) -> Iterator[MootProcess]:
    (tmp_path / "user").mkdir()
    process = make(tmp_path / "user", "models: {}\n")
    yield process
    process.close()


def session(home: Path, name: str, directory: Path) -> None:
    """Write a session of Claude Code in that directory, with one answer of 1,000 tokens."""
    lines: list[dict[str, Any]] = [
        {"type": "user", "uuid": f"{name}-u", "parentUuid": None, "message": {"role": "user", "content": f"question {name}"}},
        {
            "type": "assistant",
            "uuid": f"{name}-a",
            "parentUuid": f"{name}-u",
            "message": {
                "id": f"msg_{name}",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": [{"type": "text", "text": f"answer {name}"}],
                "usage": {"input_tokens": 1000, "output_tokens": 10},
            },
        },
    ]
    id = f"00000000-0000-4000-8000-{int(name):012}"
    path = home / ".claude" / "projects" / "-x" / f"{id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    fixed = {"isSidechain": False, "sessionId": id, "cwd": str(directory), "timestamp": "2026-08-01T10:00:00.000Z"}
    path.write_text("".join(json.dumps({**line, **fixed}) + "\n" for line in lines))


def git(*words: str, cwd: Path) -> None:
    subprocess.run(("git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words), cwd=cwd, check=True, capture_output=True)


def by_project(moot: MootProcess) -> dict[str, int]:
    found = json.loads(moot.run("stats", "--by", "project", "--json").stdout)
    return {one["name"]: one["input"] for one in found["projects"]}


def test_folders_of_a_repository_and_its_worktrees_are_one_group(moot: MootProcess) -> None:
    home = moot.home.parent
    shop, other, plain = home / "code" / "shop", home / "work" / "shop", home / "notes"
    for repository in (shop, other):
        (repository / "src").mkdir(parents=True)
        git("init", "-q", cwd=repository)
        git("commit", "-q", "--allow-empty", "-m", "first", cwd=repository)
    plain.mkdir()
    git("worktree", "add", "-q", str(home / "trees" / "fix"), cwd=shop)
    for number, folder in enumerate((shop, shop / "src", home / "trees" / "fix", shop / "gone", other, plain, home / "gone"), 1):
        session(home, str(number), folder)
    assert moot.run("import", "--all").returncode == 0
    assert by_project(moot) == {"code/shop": 4000, "work/shop": 1000, "notes": 1000, "gone": 1000}
    assert moot.run("projects", "add", "Shop", "--root", str(shop)).returncode == 0
    assert by_project(moot)["code/shop"] == 4000, "existing conversations keep their group"


def test_a_moved_folder_is_followed_when_asked(moot: MootProcess) -> None:
    home = moot.home.parent
    old, new = home / "old", home / "new"
    (old / "src").mkdir(parents=True)
    git("init", "-q", cwd=old)
    session(home, "1", old)
    session(home, "2", old / "src")
    assert moot.run("import", "--all").returncode == 0
    assert by_project(moot) == {"old": 2000}
    old.rename(new)
    session(home, "3", new)
    assert moot.run("import", "--all").returncode == 0
    assert by_project(moot) == {"old": 2000, "new": 1000}
    shown = moot.run("projects", "move", str(old), str(new), "--dry-run")
    assert b"2 conversations" in shown.stdout + shown.stderr and by_project(moot)["old"] == 2000
    assert moot.run("projects", "move", str(old), str(new)).returncode == 0
    assert by_project(moot) == {"new": 3000}
    listed = json.loads(moot.run("chat", "list", "--json").stdout)["data"]
    assert {Path(one["directory"]).relative_to(home) for one in listed} == {Path("new"), Path("new/src")}
    missing = moot.run("projects", "move", str(home / "nowhere"), str(new))
    assert missing.returncode == 0 and b"0 conversations" in missing.stdout + missing.stderr
