"""The folders that contain skills, including those of other programs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from moot.config.agents.project import repository_root
from moot.config.plugins.installed import used_plugins
from moot.guard.roots import is_below

if TYPE_CHECKING:
    from moot.types.skill import SkillPlace

FOLDER = "skills"

PLACES = {".agents/skills": False, ".claude/skills": True, ".talkcody/skills": False}
"""Folders in the user's home and in projects, nearest first. The value is True for a program that has its own rules for `SKILL.md`."""


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that contains skills."""

    path: str
    place: SkillPlace
    is_lenient: bool = False
    boundary: str = ""
    """The folder in which skills must be even after links are resolved. If it is empty, links may lead anywhere."""
    plugin: str = ""
    """Name of the plugin if `path` is one of its skills. The name of the skill starts with it."""


def roots_of(home: Path, folder: str, *, is_local: bool = True, boundary: str = "") -> list[Root]:
    """Return the existing skills folders for a conversation's folder, nearest first.

    Only the local user gets skills from outside the project. Other users get those inside the `boundary`.
    """
    user = os.path.expanduser("~")  # noqa: PTH111  asked at each step, and pathlib is slow
    found: list[Root] = []
    tops = dict.fromkeys(filter(None, (folder, repository_root(folder)))) if folder else {}
    for top in tops:
        if (is_local or is_below(top, boundary)) and os.path.realpath(top) != os.path.realpath(user):
            found += [Root(f"{top.rstrip('/')}/{name}", "project", lenient, top) for name, lenient in PLACES.items()]
    if is_local:
        found.append(Root(f"{home}/{FOLDER}", "home"))
        found += [Root(f"{user}/{name}", "user", lenient) for name, lenient in PLACES.items()]
        for plugin in used_plugins(home):
            inside = str(plugin.folder)
            found += [Root(f"{inside}/{path}".rstrip("/"), "plugin", True, inside, plugin.name) for path in plugin.skills]
    return [root for root in found if os.path.isdir(root.path)]  # noqa: PTH112


def project_places() -> str:
    """Return the folders in a project that may contain skills, for use in messages."""
    return ", ".join(PLACES)
