"""The skills available in a folder: found, checked, combined with the user's decisions about them, filtered, and as JSON."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moot.config.home import read_text
from moot.config.plugins.content import digest_of, entries, stamps_of
from moot.config.plugins.layout import with_folder
from moot.config.trust import trusted_files
from moot.errors import ConfigError, NotFound, Refused
from moot.guard.hidden import spelled_out
from moot.guard.roots import is_below
from moot.plugins.registry import hint
from moot.skills.content import read_document
from moot.skills.decisions import decisions, key_of
from moot.skills.roots import Root, roots_of
from moot.types.canonical import Json, JsonObject
from moot.types.skill import SKILL_FILE, Finding, Skill, SkillDecision, SkillSelection, SkillStatus, SkillText

SKILLS = 500
"""Maximum number of skills per folder."""
_KEPT = 1_000
"""Maximum number of skills whose content is cached in memory."""


@dataclass(slots=True)
class _Read:
    """A skill as it was read, and the state of its files."""

    stamps: object
    text: SkillText
    files: tuple[str, ...]
    problem: str = ""
    digest: str = ""


_cache: OrderedDict[str, _Read] = OrderedDict()


def find_skills(home: Path, folder: str = "", *, is_local: bool = True, boundary: str = "", hashed: bool = False) -> list[Skill]:
    """Return all skills for a folder, the nearest first, with their status. Blocks; unchanged files are not read again.

    Of usable skills with the same name, the nearest is used. If `hashed` is set, the digest of each one is computed.
    """
    decided, trusted = decisions(home), trusted_files(home)
    found: list[Skill] = []
    places: set[Path] = set()
    for root in roots_of(home, folder, is_local=is_local, boundary=boundary):
        for path in _folders(root):
            if path not in places:
                places.add(path)
                found.append(_skill(home, root, path, decided.get(key_of(home, path), SkillDecision()), trusted, hashed=hashed))
    used: set[str] = set()
    for at, skill in enumerate(found):
        if skill.status not in ("offered", "enabled", "disabled"):
            continue
        if skill.name in used:
            found[at] = replace(skill, status="shadowed", problem="A closer skill has the same name.")
        used.add(skill.name)
    return found


def find_skill(home: Path, name: str, folder: str = "") -> Skill:
    """Return the usable skill with this name, or else the nearest unusable one. Its digest is computed. Raise NotFound if there is none."""
    found = find_skills(home, folder, hashed=True)
    named = [skill for skill in found if skill.name == name or skill.folder.name == name]
    if not named:
        raise NotFound(f"Skill {name!r} not found.{hint(name, [skill.name for skill in found])}", fix="moot skills list")
    return next((skill for skill in named if skill.status in ("offered", "enabled", "disabled")), named[0])


def read_skill(path: Path) -> Skill:
    """Return the skill in this folder, with its digest. Decisions about it are ignored."""
    root = Root(str(path.parent), "home")
    return _skill(path.parent, root, Path(os.path.realpath(path)), SkillDecision(), {}, hashed=True)


def select(skills: Sequence[Skill], agent: Sequence[str] | None, conversation: Sequence[str] | None) -> SkillSelection:
    """Return the skills for a step.

    `agent` limits the selection to these skills; None = all. `conversation` names skills to enable, in this order; () turns skills off.
    """
    if conversation is not None and not conversation:
        return SkillSelection()
    usable = {skill.name: skill for skill in skills if skill.is_usable}
    allowed = list(usable) if agent is None else [name for name in agent if name in usable]
    chosen = [usable[name] for name in conversation or () if name in usable]
    standing = [usable[name] for name in allowed if usable[name].status == "enabled"]
    standing.sort(key=lambda skill: -skill.decision.priority)
    enabled = tuple({skill.name: skill for skill in (*chosen, *standing)}.values())
    return SkillSelection(tuple(usable[name] for name in allowed if usable[name] not in enabled), enabled)


def _folders(root: Root) -> list[Path]:
    """Return the real paths of the folders with a `SKILL.md`. In a project, links that lead out of it are skipped."""
    if root.plugin:
        return [Path(os.path.realpath(root.path))]
    try:
        with os.scandir(root.path) as listed:
            names = sorted(entry.name for entry in listed if not entry.name.startswith("."))[:SKILLS]
    except OSError:
        return []
    paths = (f"{root.path}/{name}" for name in names if os.path.isfile(f"{root.path}/{name}/{SKILL_FILE}"))  # noqa: PTH113
    return [Path(os.path.realpath(path)) for path in paths if not root.boundary or is_below(path, root.boundary)]


def _skill(home: Path, root: Root, path: Path, decision: SkillDecision, trusted: dict[str, str], *, hashed: bool) -> Skill:
    key = str(path / SKILL_FILE)
    read = _content(root, path)
    if not read.problem and (hashed or decision.digest or (root.place == "project" and key in trusted)) and not read.digest:
        _hash(read, path)
    status, problem = _status(root, read, decision, trusted.get(key))
    name = f"{root.plugin}:{read.text.name or path.name}" if root.plugin else read.text.name or path.name
    return Skill(name, path, root.place, read.text, read.files, status, problem, decision, read.digest)


def _hash(read: _Read, path: Path) -> None:
    """Compute the digest. Set a problem if a file has changed since the text was read."""
    try:
        digest = digest_of(path)
        if stamps_of(entries(path)) != read.stamps:
            raise Refused("It was changed while it was being read.")
        read.digest = digest
    except (Refused, OSError) as error:
        read.problem = str(error)
        _cache.pop(str(path), None)  # read it again the next time


def _status(root: Root, read: _Read, decision: SkillDecision, trusted: str | None) -> tuple[SkillStatus, str]:
    """Return the status of a skill, and the reason if it can't be used."""
    error = next((finding for finding in read.text.findings if finding.is_error), None)
    if read.problem or error is not None:
        return "invalid", read.problem or (f"Line {error.line}: {error.text}" if error is not None else "")
    if root.place == "project" and (trusted is None or trusted != read.digest):
        why = "It has changed since it was trusted." if trusted is not None else "It is not trusted."
        return "untrusted", f"{why} Review it, then run 'moot trust {root.boundary}'."
    if decision.digest and decision.digest != read.digest:
        return "changed", "It has changed since it was accepted. Review it, then run 'moot skills accept'."
    return decision.use, ""


def _content(root: Root, path: Path) -> _Read:
    """Return a skill's text and the names of its files. They are cached until one of its files changes."""
    try:
        listed = entries(path)
    except (Refused, OSError) as error:
        return _Read(None, SkillText(path.name), (), str(error))
    stamps = stamps_of(listed)
    known = _cache.get(str(path))
    if known is not None and known.stamps == stamps:
        return known
    files = tuple(entry.path for entry in listed if entry.path != SKILL_FILE)
    if any(entry.path == SKILL_FILE and entry.is_link for entry in listed):
        found = _Read(stamps, SkillText(path.name), files, f"{SKILL_FILE} is a link, which is not followed.")
    else:
        found = _Read(stamps, _text(path, root), files)
    _cache.pop(str(path), None)
    _cache[str(path)] = found
    while len(_cache) > _KEPT:
        _cache.popitem(last=False)
    return found


def _text(path: Path, root: Root) -> SkillText:
    try:
        text = read_text(path / SKILL_FILE, mark=False)
        text = with_folder(text, Path(root.boundary)) if root.plugin else text
        return read_document(text, path.name, lenient=root.is_lenient)
    except ConfigError as error:
        return SkillText(path.name, findings=(Finding(SKILL_FILE, error.line or 1, error.message),))


REFERENCE = "REFERENCE.md"


def skills_like(skills: Iterable[Skill], query: str = "", category: str = "", tag: str = "") -> list[Skill]:
    """Return the skills with this category and tag (empty = any) whose facts contain each word of the query, ignoring case."""
    words = query.casefold().split()
    return [
        skill
        for skill in skills
        if (not category or skill.text.category.casefold() == category.casefold())
        and (not tag or tag.casefold() in (each.casefold() for each in skill.text.tags))
        and all(word in _searched(skill) for word in words)
    ]


def _searched(skill: Skill) -> str:
    return " ".join((skill.name, skill.text.description, skill.text.category, *skill.text.tags)).casefold()


def skill_json(skill: Skill) -> JsonObject:
    """Return the facts about a skill, without its instructions. Hidden characters are spelled out."""
    text = skill.text
    return {
        "name": skill.name,
        "description": spelled_out(text.description),
        "status": skill.status,
        "problem": skill.problem,
        "place": skill.place,
        "folder": str(skill.folder),
        "category": text.category,
        "tags": list[Json](text.tags),
        "icon": text.icon,
        "forked_from": text.forked_from,
        "license": text.license,
        "compatibility": text.compatibility,
        "allowed_tools": list[Json](text.allowed_tools),
        "metadata": text.metadata,
        "files": list[Json](skill.files),
        "has_reference": REFERENCE in skill.files,
        "scripts": skill.decision.scripts,
        "script_files": list[Json](skill.scripts),
        "priority": skill.decision.priority,
        "source": skill.decision.source,
        "used_at": skill.decision.used_at,
        "hides_text": any(finding.hides for finding in text.findings),
        "digest": skill.digest,
    }
