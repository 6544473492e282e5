"""The import rule (STYLE section 2): import-linter's contracts hold, name every room, and fail on each kind of breach."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from style.tree import modules, none_of, plant

LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_logo=True, no_cache=True))"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Return import-linter's output for the package `moot` in that folder."""
    return subprocess.run([sys.executable, "-c", LINT], cwd=folder, capture_output=True, text=True, check=False)


def rooms_of(package: Path) -> set[str]:
    return {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()} - {"__init__"}


def contract(pyproject: Path, kind: str) -> dict[str, Any]:
    contracts = tomllib.loads(pyproject.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    return next(contract for contract in contracts if contract["type"] == kind)


def layers(pyproject: Path) -> list[list[str]]:
    return [[room.strip() for room in re.split(r"[|:]", layer)] for layer in contract(pyproject, "layers")["layers"]]


def import_faults(package: Path) -> list[str]:
    """Return imports that the contracts cannot see: below the top of a file, relative, or from the same file."""
    found: list[str] = []
    for name, tree in modules(package):
        room = "moot." + ".".join(Path(name).parts[:-1])
        # a choice between two packages may be in `try`, and in `if TYPE_CHECKING` if the type checker knows only one of them
        top = [item for node in tree.body for item in (ast.walk(node) if isinstance(node, ast.Try | ast.If) else [node])]
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom) and node not in top:
                found.append(f"{name}:{node.lineno}: not at the top")
            if isinstance(node, ast.ImportFrom) and node.level:
                found.append(f"{name}:{node.lineno}: relative")
            if isinstance(node, ast.ImportFrom) and node.module == room and not name.endswith("__init__.py"):
                if any((package.parent / f"{room}.{alias.name}".replace(".", "/")).with_suffix(".py").exists() for alias in node.names):
                    continue
                found.append(f"{name}:{node.lineno}: its own room's __init__")
    return found


def test_contracts_hold(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text((repository / "pyproject.toml").read_text())
    (tmp_path / "moot").symlink_to(repository / "src" / "moot")
    said = lint(tmp_path)
    assert said.returncode == 0, said.stdout + said.stderr


def test_layers_list_exactly_the_rooms_that_exist(repository: Path) -> None:
    listed = {room for layer in layers(repository / "pyproject.toml") for room in layer}
    ignored = set(contract(repository / "pyproject.toml", "layers")["exhaustive_ignores"])
    assert listed | ignored == rooms_of(repository / "src" / "moot")
    assert contract(repository / "pyproject.toml", "layers")["exhaustive"] is True


def test_no_package_imports_the_test_doubles(repository: Path) -> None:
    kept = {name.removeprefix("moot.") for name in contract(repository / "pyproject.toml", "forbidden")["source_modules"]}
    assert kept == rooms_of(repository / "src" / "moot") - {"testing"}


def test_imports_are_at_the_top(repository: Path) -> None:
    none_of(import_faults(repository / "src" / "moot"))


@pytest.fixture
def small(repository: Path, tmp_path: Path) -> Path:
    """A package with every room, one empty file each, under the project's own contracts."""
    (tmp_path / "pyproject.toml").write_text((repository / "pyproject.toml").read_text())
    rooms = [room for layer in layers(repository / "pyproject.toml") for room in layer] + ["testing"]
    plant(tmp_path, {"moot/__init__.py": ""} | {f"moot/{room}/__init__.py": "" for room in rooms})
    return tmp_path


def test_clean_rooms_pass(small: Path) -> None:
    said = lint(small)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize(
    ("broken", "files"),
    [
        ("rooms are layered", {"types/a.py": "import moot.store.b", "store/b.py": ""}),
        ("rooms are layered", {"store/a.py": "from moot.tools import b", "tools/b.py": ""}),
        (
            "rooms are layered",
            {"types/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import moot.engine.b", "engine/b.py": ""},
        ),
        ("rooms are layered", {"types/a.py": "def f():\n    import moot.engine.b", "engine/b.py": ""}),
        ("rooms are layered", {"cellar/__init__.py": ""}),
        ("no cycles inside a room", {"store/a.py": "import moot.store.b", "store/b.py": "import moot.store.a"}),
        (
            "no cycles inside a room",
            {"store/a.py": "import moot.store.b", "store/b.py": "import moot.store.c", "store/c.py": "import moot.store.a"},
        ),
        (
            "no cycles inside a room",
            {"store/sql/__init__.py": "", "store/sql/a.py": "import moot.store.sql.b", "store/sql/b.py": "import moot.store.sql.a"},
        ),
        ("product code never imports the doubles", {"runtime/a.py": "import moot.testing.b", "testing/b.py": ""}),
    ],
    ids=["upward", "sideways", "for types alone", "in a function", "undeclared room", "cycle", "cycle of three", "deep cycle", "doubles"],
)
def test_a_breach_breaks_its_contract(small: Path, broken: str, files: dict[str, str]) -> None:
    plant(small / "moot", files)
    said = lint(small)
    assert said.returncode == 1
    assert f"{broken} BROKEN" in said.stdout, said.stdout


def test_imports_that_contracts_cannot_see_are_named(tmp_path: Path) -> None:
    package = tmp_path / "moot"
    plant(package, {"store/__init__.py": "from moot.store.a import x", "store/a.py": "x = 1"})
    plant(package, {"store/b.py": "def f():\n    import os", "store/c.py": "from . import a", "store/d.py": "from moot.store import x"})
    plant(package, {"store/fine.py": "try:\n    import fast\nexcept ImportError:\n    import slow\nfrom moot.store import a"})
    assert import_faults(package) == [
        "store/b.py:2: not at the top",
        "store/c.py:1: relative",
        "store/d.py:1: its own room's __init__",
    ]
