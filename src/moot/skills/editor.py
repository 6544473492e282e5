"""Skills that the user writes: create them, and change their description and instructions."""

from __future__ import annotations

from pathlib import Path

from moot.config.changes import with_front_matter
from moot.config.home import lock_file, read_text, write_atomically
from moot.errors import ConfigError, UsageError
from moot.skills.content import DESCRIPTION_CHARACTERS, is_name, read_document
from moot.skills.decisions import accept
from moot.skills.library import find_skill
from moot.skills.roots import FOLDER
from moot.types.skill import SKILL_FILE, Skill


def create_skill(root: Path, name: str, description: str, body: str) -> Path:
    """Write a new skill below a folder of skills, and return its folder. Raise ConfigError, naming the field, if a value is invalid.

    This function blocks.
    """
    if not is_name(name):
        message = f"Invalid skill name {name!r}."
        raise _invalid("name", message, "Use 1 to 64 lowercase letters, digits and single hyphens.")
    folder = root / name
    if folder.exists():
        raise _invalid("name", f"{str(folder)!r} already exists.", f"moot skills show {name}")
    text = _checked("", name, folder / SKILL_FILE, description, body)
    folder.mkdir(parents=True)
    write_atomically(folder / SKILL_FILE, text.encode())
    return folder


def change_skill(home: Path, skill: Skill, description: str, body: str) -> None:
    """Change the description and instructions of a skill in moot's home. Other fields and files are kept. This function blocks.

    The new content is accepted if the old content was. Raise UsageError if the skill is in another folder, ConfigError, naming the field,
    if a value is invalid.
    """
    if skill.place != "home":
        raise UsageError(f"The skill {skill.name!r} is not in moot's home directory, but in {skill.folder}.", fix="Edit its SKILL.md.")
    path = skill.folder / SKILL_FILE
    with lock_file(home / FOLDER / ".install"):
        text = _checked(read_text(path, mark=True), skill.name, path, description, body)
        write_atomically(path, text.encode())
    changed = find_skill(home, skill.name)
    if changed.status == "changed" and skill.status != "changed":
        accept(home, changed)


def _checked(before: str, name: str, path: Path, description: str, body: str) -> str:
    """Return the new text of a `SKILL.md`."""
    if not description.strip():
        raise _invalid("description", "The description is missing.", "Say what the skill does, and when to use it.")
    if len(description) > DESCRIPTION_CHARACTERS:
        raise _invalid("description", f"The description has more than {DESCRIPTION_CHARACTERS} characters.", "Shorten it.")
    if not body.strip():
        raise _invalid("body", "The instructions are missing.", "Describe the steps.")
    text = with_front_matter(before, {"name": name, "description": " ".join(description.split()), "instructions": body}, path)
    if errors := [finding for finding in read_document(text, name).findings if finding.is_error]:
        raise ConfigError(errors[0].text, file=str(path), line=errors[0].line)
    return text


def _invalid(field: str, message: str, fix: str) -> ConfigError:
    error = ConfigError(message, fix=fix)
    error.problems = ((f"body.{field}", f"{message} {fix}"),)
    return error
