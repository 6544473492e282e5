"""The files of a skill: reading, copying and checking them. Links are never followed."""

from __future__ import annotations

from pathlib import Path

from moot.config.plugins.content import BYTES, PROGRAMS, entries
from moot.errors import NotFound, Refused
from moot.guard.paths import Paths
from moot.skills.document import hidden_findings
from moot.types.skill import SKILL_FILE, Finding

FILE_BYTES = 1 << 20
"""Maximum size of a file that is shown to a model, in bytes."""


def read_file(folder: Path, name: str, limit: int = FILE_BYTES) -> bytes:
    """Return a file of a skill. Raise NotFound if it does not exist, Refused if it is too large, a link, or outside of the folder."""
    if name.startswith("/") or ".." in name.split("/"):
        raise Refused(f"{name!r} is not a file of the skill.", fix="Use a path in the skill's folder, such as references/guide.md.")
    if not (folder / name).exists():
        raise NotFound(f"The skill has no file {name!r}.")
    with Paths((folder,), folder, links=False).open_read(name) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Refused(f"{name!r} is larger than {limit >> 10} KiB.")
    return data


def copy_to(folder: Path, target: Path) -> None:
    """Copy the files of a skill into a new folder. Raise Refused if one is a link."""
    target.mkdir(parents=True)
    for entry in entries(folder):
        if entry.is_link:
            raise Refused(f"{entry.path!r} is a link. Links are not allowed in installed skills and in skills with scripts.")
        place = target / entry.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data := read_file(folder, entry.path, BYTES))
        place.chmod(0o700 if data.startswith(PROGRAMS) else 0o600)


def check_files(folder: Path) -> list[Finding]:
    """Return the findings about the files next to `SKILL.md`: links and hidden text. Raise Refused or OSError if a file can't be read."""
    found: list[Finding] = []
    for entry in entries(folder):
        if entry.is_link:
            found.append(Finding(entry.path, 1, "A link. Links in skills are not followed.", is_error=False))
        elif entry.path != SKILL_FILE and entry.size <= FILE_BYTES:
            data = read_file(folder, entry.path)
            if b"\0" not in data:
                found += hidden_findings(entry.path, data.decode("utf-8", "replace"))
    return found
