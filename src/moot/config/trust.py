"""Trust in the configuration files of projects. Trust applies to the content of a file, so a changed file must be trusted again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import cast

from moot.config.home import lock_file, read_text, write_atomically
from moot.config.hooks import CHECK_SECTIONS
from moot.config.tree import Node, Place, find, plain
from moot.errors import ConfigError
from moot.plugins.registry import attribute
from moot.types.canonical import Json, JsonObject, dumps, loads_object

_WORD = re.compile(r"[\s=;|&<>()'\"]+")
"""Matches the separators of words in a command."""


_WITH_PROGRAMS = ("options", "hooks", "agents", *CHECK_SECTIONS)
"""Sections that can contain names of programs."""


def trusted_files(home: Path) -> dict[str, str]:
    """Return the digests of trusted files, keyed by path. Return none if the list is missing or invalid."""
    text = read_text(trust_list(home))
    try:
        return {path: digest for path, digest in loads_object(text.encode()).items() if isinstance(digest, str)} if text else {}
    except ValueError:
        return {}


def digest_of(path: Path, text: str) -> str:
    """Return the combined digest of a project's file and of the programs that it may run. Raise OSError if a program can't be read."""
    digest = sha256(text.encode())
    folder = hooks_folder(path)
    for program in programs_of(path, text):
        name = str(program.relative_to(folder)) if program.is_relative_to(folder) else str(program)
        digest.update(dumps([name, _digest_of_file(program)]))
    return digest.hexdigest()


def hooks_folder(path: Path) -> Path:
    """Return the folder for programs that a project's file may run: `hooks` in the file's `.moot` or `.claude` folder."""
    return (path.parent.parent if path.suffix == ".md" else path.parent) / "hooks"


def programs_of(path: Path, text: str) -> list[Path]:
    """Return the project's files that its configuration may run: those in the folder `hooks`, and those mentioned in hooks and agents.

    Raise OSError if the folder contains a link to another folder, a pipe or a device, because a digest can't cover their content.
    """
    found: list[Path] = []
    for folder, folders, names in os.walk(hooks_folder(path)):
        if link := next((name for name in folders if Path(folder, name).is_symlink()), None):
            raise OSError(f"{Path(folder, link)} is a link to a folder")
        found += [Path(folder, name) for name in names]
    if other := next((program for program in found if not program.is_file()), None):
        raise OSError(f"{other} is not a file")
    return [*sorted(found), *(file for file in named_files(path, text) if file.is_file() and file not in found)]


def named_files(path: Path, text: str) -> list[Path]:
    """Return the paths below the project's folder that are mentioned in commands of
    hooks and checks and in options of agents. They need not exist.
    """
    is_agent = path.suffix == ".md"
    if not is_agent and not any(section in text for section in ("hooks", *CHECK_SECTIONS)):
        return []
    project = path.parent.parent.parent if is_agent else path.parent.parent
    head = attribute("moot.config.agents.files:split")(text)[0] if is_agent else text
    try:
        fields = cast("JsonObject", plain(attribute("moot.config.document:parse")(head, Place("project", str(path)))))
    except ConfigError:  # an invalid file is not used
        return []
    words = {word for text in _texts([fields.get(name) for name in _WITH_PROGRAMS]) for word in _WORD.split(text) if word}
    files = {Path(os.path.normpath(project / word)) for word in words}
    return sorted(file for file in files if file.is_relative_to(project) and file != project)


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value


def _digest_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def is_trusted(home: Path, path: Path, text: str) -> bool:
    """Return True if a project's file is trusted, given this text and the current content of the programs that it may run."""
    known = trusted_files(home).get(str(path.resolve()))
    try:
        return known is not None and known == digest_of(path, text)
    except OSError:
        return False


def trust_file(home: Path, path: Path, text: str) -> None:
    """Trust the file as long as its content is this text and the programs that it may run don't change.

    Raise ConfigError if the list can't be written or a program can't be read.
    """
    try:
        digest = digest_of(path, text)
    except OSError as error:
        raise ConfigError(f"The programs that the file may run can't be read: {error}.", file=str(hooks_folder(path))) from error
    trust_content(home, path, digest)


def trust_content(home: Path, path: Path, digest: str) -> None:
    """Trust a file, or the skill that it stands for, as long as its content has this digest.
    Raise ConfigError if the list can't be written.
    """
    with lock_file(trust_list(home)):
        _write(home, {**trusted_files(home), str(path.resolve()): digest})


def revoke_trust(home: Path, path: Path) -> bool:
    """Stop trusting the file. Return False if it was not trusted. Raise ConfigError if the list can't be written."""
    with lock_file(trust_list(home)):
        kept = trusted_files(home)
        found = kept.pop(str(path.resolve()), None) is not None
        if found:
            _write(home, kept)
    return found


def check_project(before: Path | None, home: Path) -> None:
    """Raise ConfigError if a project's file that was in use is missing or has changed, unless the user has revoked its trust."""
    if before is None or str(before.resolve()) not in trusted_files(home):
        return
    problem = "has changed since it was trusted" if before.exists() else "no longer exists"
    raise ConfigError(
        f"The project's file {problem}, so the last valid configuration remains in use.",
        file=str(before),
        fix=f"Review the file, then run 'moot trust {before.parent.parent}', or restart moot to run without it.",
    )


def with_lists_of(below: Node, layer: Node) -> Node:
    """Return the layer with the permission rules, hooks and checks of lower layers inserted before its own.

    A project must not remove those of lower layers, so it can't unset them with null either.
    """
    sections = {name: found for name in ("hooks", *CHECK_SECTIONS) if isinstance(found := find(below, name), dict)}
    for path in (["permissions", "rules"], *([name, key] for name, found in sections.items() for key in found)):
        earlier = find(below, *path)
        if isinstance(earlier, list):
            layer = _with_earlier(layer, path, earlier)
    return layer


def _with_earlier(node: Node, path: list[str], earlier: list[Node]) -> Node:
    """Return the node with earlier entries inserted into its list at this path. Missing sections and invalid values are left unchanged."""
    if not path:
        return replace(node, value=[*earlier, *(node.value or ())]) if node.value is None or isinstance(node.value, list) else node
    values = {} if node.value is None else node.value
    if not isinstance(values, dict) or (len(path) > 1 and path[0] not in values):
        return node
    below = values.get(path[0], Node(None, node.place))
    return replace(node, value={**values, path[0]: _with_earlier(below, path[1:], earlier)})


def trust_list(home: Path) -> Path:
    """Return the path of the list of trusted files."""
    return home / "state" / "trust.json"


def _write(home: Path, entries: dict[str, str]) -> None:
    write_atomically(trust_list(home), dumps(dict(entries)))
