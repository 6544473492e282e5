"""Conversion of other programs' settings to moot's configuration, without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

from moot.config.commands import read_command
from moot.config.schedules import check_schedule
from moot.errors import ConfigError, UsageError
from moot.formats.kit.fields import items, obj
from moot.formats.kit.files import files_below, read_inside
from moot.formats.kit.json import json_value
from moot.guard.secrets import redact
from moot.guard.terminal import visible
from moot.plugins import TOOLS
from moot.types.canonical import Json, JsonObject
from moot.types.command_tool import problem_of, schema_of
from moot.types.format import ForeignConfiguration

_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_SECRET = re.compile(r"key|token|secret|passw|credential|authorization|cookie", re.IGNORECASE)


MAX_SETTINGS = 4 << 20
"""Maximum size of a settings file, in bytes."""


class _Variable(str):
    """A reference to an environment variable, such as `${API_KEY}`, which must not be escaped."""


class ConfigurationBuilder:
    """Builder of a configuration: its sections, unsupported settings, and notes."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._sections: dict[str, JsonObject] = {}
        self._rules: list[Json] = []
        self._unsupported: JsonObject = {}
        self._notes: dict[str, None] = {}
        self._lost: dict[str, None] = {}

    def agent(self, name: str, facts: JsonObject, *, tools: Json = None, known: Mapping[str, str] | None = None) -> str:
        """Add an agent and return its name. `tools` lists the program's own tool names, and `known` maps these to moot's."""
        name = self._free("agents", name)
        if isinstance(tools, list):
            offered = [str(tool) for tool in tools if isinstance(tool, str)]
            ours = dict.fromkeys((known or {})[tool] for tool in offered if tool in (known or {}))
            facts = {**facts, "tools": list[Json](ours)}
            if missing := [tool for tool in offered if tool not in (known or {})]:
                self.lose(f"agent {name!r}", f"no equivalent for the tools {', '.join(missing)}")
        self._sections.setdefault("agents", {})[name] = {key: self._plain(value) for key, value in facts.items() if value not in ("", None)}
        return name

    def server(self, name: str, facts: JsonObject) -> None:
        """Add an MCP server. Values of `args`, `env` and `headers` may have any type.
        The server is disabled if a secret had to be left out.
        """
        name = self._free("mcp", server_name(name))
        if "args" in facts:
            facts = {**facts, "args": [_with_variables(str(one)) for one in items(facts, "args")]}
        for holder in facts.keys() & {"env", "headers"}:
            plain: JsonObject = {
                key: _with_variables(one) if isinstance(one, str) else str(one)
                for key, one in obj(facts, holder).items()
                if isinstance(one, str | int | float)
            }
            facts = {**facts, holder: plain}
        fields = {key: value for key, value in facts.items() if value not in ("", None, [], {})}
        if bool(fields.get("command")) == bool(fields.get("url")):
            self.lose(f"mcp server {name!r}", "it needs either a command or a URL", facts)
            return
        missing: list[str] = []
        for holder in ("env", "headers"):
            values = fields.get(holder)
            if isinstance(values, dict):
                kept = {
                    key: value if isinstance(value, _Variable) else self.secret(f"{name}_{key}", str(value), key)
                    for key, value in values.items()
                }
                missing += [value for key, value in kept.items() if isinstance(value, _Variable) and value is not values[key]]
                fields[holder] = {**kept}
        if missing:
            self.note(f"the MCP server {name} is disabled; enable it when {', '.join(missing)} is set")
        entry: JsonObject = {key: self._plain(value) for key, value in fields.items()}
        self._sections.setdefault("mcp", {})[name] = {**entry, **({"enabled": False} if missing else {})}
        self.note("MCP servers run programs on this machine or send data to others: review each one")

    def rule(self, tool: str, action: Literal["allow", "ask", "deny"], match: str = "*") -> None:
        """Add a permission rule."""
        self._rules.append({"tool": tool, **({"match": self._plain(match)} if match != "*" else {}), "action": action})

    def hooks(self, event: str, groups: list[Json]) -> None:
        """Add hooks for an event."""
        if groups:
            before = self._sections.setdefault("hooks", {}).setdefault(event, [])
            assert isinstance(before, list)
            before += [self._plain(group) for group in groups]
            self.note("hooks run commands with your permissions: review each one, including the tool and argument names that it expects")

    def setting(self, section: str, name: str, value: Json) -> None:
        """Set `name` in a section, such as `models` or `sandbox`. Empty values are left out."""
        if value not in ("", None, {}):
            self._sections.setdefault(section, {})[name] = self._plain(value)

    def secret(self, variable: str, value: str, key: str = "secret") -> str:
        """Return `value` or, if it looks like a secret, a reference to the environment variable `variable`.

        `key` is the name of the setting, which helps to recognize secrets.
        """
        if re.fullmatch(r"\$\{\w+\}", value):
            return _Variable(value)
        if not value or not (_SECRET.search(key) or redact(value) != value):
            return str(self._plain(value))
        name = _NAME.sub("_", variable).replace("-", "_").strip("_").upper()
        self.note(f"a secret was left out: set the variable {name}")
        return _Variable(f"${{{name}}}")

    def change(self, section: str, name: str, key: str, *, value: Json) -> None:
        """Set a key of an entry that was added earlier. Unlike in `entry`, the value may be empty."""
        entry = self._sections[section][name]
        assert isinstance(entry, dict)
        entry[key] = self._plain(value)

    def entry(self, section: str, name: str, facts: JsonObject) -> str:
        """Add an entry to a section of named entries, such as `cron`, and return its name. Empty values are left out."""
        free = self._free(section, name)
        kept: JsonObject = {key: self._plain(value) for key, value in facts.items() if value not in (None, "", [], {})}
        self._sections.setdefault(section, {})[free] = kept
        return free

    def lose(self, what: str, reason: str, value: Json = None) -> None:
        """Report that the setting `what` has no equivalent in moot. Its value, if given, is kept as a comment."""
        self._lost.setdefault(" ".join(visible(f"{what}: {reason.rstrip('.')}").split()))
        if value is not None:
            self._keep(what.partition(" ")[0], {what: value})

    def _keep(self, section: str, value: Json) -> None:
        """Add the value of a lost setting to the values that are kept as comments."""
        if value in (None, "", [], {}):
            return
        before = self._unsupported.get(section)
        if isinstance(before, dict) and isinstance(value, dict):
            self._unsupported[section] = {**before, **value}
        elif isinstance(before, list) and isinstance(value, list):
            self._unsupported[section] = [*before, *value]
        else:
            self._unsupported[section] = value

    def read(self, file: Path, inside: Path, name: str = "") -> JsonObject:
        """Return the JSON object in a settings file below `inside`, or an empty object.

        If the file contains anything else, add a note that identifies the file by its path or by `name`.
        """
        data = read_inside(file, inside=inside, limit=MAX_SETTINGS)
        if data is None:
            return {}
        value = json_value(data.decode("utf-8", "replace"))
        if not isinstance(value, dict):
            self.note(f"{name or repr(str(file))} is not a JSON object")
            return {}
        return value

    def note(self, words: str) -> None:
        self._notes.setdefault(" ".join(visible(words).split()))

    def found(self) -> ForeignConfiguration:
        pieces = cast("JsonObject", _without_markers(cast("JsonObject", self._sections)))
        if self._rules:
            pieces["permissions"] = {**self._sections.get("permissions", {}), "rules": self._rules}
            self.note("permissions grant access: review each rule before you copy it")
        notes, lost = (tuple(f"{self._program}: {line}" for line in lines) for lines in (self._notes, self._lost))
        return ForeignConfiguration(pieces, {self._program: self._unsupported} if self._unsupported else {}, notes, lost)

    def _free(self, section: str, name: str) -> str:
        existing = self._sections.get(section, {})
        base = ":".join(map(entry_name, name.split(":"))) if section == "commands" else entry_name(name)
        free, number = base, 1
        while free in existing:
            number += 1
            free = f"{base}-{number}"
        return free

    def _plain(self, value: Json) -> Json:
        """Return the value without secrets and with `${` escaped, so that no variable's value reaches a model."""
        if isinstance(value, _Variable):
            return value
        if isinstance(value, str):
            return redact(value).replace("${", "$${") if "${" in value else redact(value)
        if isinstance(value, list):
            return [self._plain(item) for item in value]
        return {key: self._plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def add_job(draft: ConfigurationBuilder, name: str, facts: JsonObject) -> str:
    """Add a cron job and return its name. If moot rejects the schedule or prompt, report the job as lost and return an empty string."""
    facts = {key: value for key, value in facts.items() if value not in (None, "", [], {}, False)}
    schedule = [str(facts.get(key) or "") for key in ("cron", "at", "tz")]
    every = facts.get("every")
    try:
        check_schedule(schedule[0], float(every) if isinstance(every, int | float) else 0.0, schedule[1], schedule[2] or "UTC")
    except UsageError as error:
        draft.lose(f"cron job {name!r}", error.message, facts)
        return ""
    if not str(facts.get("prompt") or "").strip():
        draft.lose(f"cron job {name!r}", "it has no prompt", facts)
        return ""
    ours = draft.entry("cron", entry_name(name)[:60].lstrip("_-") or "job", facts)
    draft.note("cron jobs run unattended: review each prompt; tool calls that need approval are denied")
    return ours


def add_command(draft: ConfigurationBuilder, name: str, facts: JsonObject) -> None:
    """Add a slash command, or report it as lost if it has no prompt."""
    if not str(facts.get("prompt") or "").strip():
        draft.lose(f"command {name!r}", "it has no prompt", facts)
        return
    draft.entry("commands", name, facts)
    draft.note("commands may contain shell lines (!`…`), which need your permission when they run: review each command")


def add_command_files(draft: ConfigurationBuilder, folder: Path, inside: Path) -> None:
    """Add the commands in the Markdown files of a folder."""
    for file in files_below(folder, ".md", depth=3):
        data = read_inside(file, inside=inside, limit=MAX_SETTINGS)
        name = ":".join(file.relative_to(folder).with_suffix("").parts)
        try:
            found = read_command(name, file, (data or b"").decode("utf-8", "replace"), foreign=True)
        except ConfigError as error:
            draft.lose(f"command {name!r}", error.message)
            continue
        facts = found.facts
        add_command(draft, name, {"description": facts.help, "argument": facts.argument, "model": found.model, "prompt": found.prompt})
        for note in found.notes:
            draft.note(f"command {name!r}: {note}")


def add_custom_tool(draft: ConfigurationBuilder, name: str, facts: JsonObject) -> str:
    """Add a custom tool and return its name. If moot rejects it, report it as lost and return an empty string."""
    written = facts.get("command")
    command = written if isinstance(written, str) else tuple(str(word) for word in items(written))
    parameters = obj(facts, "parameters")
    schema = schema_of(parameters, command)
    if problem := problem_of(command, schema) or ("" if facts.get("description") else "it has no description"):
        draft.lose(f"custom tool {name!r}", problem, facts)
        return ""
    free = _NAME.sub("_", name).strip("_-").replace("__", "_")[:60]
    if free in TOOLS or not free[:1].isalpha():
        renamed = f"imported_{free}"
        draft.note(f"custom tool {name!r} is now {renamed}, because its name is taken or invalid")
        free = renamed
    return draft.entry("tools", free, facts)


def entry_name(name: str) -> str:
    """Convert a name to a name that is valid in moot's configuration, with only letters, digits, `-` and `_`."""
    return _NAME.sub("-", name).strip("-") or "unnamed"


def server_name(name: str) -> str:
    """Convert a name to a valid name for an MCP server.
    It can't contain two adjacent underscores, which separate a server from its tool.
    """
    return re.sub("__+", "_", entry_name(name))


_REFERENCE = re.compile(r"\$\{(?:env:)?(\w+)(:-[^{}]*)?\}")


def _with_variables(text: str) -> str:
    """If the text contains environment variables, such as `${NAME}`, `${env:NAME}` or `${NAME:-default}`, return it as a reference."""
    if "${" not in text or "${" in _REFERENCE.sub("", text):
        return text
    return _Variable(_REFERENCE.sub(lambda found: f"${{{found[1]}{found[2] or ''}}}", text))


def _without_markers(value: Json) -> Json:
    """Return the value with each `_Variable` replaced by a plain string."""
    if isinstance(value, _Variable):
        return str(value)
    if isinstance(value, list):
        return [_without_markers(item) for item in value]
    return {key: _without_markers(item) for key, item in value.items()} if isinstance(value, dict) else value
