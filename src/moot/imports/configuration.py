"""Collection of other programs' settings in one YAML file, for the user to review and to copy from."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML

from moot.errors import MootError, UsageError
from moot.formats.apps.mcp_files import servers_in
from moot.guard.secrets import redact
from moot.guard.terminal import visible
from moot.imports.sources import Source
from moot.types.canonical import Json, JsonObject
from moot.types.format import ForeignConfiguration, HasConfiguration

_HEAD = """\
Settings of other programs, converted to moot's configuration. moot does not read this file: review it and copy what you want
into config.yaml. Permissions grant access; MCP servers, hooks, cron jobs, webhooks, task watchers, commands and custom tools run programs
or agents; secrets were left out."""


def configuration_of(sources: Iterable[Source], servers: Sequence[Path] = ()) -> ForeignConfiguration:
    """Return the combined configuration of the sources' programs, and of files with MCP servers. Blocks."""
    pieces: dict[str, Json] = {}
    unsupported: JsonObject = {}
    notes: dict[str, None] = {}
    lost: dict[str, None] = {}
    for one in chain(_each(sources), servers_in([*servers])):
        lost |= dict.fromkeys(one.lost)
        for note in [*one.notes, *_merge(pieces, one.pieces)]:
            notes.setdefault(note)
        for program, kept in one.unsupported.items():
            before = unsupported.get(program)
            both: JsonObject = {**before, **kept} if isinstance(before, dict) and isinstance(kept, dict) else {}
            unsupported[program] = both or kept
    return ForeignConfiguration(pieces, unsupported, tuple(notes), tuple(lost))


def count_items(found: ForeignConfiguration) -> dict[str, int]:
    """Return the number of items of each section: `agents`, `mcp`, `permissions` …"""
    rules = found.pieces.get("permissions")
    counts = {name: len(value) for name, value in found.pieces.items() if isinstance(value, dict) and name != "permissions"}
    if isinstance(hooks := found.pieces.get("hooks"), dict):
        counts["hooks"] = sum(len(listed) for listed in hooks.values() if isinstance(listed, list))
    if isinstance(rules, dict):
        listed = rules.get("rules")
        counts["permissions"] = len(listed) if isinstance(listed, list) else 1
    return counts


def to_yaml(found: ForeignConfiguration) -> str:
    """Return the configuration as YAML. Notes and unsupported settings become comments."""
    notes = _comment("\n".join([*(f"* {note}" for note in found.notes), *(f"* lost: {line}" for line in found.lost)]))
    text = _comment(_HEAD) + ("#\n" + notes if notes else "") + "\n" + (_yaml(found.pieces) if found.pieces else "{}\n")
    if not found.unsupported:
        return text
    kept = _comment(redact(_yaml(found.unsupported)))
    return f"{text}\n# Settings without an equivalent in moot, unchanged, but without secrets:\n#\n{kept}"


def _each(sources: Iterable[Source]) -> Iterator[ForeignConfiguration]:
    seen: set[tuple[str, Path]] = set()
    for source in sources:
        key = (source.format.name, source.path.parent)
        if not isinstance(source.format, HasConfiguration) or key in seen:
            continue
        seen.add(key)
        try:
            yield source.format.configuration(source.path)
        except (MootError, OSError) as error:
            yield ForeignConfiguration(notes=(f"{source.format.name}: can't read the configuration at {str(source.path)!r}: {error}",))


def _merge(pieces: dict[str, Json], more: JsonObject) -> Iterator[str]:
    """Merge sections into `pieces` and yield a note for each conflict. Duplicate names get a number, and existing settings are kept."""
    for section, settings in more.items():
        there = pieces.setdefault(section, {})
        if not isinstance(there, dict) or not isinstance(settings, dict):
            continue
        for name, value in settings.items():
            before = there.get(name)
            if isinstance(before, list) and isinstance(value, list):
                there[name] = [*before, *(item for item in value if item not in before)]
            elif (
                section in ("agents", "mcp", "cron", "webhooks", "tools", "task_watchers", "commands")
                and before is not None
                and before != value
            ):
                number = next(number for number in range(2, len(there) + 3) if f"{name}-{number}" not in there)
                there[f"{name}-{number}"] = value
                yield f"{section}: {name!r} exists twice; the second is now {name}-{number}"
            elif before is not None and before != value:
                yield f"{section}.{name}: {value!r} was left out because another program sets {before!r}"
            else:
                there[name] = value


def _yaml(value: JsonObject) -> str:
    writer = cast("Any", YAML(typ="safe", pure=True))
    writer.default_flow_style = False
    writer.allow_unicode = True
    writer.width = 1_000_000
    writer.sort_base_mapping_type_on_output = False
    buffer = io.StringIO()
    writer.dump(value, buffer)
    return buffer.getvalue()


def _comment(text: str) -> str:
    """Return the text with each line as a YAML comment."""
    return "".join(f"# {visible(line)}".rstrip() + "\n" for line in text.splitlines())


def refuse_live(path: Path, live: Path) -> None:
    """Raise UsageError if the path is moot's active configuration or already exists."""
    if path.resolve() == live.resolve():
        raise UsageError(
            f"Imported settings can't be written to {str(path)!r}, because it is moot's active configuration.",
            fix="Choose another file, review its settings, then copy them.",
        )
    if path.exists() or path.is_symlink():
        raise UsageError(f"{str(path)!r} already exists.", fix="Choose a new file.")
