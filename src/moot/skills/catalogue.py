"""Skills as JSON, and filtering them by text, category and tag."""

from __future__ import annotations

from collections.abc import Iterable

from moot.guard.hidden import spelled_out
from moot.types.canonical import Json, JsonObject
from moot.types.skill import Skill

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
