"""Writing skills: installing, updating and removing them, and creating and changing the user's own.

A package is read, shown and accepted before anything is written.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from anyio import to_thread

from moot.config.changes import with_front_matter
from moot.config.home import lock_file, read_text, write_atomically
from moot.config.plugins.content import SKIPPED, Files, digest_of, digest_of_files
from moot.errors import ConfigError, NotFound, Refused, UsageError
from moot.guard.urls import Policy
from moot.skills.content import DESCRIPTION_CHARACTERS, FILE_BYTES, hidden_findings, is_name, read_document
from moot.skills.decisions import accept, decide, key_of
from moot.skills.library import find_skill
from moot.skills.market import content_of, entry_named, fetched, read_indexes
from moot.skills.package import (
    ARCHIVE_BYTES,
    read_archive,
    read_commit,
    read_folder,
    skills_in,
    text_of,
    write_files,
)
from moot.skills.roots import FOLDER
from moot.types.canonical import JsonObject
from moot.types.skill import SKILL_FILE, Finding, Skill, SkillDecision, SkillText


@dataclass(frozen=True, slots=True)
class Candidate:
    """A skill of a package, before it is installed."""

    name: str
    files: Files
    text: SkillText
    findings: tuple[Finding, ...]
    digest: str
    source: JsonObject


@dataclass(frozen=True, slots=True)
class Changes:
    """The paths of files that an update changes."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]


async def read_source(source: str, base: Path, *, commit: str = "", path: str = "", indexes: Sequence[str] = ()) -> list[Candidate]:
    """Return the skills in a folder, an archive, the URL of an archive, or a Git commit. Raise NotFound if there are none.

    If `source` is the name of a skill and not an existing path, the skill is looked up in `indexes`. The errors of `read_package` are also
    raised.
    """
    if indexes and is_name(source) and not await anyio.Path(base, source).exists():
        return [await read_entry(source, indexes)]
    return await to_thread.run_sync(candidates, *await read_package(source, base, commit=commit, path=path))


async def read_package(
    source: str, base: Path, *, commit: str = "", path: str = "", skipped: Collection[str] = SKIPPED
) -> tuple[Files, str, JsonObject]:
    """Return the files of a package: a folder, an archive (a file or a URL) or a Git commit. If `path` is set, only those in that folder.

    The second value is the name of the folder that was read, empty for the top of an archive or commit. The third describes the source.
    Raise NotFound if the source or folder does not exist, Refused if it can't be read, UsageError if it is invalid.
    """
    path = path.strip("/")
    if commit:
        place = base / source
        if place.is_dir() and not any((place / name).exists() for name in (".git", "HEAD")):
            raise NotFound(f"{str(place)!r} is not a Git repository.", fix="Omit --commit to use the folder as it is.")
        files = await read_commit(str(place) if place.is_dir() else source, commit, path, skipped)
        return files, path.rpartition("/")[2], {"kind": "git", "url": source, "commit": commit, "path": path}
    if source.startswith(("https://", "http://")):
        data = await fetched(source, Policy(bytes=ARCHIVE_BYTES))
        files = await to_thread.run_sync(read_archive, data, repr(source), skipped)
        return inside(files, path, source), path.rpartition("/")[2], {"kind": "archive", "url": source}
    return await to_thread.run_sync(_read_local, base, source, path, skipped)


async def read_entry(name: str, indexes: Sequence[str]) -> Candidate:
    """Return the skill with this name from the indexes. Raise NotFound if none has it, Refused if it can't be read."""
    entry = entry_named(await read_indexes(indexes), "skill", name)
    files = await to_thread.run_sync(read_archive, await content_of(entry), repr(entry.location))
    facts: JsonObject = {"kind": "index", "url": entry.index, "sha256": entry.sha256}
    (found,) = chosen(await to_thread.run_sync(candidates, files, "", facts), (name,))
    return found


def _read_local(base: Path, source: str, path: str, skipped: Collection[str]) -> tuple[Files, str, JsonObject]:
    place = (base / Path(source).expanduser()).absolute()
    if place.is_dir():
        folder = place / path
        if not folder.is_dir() or not folder.resolve().is_relative_to(place.resolve()):
            raise NotFound(f"{str(place)!r} has no folder {path!r}.")
        return read_folder(folder, skipped), folder.name, {"kind": "folder", "path": str(place)}
    if not place.is_file():
        raise NotFound(
            f"{str(place)!r} does not exist.", fix="Specify a folder, an archive or a URL. For a Git repository, add --commit HASH."
        )
    if place.stat().st_size > ARCHIVE_BYTES:
        raise Refused(f"{str(place)!r} is larger than {ARCHIVE_BYTES >> 20} MiB.")
    files = read_archive(place.read_bytes(), repr(str(place)), skipped)
    return inside(files, path, str(place)), path.rpartition("/")[2], {"kind": "archive", "path": str(place)}


def inside(files: Files, path: str, source: str) -> Files:
    """Return the files of a folder in an archive. Raise NotFound if there are none."""
    found = {name.removeprefix(f"{path}/"): data for name, data in files.items() if name.startswith(f"{path}/")} if path else files
    if not found:
        raise NotFound(f"{source!r} has no folder {path!r}.")
    return found


def candidates(files: Files, folder: str, source: JsonObject) -> list[Candidate]:
    """Return the checked skills of a package. Raise NotFound if there are none."""
    found: list[Candidate] = []
    for name, own in sorted(skills_in(files, folder).items()):
        text = read_document(text_of(own, SKILL_FILE), name)
        findings = list(text.findings)
        for path, data in own.items():
            if path != SKILL_FILE and len(data) <= FILE_BYTES and b"\0" not in data:
                findings += hidden_findings(path, text_of(own, path))
        found.append(Candidate(name, own, text, tuple(findings), digest_of_files(own), source))
    return found


def chosen(found: list[Candidate], names: tuple[str, ...]) -> list[Candidate]:
    """Return the candidates with these names, or the only candidate. Raise NotFound for an unknown name, UsageError if names are needed."""
    known = {candidate.name: candidate for candidate in found}
    if not names and len(found) > 1:
        raise UsageError(f"The package contains {len(found)} skills: {', '.join(known)}.", fix="Choose with --skill NAME, or use --all.")
    if unknown := next((name for name in names if name not in known), None):
        raise NotFound(f"The package has no skill {unknown!r}.", fix=f"It contains: {', '.join(known)}.")
    return [known[name] for name in names] or found


def installed_path(home: Path, name: str) -> Path:
    """Return the folder of a skill in moot's home."""
    return home / FOLDER / name


def install(home: Path, candidate: Candidate, *, update: bool = False) -> Path:
    """Write a skill to moot's home and accept exactly this content. Raise Refused if it has mistakes, UsageError if it exists. Blocks.

    An update keeps the user's decisions about the skill, but scripts that were allowed need approval again.
    """
    check_usable(candidate)
    folder = installed_path(home, candidate.name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock_file(home / FOLDER / ".install"):
        if os.path.lexists(folder) and not update:
            raise UsageError(
                f"The skill {candidate.name!r} already exists.",
                fix=f"Update it with 'moot skills update {candidate.name}', or remove it first.",
            )
        new, old = (folder.with_name(f".{candidate.name}.{kind}") for kind in ("new", "old"))
        for left in (new, old):
            shutil.rmtree(left, ignore_errors=True)
        write_files(candidate.files, new)
        if digest_of(new) != candidate.digest:
            shutil.rmtree(new)
            raise Refused(f"The files written for {candidate.name!r} differ from the package.", fix="Check the file system.")
        if os.path.lexists(folder):
            folder.rename(old)
        new.rename(folder)
        shutil.rmtree(old, ignore_errors=True)

    def change(decision: SkillDecision) -> SkillDecision:
        scripts = "never" if decision.scripts == "never" else "ask"
        return replace(decision, digest=candidate.digest, scripts=scripts, source=candidate.source)

    decide(home, candidate.name, change)
    return folder


def check_usable(candidate: Candidate) -> None:
    """Raise Refused if a skill has mistakes."""
    if (error := next((finding for finding in candidate.findings if finding.is_error), None)) is not None:
        raise Refused(f"The skill {candidate.name!r} has a mistake: {error.file}:{error.line}: {error.text}", fix="Nothing was installed.")


def changes(skill: Skill, candidate: Candidate) -> Changes:
    """Return the changes that an update makes to an installed skill. Raise Refused if its files can't be read. Blocks."""
    old, new = read_folder(skill.folder), candidate.files
    return Changes(
        tuple(path for path in new if path not in old),
        tuple(path for path in new if path in old and old[path] != new[path]),
        tuple(path for path in old if path not in new),
    )


def remove(home: Path, skill: Skill) -> None:
    """Delete a skill from moot's home, and the decisions about it. Raise UsageError if it is in another folder. Blocks."""
    folder = installed_path(home, skill.folder.name)
    if skill.place != "home" or not os.path.lexists(folder):
        raise UsageError(
            f"The skill {skill.name!r} is not in moot's home directory, but in {skill.folder}.",
            fix="Disable the skill with 'moot skills disable', or delete its folder.",
        )
    with lock_file(home / FOLDER / ".install"):
        if folder.is_symlink():
            folder.unlink()
        else:
            shutil.rmtree(folder)
    decide(home, key_of(home, skill.folder), lambda _: None)


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
