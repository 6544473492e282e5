"""Agents defined in project files. A file is used only as long as its content is trusted. Changed files are read again."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from moot.config.agents.claude_code import FOLDER as FOREIGN_FOLDER
from moot.config.agents.files import FOLDER, markdown_files, read_agent
from moot.config.home import read_text
from moot.config.trust import hooks_folder, is_trusted, named_files, programs_of, trust_list, trusted_files
from moot.errors import ConfigError
from moot.types.agent import Agent

PLACES = (f".moot/{FOLDER}", FOREIGN_FOLDER)

_KEPT = 64
"""Maximum number of folders whose agents are cached."""


@dataclass(frozen=True, slots=True)
class ProjectAgents:
    """The agents of a folder's project."""

    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    refused: Mapping[str, ConfigError] = field(default_factory=dict[str, ConfigError])
    """Reasons why agents can't be used, keyed by name: the file is not trusted or not valid."""
    notes: tuple[str, ...] = ()


def repository_root(folder: str) -> str:
    """Return the closest folder that contains `.git`: the folder itself or one above it. Return an empty string if there is none."""
    # strings, because pathlib takes ten times as long, and this is called at each step
    while not os.access(f"{folder}/.git", os.F_OK):
        if not folder:
            return ""
        folder = folder.rpartition("/")[0]
    return folder or "/"


def main_folder(folder: str) -> str:
    """Return the repository of the moot worktree that contains a folder,
    or an empty string if the folder is not in one. The folder need not exist.
    """
    return folder.rpartition("/.worktrees/")[0]


def agent_files_of(directory: Path, home: Path) -> list[Path]:
    """Return the agent files in a folder, followed by those in the root of its repository."""
    return [Path(path) for path in _paths(str(directory), str(home))]


def _paths(directory: str, home: str) -> list[str]:
    folders = dict.fromkeys(filter(None, (directory, repository_root(directory), main_folder(directory))))
    places = [f"{folder}/{place}" for folder in folders for place in PLACES]
    return [path for place in places if place.rpartition("/")[0] != home for path in markdown_files(place)]


@dataclass(frozen=True, slots=True)
class _Read:
    """The agents of a folder, and the state of the files on which they depend."""

    stamps: object
    programs: tuple[Path, ...]
    """Programs that trusted agents may run. If one of them changes, the agents are no longer trusted."""
    agents: ProjectAgents


_cache: OrderedDict[tuple[Path, Path], _Read] = OrderedDict()


def is_current(home: Path, directory: Path) -> bool:
    """Return True if the folder's agents are cached and their files have not changed. The files are not read."""
    cached = _cache.get((home, directory))
    return cached is not None and cached.stamps == _stamps(home, _paths(str(directory), str(home)), cached.programs)


def project_agents(home: Path, directory: Path) -> ProjectAgents:
    """Return the agents of the folder and of its repository's root. The folder's agents take precedence.
    The result is cached until a file changes.

    In one of moot's worktrees, also return the trusted agents of the main checkout.
    """
    paths = _paths(str(directory), str(home))
    cached = _cache.get((home, directory))
    if cached is None or cached.stamps != _stamps(home, paths, cached.programs):
        files = [Path(path) for path in paths]
        programs = _programs(home, files)
        stamps = _stamps(home, paths, programs)  # taken before the files are read, so that a later change is noticed
        cached = _Read(stamps, programs, _read(home, files, main_folder(str(directory))))
        _cache.pop((home, directory), None)
        _cache[home, directory] = cached
        while len(_cache) > _KEPT:
            _cache.popitem(last=False)
    return cached.agents


def _stamps(home: Path, paths: list[str], programs: tuple[Path, ...]) -> object:
    return tuple((path, _stamp(path)) for path in (*paths, *programs, trust_list(home))) if paths else ()


def _stamp(path: Path | str) -> object:
    """Return a value that changes if the file changes, even if its size and modification time are restored."""
    try:
        status = os.stat(path)  # noqa: PTH116  asked at each step, and pathlib is slow
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _programs(home: Path, paths: list[Path]) -> tuple[Path, ...]:
    """Return the files and folders on which trusted agents depend, in addition to their own files. Some may not exist."""
    trusted = trusted_files(home) if paths else {}
    found: dict[Path, None] = {}
    for path in paths:
        if str(path.resolve()) in trusted:
            with suppress(ConfigError, OSError):
                text = read_text(path)
                found |= dict.fromkeys((hooks_folder(path), *named_files(path, text)))
                found |= dict.fromkeys(each for program in programs_of(path, text) for each in (program.parent, program))
    return tuple(found)


def _read(home: Path, paths: list[Path], main: str) -> ProjectAgents:
    """Return the agents in these files. `main` is the repository's folder if the agents are for a worktree, otherwise empty."""
    agents: dict[str, Agent] = {}
    refused: dict[str, ConfigError] = {}
    notes: list[str] = []
    for path in paths:
        try:
            text = read_text(path)
            if not is_trusted(home, path, text):
                raise _untrusted(path, str(path.resolve()) in trusted_files(home))
            if main and not str(path).startswith(f"{main}/.worktrees/") and any(file.is_file() for file in named_files(path, text)):
                why = "The agent names programs of its project, which may differ in a worktree, so it can't be used there."
                raise ConfigError(why, file=str(path))
            agent, lost = read_agent(path, text)
        except ConfigError as error:
            refused.setdefault(path.stem, error)
            continue
        agents.setdefault(agent.name, agent)
        notes += lost
    return ProjectAgents(agents, {name: error for name, error in refused.items() if name not in agents}, tuple(notes))


def _untrusted(path: Path, changed: bool) -> ConfigError:
    why = (
        "The agent or a program that it names has changed since it was trusted."
        if changed
        else "The agent is ignored because its file is not trusted."
    )
    return ConfigError(why, file=str(path), fix=f"Review it, then run 'moot trust {path.parent.parent.parent}'.")
