"""Python files as syntax trees, for the checks of this folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _parsed(path: Path, _changed: int) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    """Return every Python file below the folder, except for npm packages: relative path and content."""
    for path in sorted(path for path in root.rglob("*.py") if "node_modules" not in path.parts):
        yield path.relative_to(root).as_posix(), _parsed(path, path.stat().st_mtime_ns)


def room_of(name: str) -> str:
    """Return the room of a path below `src/moot`; a loose file is its own room."""
    return name.partition("/")[0].removesuffix(".py")


def none_of(found: Sequence[object]) -> None:
    """Fail with one line per finding."""
    assert not found, "\n" + "\n".join(map(str, found))


def plant(root: Path, files: dict[str, str]) -> Path:
    """Write a small tree below `root`, given paths and contents."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
