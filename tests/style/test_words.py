"""Names that we define come from the glossary, and a vendor's name stays in its own adapter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from style.tree import Function, modules, none_of, plant, room_of

CORE = frozenset({"types", "store", "agents", "runtime", "engine"})
OURS = CORE | {"config", "cli", "plugins", "guard"}

NOT_OURS: dict[str, tuple[str, frozenset[str]]] = {
    # another system's word → our word, and the rooms where we define names; elsewhere a foreign word may stay foreign
    "chat": ("conversation", CORE - {"agents"}),
    "thread": ("conversation", frozenset({"types", "agents", "engine"})),
    "persona": ("agent", OURS),
    "profile": ("agent", OURS),
    "backend": ("agent service", OURS),
    "turn": ("run", OURS),
    "turns": ("runs", OURS),
    "execution": ("run", OURS),
    "tool_use": ("tool call", OURS),
    "tool_result": ("tool output", OURS),
}
"""The glossary of ARCHITECTURE.md, as far as a machine can check it."""
KEPT_THERE = {
    "config/schema/__init__.py": frozenset({"PreToolUse", "PostToolUse"}),  # keys that users copy from other programs
    "agents/outside/turn.py": frozenset({"turn", "Turn"}),  # one prompt to an outside agent, as its protocol calls it
    "agents/outside/leg.py": frozenset({"TurnInput", "_turn_parts"}),
    "agents/codex/service.py": frozenset({"CodexTurn"}),
}
ABBREVIATED = {"msg": "message", "req": "request", "cfg": "config", "util": "a noun", "utils": "a noun", "misc": "a noun"}

NOUNS_IN_ING = frozenset({"pricing", "recording", "encoding", "routing", "embedding", "testing"})
ODD_MODULES = frozenset(
    [
        "told",
        "said",
        "given",
        "taken",
        "asked",
        "shown",
        "stored",
        "things",
        "words",
        "told_once",
        "left_out",
        "beside",
        "besides",
        "past",
        "aside",
        "sides",
        "here",
        "having",
    ]
)
"""Names that don't say what a module holds."""


def odd_module_names(root: Path) -> list[str]:
    """Return the modules whose names are participles, gerunds or riddles."""
    found: list[str] = []
    for name, _ in modules(root):
        path = Path(name)
        word = (path.parent.name if path.name == "__init__.py" else path.stem).strip("_")
        if word in ODD_MODULES or (word.endswith("ing") and word not in NOUNS_IN_ING):
            found.append(f"{name}: {word!r} is not a noun that names what the module holds")
    return found


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_COLUMNS = re.compile(r"(?is)create\s+(?:virtual\s+)?table\s+(?:if\s+not\s+exists\s+)?(\w+)[^(]*\((.*?)\)\s*(?:strict|without|;|$)")


def words(name: str) -> str:
    """`ToolResultPart` → ` tool result part `."""
    return f" {_HUMP.sub(' ', name).replace('_', ' ').lower().strip()} "


def defined_names(tree: ast.Module) -> Iterator[str]:
    """Classes, functions and fields of a module, and the tables and columns of the SQL in it."""
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for table, columns in _COLUMNS.findall(node.value):
                yield table
                yield from (column.split()[0] for column in columns.split(",") if column.split())


def foreign_names(root: Path) -> list[str]:
    """Return the names we define that use another system's word, or an abbreviation."""
    found: list[str] = []
    for name, tree in modules(root):
        room = room_of(name)
        names = sorted({Path(name).stem, *defined_names(tree)} - KEPT_THERE.get(name, frozenset()))
        for word, (ours, rooms) in NOT_OURS.items():
            if room in rooms:
                found += [f"{name}: {one!r}: write {ours!r}" for one in names if f" {word.replace('_', ' ')} " in words(one)]
        for word, full in ABBREVIATED.items():
            found += [f"{name}: {one!r}: write {full!r}" for one in names if f" {word} " in words(one)]
    return found


VENDORS: dict[str, tuple[str, ...]] = {
    # a vendor's words → the files below src/moot that are its adapter, or that must distinguish it from others
    "anthropic claude": (
        "convert/dialects/anthropic*.py",
        "agents/claude_code/*",
        "cli/commands/history/export.py",
        "config/agents/claude_code.py",
        "guard/protected.py",
        "providers/machine.py",
        "agents/prompt.py",  # the name of a file
        "skills/roots.py",  # the table of folders
    ),
    "codex": ("agents/codex/*", "cli/commands/history/export.py", "guard/protected.py"),
    "openai gpt": (
        "providers/media.py",
        "types/provider.py",
        "convert/dialects/openai*.py",
        "convert/dialects/small_model*.py",
        "convert/dialects/ollama.py",
        "agents/codex/*",
    ),
    "openrouter": ("convert/dialects/openai_chat.py",),
    "ollama": ("convert/dialects/ollama.py", "providers/machine.py", "providers/download.py"),
    "google gemini": ("convert/dialects/google*.py", "agents/claude_code/command.py", "guard/protected.py"),
    "lmstudio": (),
    "deepseek": (),
    "zhipu glm zai bigmodel": (),
    "minimax": (),
    "moonshot kimi": (),
    "vercel": ("server/streams/response.py",),
    "groq": ("convert/dialects/openai_chat_stream.py",),
    "mistral": (),
    "xai grok": (),
    "llama xllamacpp qwen smollm huggingface": ("providers/machine.py", "providers/weights.py", "providers/download.py"),
    "brave tavily searxng": ("tools/builtin/web_search.py",),
}
NAMES_ALL = (
    "plugins/__init__.py",  # the built-in tables
    "agents/known.py",  # the table of known agents
    "imports/unread_folders.py",  # the table of programs without a reader
    "config/home.py",  # the table of key variables
    "cli/tree/*",  # examples of commands
    "guard/secrets.py",  # the shapes of keys
    "providers/catalogue.py",  # which weights belong to whom
    "providers/shapes.py",
    "providers/endpoints/*",  # one place per endpoint
    "convert/agents/*",  # streams and files of outside agents
    "formats/agents/*",  # files of programs that call providers, with their own names for them
    "formats/apps/*",
    "formats/editors/*",
    "formats/recording/captures.py",
    "formats/anthropic.py",
    "formats/openai.py",
    "formats/md.py",
    "testing/*",
)


def spoken(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the names and strings that a program acts on, with their lines. Comments and docstrings may name vendors."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, Function | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


def stray_vendors(root: Path) -> list[str]:
    found: set[str] = set()
    for name, tree in modules(root):
        if any(fnmatch(name, pattern) for pattern in NAMES_ALL):
            continue
        spoken_words = [(line, re.split(r"[^a-z]+", words(text).strip())) for line, text in spoken(tree)]
        for vendor, files in VENDORS.items():
            if not any(fnmatch(name, pattern) for pattern in files):
                found |= {f"{name}:{line}: {word}" for line, found_words in spoken_words for word in vendor.split() if word in found_words}
    return sorted(found)


def test_names_come_from_the_glossary(repository: Path) -> None:
    none_of(foreign_names(repository / "src" / "moot"))


def test_modules_are_named_by_nouns(repository: Path) -> None:
    none_of(odd_module_names(repository / "src" / "moot"))


def test_a_vendor_is_named_in_its_own_adapter_only(repository: Path) -> None:
    none_of(stray_vendors(repository / "src" / "moot"))


@pytest.mark.parametrize(
    ("room", "source", "fault"),
    [
        ("types", "class Turn:\n    text: str", "'Turn': write 'run'"),
        ("types", "class Run:\n    msg: str", "'msg': write 'message'"),
        ("runtime", "def toolResult(): ...", "'toolResult': write 'tool output'"),
        ("store", "SQL = 'CREATE TABLE chat (id TEXT, turn TEXT) STRICT'", "'chat': write 'conversation'"),
        ("store", "SQL = 'create table run (id TEXT, execution BLOB)'", "'execution': write 'run'"),
    ],
)
def test_a_foreign_name_is_reported(tmp_path: Path, room: str, source: str, fault: str) -> None:
    plant(tmp_path, {f"{room}/a.py": source})
    assert f"{room}/a.py: {fault}" in foreign_names(tmp_path)


@pytest.mark.parametrize("name", ["store/searching.py", "cli/told.py", "store/searching/__init__.py", "cli/_giving.py"])
def test_an_odd_module_name_is_reported(tmp_path: Path, name: str) -> None:
    plant(tmp_path, {name: "x = 1", "store/search.py": "x = 1", "store/recording.py": "x = 1"})
    assert [line.partition(":")[0] for line in odd_module_names(tmp_path)] == [name]


def test_foreign_words_are_fine_at_the_border(tmp_path: Path) -> None:
    plant(tmp_path, {"convert/a.py": "def tool_use_to_call(): ...\nclass Turn: ...", "providers/a.py": "def execution(): ..."})
    plant(tmp_path, {"types/a.py": "class Run:\n    agent_session_id: str\n    returned: int\n    payload: int"})
    assert foreign_names(tmp_path) == []


@pytest.mark.parametrize("source", ["x = 'ANTHROPIC_API_KEY'", "def ask_claude(): ...", "import m\nm.Anthropic()", "class ClaudeRun: ..."])
def test_a_stray_vendor_is_named(tmp_path: Path, source: str) -> None:
    plant(tmp_path, {"agents/loop.py": source, "engine/runs.py": source})
    assert {line.partition(":")[0] for line in stray_vendors(tmp_path)} == {"agents/loop.py", "engine/runs.py"}


def test_a_vendor_at_home_and_in_prose_is_fine(tmp_path: Path) -> None:
    source = '"""As Anthropic does it."""\n# Claude sends this twice\nx = 1\n"""Anthropic counts from 1."""\n'
    plant(
        tmp_path,
        {"agents/loop.py": source, "providers/endpoints/vendors.py": "x = 'ANTHROPIC_API_KEY'", "plugins/__init__.py": "x = 'anthropic'"},
    )
    assert stray_vendors(tmp_path) == []
