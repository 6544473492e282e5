from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

pytestmark = pytest.mark.slow

TOLD = "import atexit, sys\natexit.register(lambda: sys.stderr.write('\\nIMPORTED ' + ' '.join(sorted(sys.modules)) + '\\n'))\n"
SHIPPED = frozenset(sys.stdlib_module_names) | {"sitecustomize", "moot"}
VENV = {"_virtualenv", "_distutils_hack"}
"""Modules that the environment imports by itself."""

CONNECTING = {"aiohappyeyeballs", "aiohttp", "aiosignal", "attr", "frozenlist", "idna", "multidict", "propcache", "yarl"}
"""aiohttp and its imports."""
LOOP = {"anyio", "sniffio", "typing_extensions", "uvloop"}  # anyio uses sniffio if something else has imported it
ABOVE_PLUGINS = {"agents", "config", "convert", "engine", "features", "knowledge", "providers", "runtime", "skills", "store", "tools"}
NEVER = {
    "importlib.metadata",
    "PIL",
    "fastapi",
    "genai_prices",
    "html_to_markdown",
    "prompt_toolkit",
    "pygments",
    "ruamel",
    "tree_sitter",
    "starlette",
    "uvicorn",
    "zstandard",
}

COMMANDS: dict[str, tuple[tuple[str, ...], set[str], set[str]]] = {
    # packages of others and of moot that a command may import
    "version": (("version",), {"orjson"}, {"cli", "errors", "guard", "plugins", "types"}),
    "completion": (
        ("completion", "words", "bash", "moot chat show "),
        {"orjson", "pysqlite3"},
        {"cli", "config", "errors", "guard", "plugins", "store", "types"},
    ),
    "chat list": (("chat", "list"), {"orjson", "pysqlite3"}, {"cli", "config", "convert", "errors", "guard", "plugins", "store", "types"}),
    "help": (("--help",), {"orjson"}, {"cli", "errors", "guard", "plugins", "types"}),
}


def imported(moot: MootProcess, tmp_path: Path, *arguments: str) -> set[str]:
    (tmp_path / "told").mkdir(exist_ok=True)
    (tmp_path / "told" / "sitecustomize.py").write_text(TOLD)
    moot.more = {"PYTHONPATH": str(tmp_path / "told")}
    ended = moot.run(*arguments)
    assert ended.returncode == 0, ended.stderr.decode()
    return set(ended.stderr.decode().rpartition("IMPORTED ")[2].split())


def rooms(names: set[str]) -> set[str]:
    return {name.split(".")[1] for name in names if name.startswith("moot.")} - {"__main__"}


def foreign(names: set[str]) -> set[str]:
    tops = {name.partition(".")[0] for name in names} - SHIPPED - VENV - {"__main__", "__mp_main__"}
    # shared by compiled packages, and platform-specific modules of the standard library
    return {name for name in tops if "cython" not in name and not name.startswith("_sysconfigdata")}


@pytest.fixture
def used(tmp_path: Path) -> Iterator[MootProcess]:
    """A home with one answered prompt."""
    process = make(tmp_path, "limits: {steps: 20}\n")
    for words in ("first", "second"):
        assert process.run("run", "-m", "demo", "--no-tools", words).returncode == 0
    yield process
    process.close()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_short_command_imports_only_what_it_needs(used: MootProcess, tmp_path: Path, name: str) -> None:
    arguments, packages, ours = COMMANDS[name]
    names = imported(used, tmp_path, *arguments)
    assert foreign(names) - packages == set()
    assert rooms(names) - ours == set()
    assert names & {"asyncio", "ssl", *NEVER} == set()
    assert {name for name in names if name.startswith("moot.convert.")} <= {"moot.convert.serialization"}


def test_managing_tokens_does_not_import_the_server(used: MootProcess, tmp_path: Path) -> None:
    names = imported(used, tmp_path, "tokens", "list")
    assert rooms(names) - {"cli", "config", "convert", "errors", "guard", "plugins", "store", "types"} == set()
    assert names & (NEVER - {"importlib.metadata"}) == set()  # pydantic looks for its own plugins


def test_a_run_in_a_pipe_imports_only_the_path_to_a_provider(tmp_path: Path) -> None:
    with ScriptedProcess([Reply(text="hi", times=0)]) as server:
        moot = make(tmp_path, server.config())
        for words in ("first", "second"):  # this creates the home and caches the configuration
            assert moot.run("run", words).returncode == 0
        names = imported(moot, tmp_path, "run", "hi")
        told = [tool["function"]["name"] for tool in json.loads(server.requests()[-1]["body"])["tools"]]
    assert {"read_file", "shell", "fetch_url"} <= set(told)
    assert foreign(names) - {"orjson", "pysqlite3", "msgspec", *CONNECTING, *LOOP} == set()
    assert rooms(names) - {"cli", "errors", "guard", "plugins", "types", *ABOVE_PLUGINS} == set()
    assert names & {"moot.tools.arguments", "moot.tools.basics", "moot.providers.endpoints.local", *NEVER} == set()


def test_a_run_imports_only_the_called_tool(tmp_path: Path) -> None:
    with ScriptedProcess([Reply(when="look", tool_calls=[ToolCall("list_files", {"path": "."})]), Reply(text="hi", times=0)]) as server:
        moot = make(tmp_path, server.config())
        names = imported(moot, tmp_path, "run", "look")
        output = json.loads(server.requests()[-1]["body"])["messages"][-1]
    assert output["role"] == "tool"
    assert "moot.tools.builtin.file_search" in names
    assert names & {"moot.tools.builtin.shell", "moot.tools.builtin.fetch_url", "html_to_markdown"} == set()
