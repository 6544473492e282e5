"""Skills: folders with instructions (`SKILL.md`), references and scripts for certain tasks (reference: agentskills.io/specification)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from moot.types.canonical import Json, JsonObject, empty

SKILL_FILE = "SKILL.md"

SkillPlace: TypeAlias = Literal["home", "user", "project", "plugin"]
"""home: moot's own folder · user: folders that several programs of the user share · project: folders of a repository · plugin: installed
plugins."""
SkillUse: TypeAlias = Literal["offered", "enabled", "disabled"]
"""offered: the model sees name and description · enabled: the instructions are in the prompt · disabled: not used."""
ScriptPolicy: TypeAlias = Literal["never", "ask", "allow"]
"""never: scripts don't run · ask: a person approves each run, in every mode · allow: scripts run in the sandbox without approval."""
SkillStatus: TypeAlias = Literal["offered", "enabled", "disabled", "changed", "untrusted", "invalid", "shadowed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation of the specification, or something else that a person should know about a skill."""

    file: str
    """Path in the skill's folder."""
    line: int
    text: str
    is_error: bool = True
    """False if the skill can be used anyway."""
    hides: bool = False
    """True if the file contains text that a person may not see but a model reads."""

    def to_json(self) -> JsonObject:
        level = "error" if self.is_error else "warning"
        return {"file": self.file, "line": self.line, "text": self.text, "level": level, "hides": self.hides}


@dataclass(frozen=True, slots=True)
class SkillDecision:
    """A person's decision about a skill. The decision applies only to the skill's content at that time."""

    use: SkillUse = "offered"
    priority: int = 0
    """Enabled skills with a higher priority come first in the prompt."""
    scripts: ScriptPolicy = "ask"
    digest: str = ""
    """The content that the decision is about; empty = nothing was decided."""
    source: JsonObject = field(default_factory=empty)
    """The source that the skill was installed from; empty = it was not installed by moot."""
    used_at: int = 0
    """Time of the last activation in ms; 0 = never."""

    def to_json(self) -> JsonObject:
        return {
            "use": self.use,
            "priority": self.priority,
            "scripts": self.scripts,
            "digest": self.digest,
            "source": self.source,
            "used_at": self.used_at,
        }


@dataclass(frozen=True, slots=True)
class SkillText:
    """The content of a `SKILL.md`."""

    name: str = ""
    description: str = ""
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    """Tools that the author expects to be allowed. They are only shown; they don't grant permissions."""
    metadata: JsonObject = field(default_factory=empty)
    body: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def category(self) -> str:
        return _text(self.metadata.get("category"))

    @property
    def tags(self) -> tuple[str, ...]:
        """The skill's tags, from a list or a comma-separated text."""
        found = self.metadata.get("tags")
        items = found if isinstance(found, list) else _text(found).split(",")
        return tuple(filter(None, (_text(item).strip() for item in items)))

    @property
    def icon(self) -> str:
        return _text(self.metadata.get("icon"))

    @property
    def forked_from(self) -> str:
        """The skill that this one was copied from, as named by the program that copied it."""
        return next((_text(self.metadata[name]) for name in _FORKED if self.metadata.get(name)), "")


_FORKED = ("forked_from", "forkedFrom", "forked-from", "forkedFromId", "forked_from_id")


def _text(value: Json) -> str:
    return "" if value is None or isinstance(value, dict | list) else str(value)


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill found in one of the skills folders."""

    name: str
    folder: Path
    """Its real path."""
    place: SkillPlace
    text: SkillText
    files: tuple[str, ...] = ()
    """Paths of its files in the folder, without `SKILL.md`."""
    status: SkillStatus = "offered"
    problem: str = ""
    """Reason why the skill is not used, if a person can change that."""
    decision: SkillDecision = field(default_factory=SkillDecision)
    digest: str = ""
    """Hash of all of its files; empty = not computed."""

    @property
    def scripts(self) -> tuple[str, ...]:
        return tuple(file for file in self.files if file.startswith("scripts/"))

    @property
    def is_usable(self) -> bool:
        return self.status in ("offered", "enabled")


@dataclass(frozen=True, slots=True)
class SkillSelection:
    """The skills of one step."""

    offered: tuple[Skill, ...] = ()
    """Skills whose name and description the model sees."""
    enabled: tuple[Skill, ...] = ()
    """Skills whose instructions are in the prompt, in this order."""

    @property
    def all(self) -> tuple[Skill, ...]:
        return (*self.enabled, *self.offered)


@dataclass(frozen=True, slots=True)
class ScriptRun:
    """A script that is ready to run: a copy of the skill whose content was checked."""

    line: str
    """The shell line that runs the script in the copy."""
    folder: Path
    """A temporary folder with the copy, which the caller deletes."""


class SkillAccess(Protocol):
    """The skills that a run may use."""

    async def activate(self, name: str) -> Skill:
        """Return a skill with its digest, and remember that it was used. Raise NotFound if the run has no such skill."""
        ...

    async def read(self, name: str, file: str) -> bytes:
        """Return a file of a skill. Raise NotFound, or Refused if it is too large or outside of the skill's folder."""
        ...

    async def prepare(self, name: str, revision: str, command: str) -> ScriptRun:
        """Copy a skill to run one of its scripts. Raise Refused if the skill's content doesn't match `revision` or scripts may not run."""
        ...


REVISION = 16
"""Number of digits of the digest that identifies a skill's content in a call."""
