"""The content of a skill: its document `SKILL.md` (reference: agentskills.io/specification), and reading and checking its files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from moot.config.agents.files import split
from moot.config.plugins.content import BYTES, PROGRAMS, entries
from moot.config.tree import Node, Place, plain
from moot.errors import ConfigError, NotFound, Refused
from moot.guard.hidden import hidden_characters, hidden_comments
from moot.guard.paths import Paths
from moot.plugins.registry import attribute
from moot.types.canonical import Json
from moot.types.skill import SKILL_FILE, Finding, SkillText

NAME_CHARACTERS = 64
DESCRIPTION_CHARACTERS = 1024
COMPATIBILITY_CHARACTERS = 500

FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TOOL = re.compile(r"[^\s,()]+(?:\([^)]*\))?")


def is_name(text: str) -> bool:
    """Return whether a skill may have this name."""
    return len(text) <= NAME_CHARACTERS and _NAME.fullmatch(text) is not None


def read_document(text: str, folder: str, *, lenient: bool = False) -> SkillText:
    """Return the content of a `SKILL.md` with all problems found in it.

    `folder` is the name of its folder. If `lenient` is set, the name may be missing and unknown fields are not reported, because the folder
    belongs to another program, which has its own rules.
    """
    head, body = split(text)
    hidden = hidden_findings(SKILL_FILE, text)
    if not head.strip():
        problem = "The file must start with front matter: name and description between two lines '---'."
        return SkillText(folder, body=text, findings=(Finding(SKILL_FILE, 1, problem), *hidden))
    try:
        tree: Node = attribute("moot.config.document:parse")(head, Place("skill", SKILL_FILE))
    except ConfigError as error:
        return SkillText(folder, body=body, findings=(Finding(SKILL_FILE, error.line or 1, error.message), *hidden))
    return _Reader(tree, folder, lenient=lenient).document(body, hidden)


def hidden_findings(file: str, text: str) -> list[Finding]:
    """Return one finding for each line with invisible characters and for each HTML comment."""
    lines: dict[int, list[str]] = {}
    for line, name in hidden_characters(text):
        lines.setdefault(line, []).append(name)
    found = [Finding(file, line, f"Hidden characters: {', '.join(dict.fromkeys(names[:5]))}.", hides=True) for line, names in lines.items()]
    return [*found, *(Finding(file, line, "An HTML comment, which viewers don't show.", False, True) for line in hidden_comments(text))]


class _Reader:
    """Reader of the fields of a front matter, which collects the problems that it finds."""

    def __init__(self, tree: Node, folder: str, *, lenient: bool) -> None:
        self.findings: list[Finding] = []
        self._fields: dict[str, Node] = tree.value if isinstance(tree.value, dict) else {}
        self._folder = folder
        self._lenient = lenient

    def document(self, body: str, hidden: list[Finding]) -> SkillText:
        """Return the content, with these findings and the problems of the fields."""
        found = SkillText(
            self._name(),
            self._description(),
            self._short("license", None),
            self._short("compatibility", COMPATIBILITY_CHARACTERS),
            tuple(self._tools()),
            self._metadata(),
            body.strip(),
        )
        for name, node in self._fields.items():
            if name not in FIELDS and not self._lenient:
                self._report(node, f"Unknown field {name!r}. Put it into 'metadata', which may contain anything.", is_error=False)
        if not body.strip():
            self.findings.append(Finding(SKILL_FILE, 1, "There are no instructions below the front matter.", is_error=False))
        return replace(found, findings=tuple(sorted((*self.findings, *hidden), key=lambda finding: finding.line)))

    def _name(self) -> str:
        node = self._fields.get("name")
        if node is None and self._lenient and is_name(self._folder):
            return self._folder
        name = self._scalar("name")
        if not name:
            self._report(node, "The field 'name' is missing.")
        elif not is_name(name):
            self._report(node, f"Invalid name {name[:80]!r}: use 1 to {NAME_CHARACTERS} lowercase letters, digits and single hyphens.")
        elif name != self._folder:
            self._report(node, f"The name {name!r} differs from the folder's name {self._folder!r}.")
        return name

    def _description(self) -> str:
        text, node = self._scalar("description"), self._fields.get("description")
        if not text.strip():
            self._report(node, "The field 'description' is missing. It tells the model when to use the skill.")
        elif len(text) > DESCRIPTION_CHARACTERS:
            self._report(node, f"The description has {len(text):,} characters; at most {DESCRIPTION_CHARACTERS:,} are allowed.")
            text = text[:DESCRIPTION_CHARACTERS]
        return text.strip()

    def _short(self, name: str, limit: int | None) -> str:
        text, node = self._scalar(name), self._fields.get(name)
        if node is not None and not text.strip() and node.value is not None:
            self._report(node, f"The field {name!r} must be text.")
        elif limit is not None and len(text) > limit:
            self._report(node, f"The field {name!r} has {len(text):,} characters; at most {limit} are allowed.")
        return text.strip()

    def _tools(self) -> Iterator[str]:
        node = self._fields.get("allowed-tools")
        if node is None:
            return
        if isinstance(node.value, list):
            self._report(node, "The field 'allowed-tools' is a list, but must be text with spaces between the names.", is_error=False)
            yield from (item.text or str(item.value) for item in node.value)
        else:
            yield from _TOOL.findall(self._scalar("allowed-tools"))

    def _metadata(self) -> dict[str, Json]:
        node = self._fields.get("metadata")
        if node is None or node.value is None:
            return {}
        if not isinstance(node.value, dict):
            self._report(node, "The field 'metadata' must be a mapping of names to texts.")
            return {}
        for name, child in node.value.items():
            if isinstance(child.value, dict | list):
                self._report(child, f"metadata.{name} is not text. Other programs may not read it.", is_error=False)
        return {name: plain(child) if isinstance(child.value, dict | list) else child.text for name, child in node.value.items()}

    def _scalar(self, name: str) -> str:
        node = self._fields.get(name)
        return "" if node is None or node.value is None or isinstance(node.value, dict | list) else node.text or str(node.value)

    def _report(self, node: Node | None, text: str, *, is_error: bool = True) -> None:
        place = None if node is None else node.named or node.place
        self.findings.append(Finding(SKILL_FILE, place.line if place is not None else 1, text, is_error))


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
