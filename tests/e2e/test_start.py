from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make

pytestmark = pytest.mark.timeout(30)

TOLD = "import atexit, sys\natexit.register(lambda: sys.stderr.write('\\nIMPORTED ' + ' '.join(sorted(sys.modules)) + '\\n'))\n"
SHIPPED = frozenset(sys.stdlib_module_names) | {"sitecustomize", "moot"}
VENV = {"_virtualenv", "_distutils_hack"}
"""What an environment of its own brings along."""

COMMANDS: dict[str, tuple[tuple[str, ...], set[str], set[str]]] = {
    # packages of others that a command may import, and rooms of ours
    "version": (("version",), {"orjson"}, {"cli", "errors", "guard", "plugins", "types"}),
    "completion": (
        ("completion", "words", "bash", "moot chat show "),
        {"orjson", "pysqlite3"},
        {"cli", "config", "errors", "guard", "plugins", "store", "types"},
    ),
    "chat list": (("chat", "list"), {"orjson", "pysqlite3"}, {"cli", "config", "errors", "guard", "plugins", "store", "types"}),
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
    return {name.partition(".")[0] for name in names} - SHIPPED - VENV - {"__main__", "__mp_main__"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pycache")


@pytest.fixture
def used(tmp_path: Path, cache: Path) -> Iterator[MootProcess]:
    """A home in which something was said."""
    process = make(tmp_path, cache, "limits: {steps: 20}\n")
    for words in ("first", "second"):
        assert process.run("run", "-m", "demo", "--no-tools", words).returncode == 0
    yield process
    process.close()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_short_command_imports_only_its_own(used: MootProcess, tmp_path: Path, name: str) -> None:
    arguments, packages, ours = COMMANDS[name]
    names = imported(used, tmp_path, *arguments)
    assert foreign(names) - packages == set()
    assert rooms(names) - ours == set()
    assert names & {"asyncio", "importlib.metadata", "ssl", "cyclopts"} == set()
