"""The user's decisions about skills, stored in moot's home in `skills/skills.json`.

A decision applies only to the content for which it was made. If a skill changes afterwards, it is not used until the user accepts it.
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
    """Return the decisions by key; none if the file is missing or invalid. Raise ConfigError if the file can't be read."""
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
    """Return the key of a skill: its name if it is in moot's home, which may be moved, otherwise its path."""
    return folder.name if folder.parent == (home / FOLDER).resolve() else str(folder)


def decide(home: Path, key: str, change: Callable[[SkillDecision], SkillDecision | None]) -> SkillDecision:
    """Change the decision about a skill and return the new one. If `change` returns None, remove it. Raise ConfigError if writing fails."""
    path = _path(home)
    with lock_file(path):
        current = dict(_parsed(read_text(path)))
        found = change(current.pop(key, _UNDECIDED))
        if found is not None and found != _UNDECIDED:
            current[key] = found
        skills: JsonObject = {name: decision.to_json() for name, decision in sorted(current.items())}
        write_atomically(path, dumps({"version": _VERSION, "skills": skills}))
    return found or _UNDECIDED


def forget_below(home: Path, folder: Path) -> None:
    """Delete the decisions about skills in a folder that was deleted."""
    prefix = f"{folder.resolve()}/"
    for key in [key for key in decisions(home) if key.startswith(prefix)]:
        decide(home, key, lambda _: None)


def mark_used(home: Path, key: str, at: int) -> None:
    """Store the time, in ms, at which a skill was activated."""
    decide(home, key, lambda decision: replace(decision, used_at=at))


def set_use(home: Path, skill: Skill, use: SkillUse, priority: int | None = None) -> None:
    """Offer, enable or disable a skill with its current content. Its digest must be known. Raise Refused if it can't be used."""
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
    """Accept the current content of a skill that has changed. Its scripts need approval again, even if they were allowed before."""

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
    """Parse a stored decision. Unknown values become the most restrictive ones."""
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
