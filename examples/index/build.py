"""Write index.json and the archives that it names. Run it after each change of a skill or an agent."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

from moot.config.agents.files import read_agent
from moot.skills.content import read_document

HERE = Path(__file__).parent
EPOCH = (1980, 1, 1, 0, 0, 0)
"""A fixed time, so that the same content gives the same archive and hash."""


def archive(skill: Path) -> Path:
    target = HERE / f"{skill.name}.zip"
    with zipfile.ZipFile(target, "w") as packed:
        for path in sorted(path for path in skill.rglob("*") if path.is_file()):
            info = zipfile.ZipInfo(f"{skill.name}/{path.relative_to(skill).as_posix()}", EPOCH)
            info.external_attr = 0o644 << 16
            packed.writestr(info, path.read_bytes())
    return target


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def index() -> dict[str, Any]:
    skills: list[dict[str, Any]] = []
    for folder in sorted((HERE / "skills").iterdir()):
        text, packed = read_document((folder / "SKILL.md").read_text(), folder.name), archive(folder)
        facts = {"name": text.name, "description": text.description, "category": text.category, "tags": [*text.tags]}
        skills.append({**facts, "archive": packed.name, "sha256": hash_of(packed)})
    agents: list[dict[str, Any]] = []
    for path in sorted((HERE / "agents").iterdir()):
        agent, _ = read_agent(path, path.read_text())
        agents.append({"name": agent.name, "description": agent.description, "file": f"agents/{path.name}", "sha256": hash_of(path)})
    return {"version": 1, "name": "Examples", "skills": skills, "agents": agents}


if __name__ == "__main__":
    (HERE / "index.json").write_text(json.dumps(index(), indent=2) + "\n")
