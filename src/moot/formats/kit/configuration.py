"""Configuration of other programs, converted to harmless sections of moot's configuration without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

from moot.formats.kit.fields import items, obj
from moot.formats.kit.files import read_inside
from moot.formats.kit.json import json_value
from moot.guard.secrets import redact
from moot.guard.terminal import visible
from moot.types.canonical import Json, JsonObject
from moot.types.format import ForeignConfiguration

_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_SECRET = re.compile(r"key|token|secret|passw|credential|authorization|cookie", re.IGNORECASE)


MAX_SETTINGS = 4 << 20
"""Maximum size of a settings file in bytes."""


class _Variable(str):
    """A reference to an environment variable."""


class ConfigurationBuilder:
    """Builder of a configuration: sections, unsupported settings and notes."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._sections: dict[str, JsonObject] = {}
        self._rules: list[Json] = []
        self._unsupported: JsonObject = {}
        self._notes: dict[str, None] = {}

    def agent(self, name: str, facts: JsonObject, *, tools: Json = None, known: Mapping[str, str] | None = None) -> None:
        """Add an agent. `tools` lists the program's own tool names, and `known` maps them to moot's."""
        name = self._free("agents", name)
        if isinstance(tools, list):
            offered = [str(tool) for tool in tools if isinstance(tool, str)]
            ours = dict.fromkeys((known or {})[tool] for tool in offered if tool in (known or {}))
            facts = {**facts, "tools": list[Json](ours)}
            if missing := [tool for tool in offered if tool not in (known or {})]:
                self.note(f"agent {name!r}: no equivalent for the tools {', '.join(missing)}")
        self._sections.setdefault("agents", {})[name] = {key: self._plain(value) for key, value in facts.items() if value not in ("", None)}

    def server(self, name: str, facts: JsonObject) -> None:
        """Add an MCP server, disabled because it can run programs or send data. Values of `args`, `env` and `headers` may have any type."""
        name = self._free("mcp", name)
        if "args" in facts:
            facts = {**facts, "args": [str(one) for one in items(facts, "args")]}
        for holder in facts.keys() & {"env", "headers"}:
            plain: JsonObject = {key: str(one) for key, one in obj(facts, holder).items() if isinstance(one, str | int | float)}
            facts = {**facts, holder: plain}
        fields = {key: value for key, value in facts.items() if value not in ("", None, [], {})}
        if bool(fields.get("command")) == bool(fields.get("url")):
            self.keep("mcp", {name: facts})
            self.note(f"MCP server {name!r}: needs either a command or a URL; kept as a comment")
            return
        for holder in ("env", "headers"):
            values = fields.get(holder)
            if isinstance(values, dict):
                fields[holder] = {key: self.secret(f"{name}_{key}", str(value), key) for key, value in values.items()}
        self._sections.setdefault("mcp", {})[name] = {**{key: self._plain(value) for key, value in fields.items()}, "enabled": False}
        self.note("MCP servers are disabled; set `enabled: true` on those that you want to use")

    def rule(self, tool: str, action: Literal["allow", "ask", "deny"], match: str = "*") -> None:
        """Add a permission rule."""
        self._rules.append({"tool": tool, **({"match": self._plain(match)} if match != "*" else {}), "action": action})

    def setting(self, section: str, name: str, value: Json) -> None:
        """Add any other setting of a section."""
        if value not in ("", None, {}):
            self._sections.setdefault(section, {})[name] = self._plain(value)

    def secret(self, variable: str, value: str, key: str = "secret") -> str:
        """Return `value`, or a variable reference in its place if it looks like a secret."""
        if re.fullmatch(r"\$\{\w+\}", value):
            return _Variable(value)
        if not value or not (_SECRET.search(key) or redact(value) != value):
            return str(self._plain(value))
        name = _NAME.sub("_", variable).replace("-", "_").strip("_").upper()
        self.note(f"a secret was left out: set the variable {name}")
        return _Variable(f"${{{name}}}")

    def keep(self, section: str, value: Json) -> None:
        """Keep a setting that moot does not support."""
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
        """Return the JSON object in a settings file below `inside`, or nothing. A file with anything else becomes a note, under `name`
        if given.
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
        if self._unsupported:
            self.note(f"unsupported settings are kept as comments: {', '.join(self._unsupported)}")
        notes = tuple(f"{self._program}: {note}" for note in self._notes)
        return ForeignConfiguration(pieces, {self._program: self._unsupported} if self._unsupported else {}, notes)

    def _free(self, section: str, name: str) -> str:
        existing = self._sections.get(section, {})
        base = _NAME.sub("-", name).strip("-") or "unnamed"
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


def _without_markers(value: Json) -> Json:
    """Return the value with references as plain text."""
    if isinstance(value, _Variable):
        return str(value)
    if isinstance(value, list):
        return [_without_markers(item) for item in value]
    return {key: _without_markers(item) for key, item in value.items()} if isinstance(value, dict) else value
