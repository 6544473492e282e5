"""Decisions of a person about skills, as a file in moot's home: `skills/skills.json`.

A decision is bound to the content that it was made about. If a skill changes afterwards, it is not used until a person accepts it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from moot.config.home import lock_file, read_text, write_atomically
from moot.errors import Refused
from moot.guard.paths import Stamp, stamp
from moot.skills.roots import FOLDER
from moot.types.canonical import Json, JsonObject, dumps, loads_object
from moot.types.skill import ScriptPolicy, Skill, SkillDecision, SkillUse

FILE = "skills.json"
_VERSION = 1
_UNDECIDED = SkillDecision()

_USES: dict[str, SkillUse] = {"offered": "offered", "enabled": "enabled", "disabled": "disabled"}
_POLICIES: dict[str, ScriptPolicy] = {"never": "never", "ask": "ask", "allow": "allow"}

_read: dict[Path, tuple[Stamp, dict[str, SkillDecision]]] = {}


def decisions(home: Path) -> dict[str, SkillDecision]:
    """Return the decisions by key. An unchanged file is not read again; an unreadable one decides nothing."""
    path = _path(home)
    try:
        now = stamp(path.stat())
    except OSError:
        return {}
    known = _read.get(home)
    if known is None or known[0] != now:
        known = _read[home] = now, _parsed(read_text(path))
    return known[1]


def key_of(home: Path, folder: Path) -> str:
    """Return the key of a skill: its name for one in the home, which may be moved, else its path."""
    return folder.name if folder.parent == (home / FOLDER).resolve() else str(folder)


def decide(home: Path, key: str, change: Callable[[SkillDecision], SkillDecision | None]) -> SkillDecision:
    """Store a changed decision about a skill and return it; None removes it. Raise ConfigError if the file can't be written."""
    path = _path(home)
    with lock_file(path):
        current = dict(_parsed(read_text(path)))
        found = change(current.pop(key, _UNDECIDED))
        if found is not None and found != _UNDECIDED:
            current[key] = found
        skills: JsonObject = {name: decision.to_json() for name, decision in sorted(current.items())}
        write_atomically(path, dumps({"version": _VERSION, "skills": skills}))
    return found or _UNDECIDED


def mark_used(home: Path, key: str, at: int) -> None:
    """Remember when a skill was activated, in ms."""
    decide(home, key, lambda decision: replace(decision, used_at=at))


def set_use(home: Path, skill: Skill, use: SkillUse, priority: int | None = None) -> None:
    """Offer, enable or disable a skill with its current content, whose digest is known. Raise Refused if it can't be used."""
    if use != "disabled":
        _refuse_unusable(skill)

    def change(decision: SkillDecision) -> SkillDecision:
        order = decision.priority if priority is None else priority
        return replace(decision, use=use, priority=order, digest=decision.digest or skill.digest)

    decide(home, key_of(home, skill.folder), change)


def set_scripts(home: Path, skill: Skill, policy: ScriptPolicy) -> None:
    """Set whether the scripts of a skill with its current content may run. Raise Refused if it can't be used."""
    if policy != "never":
        _refuse_unusable(skill)

    def change(decision: SkillDecision) -> SkillDecision:
        return replace(decision, scripts=policy, digest=decision.digest or skill.digest)

    decide(home, key_of(home, skill.folder), change)


def accept(home: Path, skill: Skill) -> None:
    """Accept the current content of a skill that has changed. Its scripts ask again, even if they were allowed before."""

    def change(decision: SkillDecision) -> SkillDecision:
        return replace(decision, digest=skill.digest, scripts="never" if decision.scripts == "never" else "ask")

    decide(home, key_of(home, skill.folder), change)


def _refuse_unusable(skill: Skill) -> None:
    if skill.status in ("changed", "untrusted", "invalid"):
        raise Refused(f"The skill {skill.name!r} can't be used: {skill.problem}")


def _path(home: Path) -> Path:
    return home / FOLDER / FILE


def _parsed(text: str) -> dict[str, SkillDecision]:
    try:
        found = loads_object(text.encode()) if text else {}
    except ValueError:
        return {}
    skills = found.get("skills")
    return {key: _decision(value) for key, value in skills.items() if isinstance(value, dict)} if isinstance(skills, dict) else {}


def _decision(value: JsonObject) -> SkillDecision:
    """Parse any object. Unknown values become those that allow least."""
    source = value.get("source")
    return SkillDecision(
        _USES.get(str(value.get("use")), "disabled"),
        _integer(value.get("priority")),
        _POLICIES.get(str(value.get("scripts")), "never"),
        str(value.get("digest") or ""),
        source if isinstance(source, dict) else {},
        _integer(value.get("used_at")),
    )


def _integer(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
