"""The commands of `moot skills`, and trust in skills of a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def put(root: Path, name: str, text: str = "") -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text or f"---\nname: {name}\ndescription: Use {name}.\n---\nDo it.\n")
    return folder


def test_a_skill_is_added_decided_about_and_removed(moot: Any, home: Path, tmp_path: Path) -> None:
    source = put(tmp_path / "from", "pdf")
    assert moot("skills", "add", "from/pdf").code == 3
    added = moot("skills", "add", "from/pdf", "--yes", "--json")
    assert added.code == 0 and added.json["data"][0]["name"] == "pdf" and "Do it." in added.err
    assert [(row["name"], row["status"]) for row in moot("skills", "list", "--json").json["data"]] == [("pdf", "offered")]
    assert moot("skills", "enable", "pdf", "--priority", "4").code == 0
    shown = moot("skills", "show", "pdf", "--json").json
    assert (shown["status"], shown["priority"], shown["body"]) == ("enabled", 4, "Do it.")
    assert "up to date" in moot("skills", "update", "pdf").err
    (source / "more.md").write_text("x")
    assert "+ more.md" in moot("skills", "update", "pdf", "--yes").err
    (home / "skills/pdf/more.md").write_text("y")
    assert moot("skills").out.splitlines()[1].split()[1] == "changed"
    assert moot("skills", "enable", "pdf").code == 1
    assert moot("skills", "accept", "pdf").code == 0
    assert moot("skills", "disable", "pdf").code == 0
    assert moot("skills", "remove", "pdf", "--yes").code == 0 and not (home / "skills/pdf").exists()


def test_check_names_file_and_line_and_fails_on_errors(moot: Any, tmp_path: Path) -> None:
    assert moot("skills", "new", "good", "--description", 'It says "yes": always').code == 0
    assert moot("skills", "check").code == 0
    bad = put(tmp_path, "bad", "---\nname: Bad\ndescription: d\n---\nx\u200b\n<!-- y -->\n")
    (bad / "a.md").write_text("ok\n\u202e")
    done = moot("skills", "check", "bad")
    assert done.code == 1
    lines = [line.removeprefix(f"{bad}/") for line in done.out.splitlines()]
    assert [line.split(": ")[:2] for line in lines] == [
        ["SKILL.md:2", "error"],
        ["SKILL.md:5", "error"],
        ["SKILL.md:6", "warning"],
        ["a.md:2", "error"],
    ]
    assert moot("skills", "check", "missing").code == 2


def test_skills_of_a_project_count_after_trust_and_until_they_change(moot: Any, tmp_path: Path) -> None:
    folder = put(tmp_path / ".claude/skills", "pdf")
    put(tmp_path / ".agents/skills", "broken", "no front matter")

    def status() -> str:
        return str({row["name"]: row["status"] for row in moot("skills", "list", "--json").json["data"]}["pdf"])

    assert status() == "untrusted"
    trusted = moot("trust")
    assert trusted.code == 0 and "broken was not trusted" in trusted.err
    assert status() == "offered"
    (folder / "scripts").mkdir()
    assert status() == "offered"
    (folder / "scripts/x.sh").write_text("id")
    assert status() == "untrusted"
    assert "has scripts" in moot("trust").err and status() == "offered"
    assert moot("trust", "--revoke").code == 0 and status() == "untrusted"
