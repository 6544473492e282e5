"""One thing, one word: names that we define come from the glossary, and a vendor's name stays in its own adapter (STYLE section 3)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from style.tree import Function, modules, none_of, plant, room_of

EVERYWHERE = frozenset[str]()
CORE = frozenset({"types", "store", "agents", "runtime", "engine"})
OURS = CORE | {"config", "cli", "plugins", "guard"}

BANNED: dict[str, frozenset[str]] = {
    # word → the rooms that may not name a thing so; EVERYWHERE = all of them
    "turn": OURS,
    "turns": OURS,
    "round": OURS - {"config"},  # its `_round_trip` is YAML's
    "rounds": OURS,
    "iteration": EVERYWHERE,
    "persona": EVERYWHERE,
    "profile": OURS,
    "bot": EVERYWHERE,
    "thread": frozenset({"types", "agents", "engine", "cli"}),
    "session": OURS,
    "sessions": OURS,
    "notebook": EVERYWHERE,
    "chat": frozenset({"types", "store", "runtime", "engine"}),
    "transcript": OURS - {"cli"},  # the command line draws one of a run
    "confirmation": EVERYWHERE,
    "consent": CORE,
    "job": OURS,  # the shell has jobs of its own
    "jobs": OURS,
    "execution": CORE,
    "workspace": EVERYWHERE,
    "repo": EVERYWHERE,
    "backend": EVERYWHERE,
    "harness": EVERYWHERE,
    "subscriber": EVERYWHERE,
    "broker": EVERYWHERE,
    "scheduler": EVERYWHERE,
    "frontend": EVERYWHERE,
    "payload": EVERYWHERE,
    "block": CORE,
    "blocks": CORE,
    "tool_use": OURS,
    "tool_result": OURS,
    "msg": EVERYWHERE,
    "req": EVERYWHERE,
    "cfg": EVERYWHERE,
    "manager": EVERYWHERE,
    "helper": EVERYWHERE,
    "helpers": EVERYWHERE,
    "util": EVERYWHERE,
    "utils": EVERYWHERE,
    "misc": EVERYWHERE,
}
KEPT_ON_PURPOSE = frozenset(
    {"agent_session_id", "session", "sessions", "session_of", "set_session", "_set_session", "Session", "SetSession"}
)
"""An outside agent's own handle, which the glossary calls so."""
KEPT_THERE = {"agents/outside/turn.py": frozenset({"turn", "Turn"})}
"""A turn is what an outside agent does for one prompt: the exchange with it."""

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


def banned_names(root: Path) -> list[str]:
    found: list[str] = []
    for name, tree in modules(root):
        room = room_of(name)
        names = {Path(name).stem, *defined_names(tree)} - KEPT_ON_PURPOSE - KEPT_THERE.get(name, frozenset())
        for word, rooms in BANNED.items():
            if rooms is EVERYWHERE or room in rooms:
                found += [
                    f"{name}: {defined!r} says {word!r}" for defined in sorted(names) if f" {word.replace('_', ' ')} " in words(defined)
                ]
    return found


VENDORS: dict[str, tuple[str, ...]] = {
    # a vendor's words → the files below src/moot that are its adapter, or that must tell it from others
    "anthropic claude": (
        "providers/anthropic*.py",
        "convert/*anthropic*.py",
        "convert/_thinking.py",
        "providers/_shapes.py",
        "providers/ollama.py",
        "agents/known/claude_code.py",
        "agents/claude_code*",
        "convert/*claude*",
        "convert/_acp_facts.py",
        "convert/wire.py",
        "formats/_captures.py",
        "formats/claude*",
        "cli/exporting.py",
        "cli/tree.py",
        "formats/anthropic*.py",
    ),
    "codex": (
        "agents/known/codex.py",
        "agents/codex*",
        "convert/*codex*",
        "convert/wire.py",
        "formats/_captures.py",
        "formats/codex*",
        "cli/exporting.py",
    ),
    "openai gpt": (
        "providers/*.py",
        "convert/openai*.py",
        "convert/_openai*.py",
        "convert/ollama_chat.py",
        "convert/codex_items.py",
        "formats/codex*",
        "types/facts.py",
        "agents/known/codex.py",
        "agents/codex*",
    ),
    "openrouter": ("providers/openrouter.py",),
    "ollama": (
        "convert/ollama*.py",
        "providers/ollama.py",
        "providers/_shapes.py",
        "providers/_local_machine.py",
        "providers/weights/pull.py",
    ),
    "google gemini": (
        "convert/google*.py",
        "convert/_google*.py",
        "providers/google.py",
        "providers/_shapes.py",
        "convert/gemini_stream.py",
        "agents/claude_code/command.py",  # the variables of those who sell its models
        "formats/_captures.py",
        "convert/_acp_facts.py",
    ),
    "lmstudio": ("providers/lm_studio.py",),
    "deepseek": ("providers/deepseek.py",),
    "zhipu glm zai bigmodel": ("providers/zhipu.py",),
    "minimax": ("providers/minimax.py",),
    "moonshot kimi": ("providers/moonshot.py",),
    "vercel": ("providers/vercel.py", "server/streams/response.py"),
    "groq": ("providers/groq.py", "convert/openai_stream.py"),
    "mistral": ("providers/mistral.py",),
    "xai grok": ("providers/xai.py",),
    "llama xllamacpp qwen smollm huggingface": (
        "providers/llama_cpp.py",
        "providers/local.py",
        "providers/_local*.py",
        "providers/weights/*.py",
    ),
    "brave tavily searxng": ("tools/web_search.py", "tools/_web_search*.py"),
}
NAMES_ALL = (
    "plugins/__init__.py",  # the table of what there is
    "agents/known/acp.py",  # the table of known agents
    "plugins/programs.py",
    "config/home.py",  # the table of key variables
    "cli/tree.py",  # examples of what may be typed
    "guard/secrets.py",  # the shapes of keys
    "providers/_families.py",  # which weights are whose
    "providers/openrouter.py",  # gateways: they resell the others' models under names of their own
    "providers/vercel.py",
    "testing/*",
    *(
        f"formats/{name}.py"
        for name in [
            "anthropic",
            "openai",
            "md",
            "chatgpt",
            "claude_ai",
            "opencode",
            "gemini",
            "qwen",
            "pi",
            "gptme",
            "vibe",
            "llm",
            "aichat",
            "open_webui",
            "lmstudio",
            "ollama",
        ]
    ),
    "formats/_parts_of_google.py",
    "formats/cherry/*",  # files of programs that call providers: their own names for them
    "formats/clai/*",
    "formats/mtm/*",
    "formats/tai/*",
    "formats/talkcody/*",
)


def spoken(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names and strings that a program acts on, with their lines; comments and docstrings may tell of vendors."""
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
        told = [(line, re.split(r"[^a-z]+", words(text).strip())) for line, text in spoken(tree)]
        for vendor, files in VENDORS.items():
            if not any(fnmatch(name, pattern) for pattern in files):
                found |= {f"{name}:{line}: {word}" for line, said in told for word in vendor.split() if word in said}
    return sorted(found)


def test_names_come_from_the_glossary(repository: Path) -> None:
    none_of(banned_names(repository / "src" / "moot"))


def test_a_vendor_is_named_in_its_own_adapter_only(repository: Path) -> None:
    none_of(stray_vendors(repository / "src" / "moot"))


@pytest.mark.parametrize(
    ("room", "source", "told"),
    [
        ("engine", "class RunManager: ...", "'RunManager' says 'manager'"),
        ("store", "def open_session(): ...", "'open_session' says 'session'"),
        ("types", "class Turn:\n    text: str", "'Turn' says 'turn'"),
        ("types", "class Run:\n    msg: str", "'msg' says 'msg'"),
        ("runtime", "def toolResult(): ...", "'toolResult' says 'tool_result'"),
        ("store", "SQL = 'CREATE TABLE job (id TEXT, workspace TEXT) STRICT'", "'job' says 'job'"),
        ("store", "SQL = 'create table run (id TEXT, payload BLOB)'", "'payload' says 'payload'"),
    ],
)
def test_a_banned_name_is_named(tmp_path: Path, room: str, source: str, told: str) -> None:
    plant(tmp_path, {f"{room}/a.py": source})
    assert f"{room}/a.py: {told}" in banned_names(tmp_path)


def test_a_banned_file_name_is_named(tmp_path: Path) -> None:
    plant(tmp_path, {"store/utils.py": "x = 1"})
    assert banned_names(tmp_path) == ["store/utils.py: 'utils' says 'utils'"]


def test_border_words_are_fine_at_the_border(tmp_path: Path) -> None:
    plant(tmp_path, {"convert/a.py": "def tool_use_to_call(): ...\nclass ContentBlock: ...", "providers/a.py": "def session(): ..."})
    plant(tmp_path, {"types/a.py": "class Run:\n    agent_session_id: str\n    returned: int\n    background: int"})
    assert banned_names(tmp_path) == []


@pytest.mark.parametrize("source", ["x = 'ANTHROPIC_API_KEY'", "def ask_claude(): ...", "import m\nm.Anthropic()", "class ClaudeRun: ..."])
def test_a_stray_vendor_is_named(tmp_path: Path, source: str) -> None:
    plant(tmp_path, {"agents/loop.py": source, "providers/groq.py": source})
    assert {line.partition(":")[0] for line in stray_vendors(tmp_path)} == {"agents/loop.py", "providers/groq.py"}


def test_a_vendor_at_home_and_in_prose_is_fine(tmp_path: Path) -> None:
    source = '"""As Anthropic does it."""\n# Claude sends this twice\nx = 1\n"""Anthropic counts from 1."""\n'
    plant(
        tmp_path, {"agents/loop.py": source, "providers/anthropic.py": "x = 'ANTHROPIC_API_KEY'", "plugins/__init__.py": "x = 'anthropic'"}
    )
    assert stray_vendors(tmp_path) == []
