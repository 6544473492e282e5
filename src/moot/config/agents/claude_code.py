"""Conversion of Claude Code's agent and command files, and the names used in its plugins.

Reference: Claude Code documentation on subagents, slash commands, plugins and plugin marketplaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from moot.config.tree import Node, plain
from moot.plugins import TOOLS

FOLDER = ".claude/agents"
COMMANDS_FOLDER = ".claude/commands"

PLUGIN_FOLDER = ".claude-plugin"
MANIFEST = f"{PLUGIN_FOLDER}/plugin.json"
MARKETPLACE = "marketplace.json"
PLUGIN_ROOT, PLUGIN_DATA, PROJECT_FOLDER = "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "CLAUDE_PROJECT_DIR"
"""Environment variables for a plugin's programs: the plugin's folder, a folder for files that it writes, and the working directory."""

_COMMAND_FIELDS: Mapping[str, str] = {"argument-hint": "argument"}
_COMMAND_LOST = ("allowed-tools", "context", "disable-model-invocation", "hooks", "user-invocable", "name", "version", "when_to_use")
"""Command fields without an equivalent in moot. With `allowed-tools`, for example, a file could allow its own calls."""

TOOL_NAMES: Mapping[str, str] = {
    "AskUserQuestion": "ask_user",
    "Bash": "shell",
    "Edit": "edit_file",
    "Glob": "find_files",
    "Grep": "search_files",
    "LS": "list_files",
    "MultiEdit": "edit_file",
    "NotebookEdit": "edit_file",
    "Read": "read_file",
    "TodoWrite": "todo",
    "WebFetch": "fetch_url",
    "WebSearch": "web_search",
    "Write": "write_file",
}
_MODELS: Mapping[str, str] = {"inherit": "main", "default": "main", "sonnet": "main", "opus": "main", "haiku": "small"}
_RENAMED: Mapping[str, str] = {"maxTurns": "max_steps"}
_WITHOUT_EQUIVALENT = ("background", "color", "disallowedTools", "initialPrompt", "mcpServers", "memory", "permissionMode")
_LISTS = ("tools", "skills", "disallowedTools")


def translated(fields: Mapping[str, Node], known: Sequence[str], *, foreign: bool) -> tuple[dict[str, Node], list[str]]:
    """Return the fields of a moot agent, and notes about fields and tools that have no equivalent.

    `known` lists moot's fields. If the file is not `foreign`, unknown fields are kept, so that they are reported as errors.
    """
    notes: list[str] = []
    given = {name: _as_list(node) if name in _LISTS else node for name, node in fields.items()}
    lost = [name for name in given if name in _WITHOUT_EQUIVALENT or (foreign and name not in {*known, *_RENAMED, "name", "effort"})]
    found = {_RENAMED.get(name, name): node for name, node in given.items() if name not in lost}
    if (effort := found.pop("effort", None)) is not None:
        found["reasoning"] = replace(effort, value={"effort": effort})
    hooks = found.get("hooks")
    if hooks is not None and isinstance(hooks.value, dict) and not hooks.value.keys() & {"before_run", "after_run"}:
        lost.append("hooks")
        del found["hooks"]
    if (model := found.get("model")) is not None and model.value in _MODELS:
        found["model"] = replace(model, value=_MODELS[str(model.value)])
    denied = {TOOL_NAMES.get(bare, bare) for bare in (name.partition("(")[0] for name in _names(given.get("disallowedTools")))}
    if "tools" in found:
        found["tools"] = _tools(found["tools"], denied, notes, foreign=foreign)
    elif denied:  # all other tools, because the agent must not get more tools than its author wanted
        place = given["disallowedTools"].place
        found["tools"] = Node([Node(name, place, name) for name in _offered() if name not in denied], place)
    lost = [name for name in lost if name != "disallowedTools"]
    if lost:
        notes.append(f"moot has no such field: {', '.join(sorted(lost))}")
    return found, notes


def _as_list(node: Node) -> Node:
    """Return the node. If its value is a text such as `a, b`, convert it to a list."""
    if not isinstance(node.value, str):
        return node
    words = [word.strip() for word in node.value.split(",")]
    return replace(node, value=[Node(word, node.place, word) for word in words if word], text="")


def _names(node: Node | None) -> list[str]:
    value = plain(node) if node is not None else None
    return [str(item) for item in value] if isinstance(value, list) else []


def _offered() -> list[str]:
    """Return the names of the tools that are offered to an agent whose file lists none."""
    return [name for name in TOOLS.names() if TOOLS.package(name) == "" and not getattr(TOOLS.load(name), "hidden", False)]


def _tools(node: Node, denied: set[str], notes: list[str], *, foreign: bool) -> Node:
    if not isinstance(node.value, list):
        return node
    kept: dict[str, Node] = {}
    for item in node.value:
        name = str(item.value)
        bare, pattern, _ = name.partition("(")
        ours = TOOL_NAMES.get(bare, "" if foreign and bare not in TOOL_NAMES.values() else name)
        if pattern and bare in TOOL_NAMES:
            notes.append(f"the pattern of {name} was left out; moot's permissions decide")
        if not ours:
            notes.append(f"moot has no tool {name}")
        elif ours not in denied:
            kept.setdefault(ours, replace(item, value=ours, text=ours))
    return replace(node, value=list(kept.values()))


def command_fields(fields: Mapping[str, Node], *, foreign: bool) -> tuple[dict[str, Node], tuple[str, ...]]:
    """Return the fields of a moot command, and notes about lost fields. If the file is not `foreign`, unknown fields are kept."""
    lost = [name for name in fields if name in _COMMAND_LOST or (foreign and name not in (*_COMMAND_KNOWN, *_COMMAND_FIELDS))]
    found = {_COMMAND_FIELDS.get(name, name): node for name, node in fields.items() if name not in lost}
    if (model := found.get("model")) is not None and model.value in _MODELS:
        alias = _MODELS[str(model.value)]
        found["model"] = replace(model, value="" if alias == "main" else alias)
    return found, (f"moot has no such field: {', '.join(sorted(lost))}",) if lost else ()


_COMMAND_KNOWN = ("description", "model", "agent", "argument")
