"""Files, functions and classes stay small, and no check is switched off for a whole file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from style.tree import Function, modules, none_of, plant

FILE_LINES = 500
FUNCTION_LINES = 60
PUBLIC_METHODS = 12


def too_large(root: Path) -> list[str]:
    found: list[str] = []
    for name, tree in modules(root):
        lines = (root / name).read_text(encoding="utf-8").count("\n")
        if lines > FILE_LINES:
            found.append(f"{name}: {lines} lines")
        for node in ast.walk(tree):
            if isinstance(node, Function) and (size := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES:
                found.append(f"{name}: {node.name} has {size} lines")
            if isinstance(node, ast.ClassDef):
                public = [item.name for item in node.body if isinstance(item, Function) and not item.name.startswith("_")]
                if len(public) > PUBLIC_METHODS:
                    found.append(f"{name}: {node.name} has {len(public)} public methods")
    return found


BLANKET = re.compile(r"#\s*(type:\s*ignore(?!\[)|pyright:\s*(ignore(?!\[)|basic|standard|off)|noqa(?!:\s*[A-Z]+\d)|ruff:\s*noqa)")


def blanket_ignores(root: Path) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()}"
        for name, _ in modules(root)
        for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), 1)
        if BLANKET.search(line)
    ]


def complex_without_match(root: Path) -> list[str]:
    """Return the functions that are exempt from the complexity limit without a `match` over wire kinds."""
    found: list[str] = []
    for name, tree in modules(root):
        lines = (root / name).read_text(encoding="utf-8").splitlines()
        for node in ast.walk(tree):
            if (
                isinstance(node, Function)
                and "C901" in lines[node.lineno - 1]
                and not any(isinstance(item, ast.Match) for item in ast.walk(node))
            ):
                found.append(f"{name}: {node.name}")
    return found


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "docs"])
def test_everything_is_small_enough(repository: Path, folder: str) -> None:
    none_of(too_large(repository / folder))


@pytest.mark.parametrize("folder", ["src", "benchmarks", "docs"])
def test_no_check_is_disabled_for_a_whole_file(repository: Path, folder: str) -> None:
    none_of(blanket_ignores(repository / folder))


def test_only_a_match_may_be_complex(repository: Path) -> None:
    none_of(complex_without_match(repository / "src"))


def test_oversized_code_is_reported(tmp_path: Path) -> None:
    long_function = "def long():\n" + "    x = 1\n" * FUNCTION_LINES
    methods = "class Wide:\n" + "".join(f"    def m{n}(self): ...\n" for n in range(PUBLIC_METHODS + 1)) + "    def _hidden(self): ...\n"
    plant(
        tmp_path,
        {"room/a.py": long_function, "room/b.py": methods, "room/c.py": "\n" * (FILE_LINES + 1), "room/fine.py": "x = 1\n" * FILE_LINES},
    )
    assert too_large(tmp_path) == [
        "room/a.py: long has 61 lines",
        "room/b.py: Wide has 13 public methods",
        "room/c.py: 501 lines",
    ]


@pytest.mark.parametrize("comment", ["# type: ignore", "# pyright: basic", "# pyright: ignore", "# noqa", "#noqa: why", "# ruff: noqa"])
def test_a_blanket_ignore_is_reported(tmp_path: Path, comment: str) -> None:
    plant(tmp_path, {"a.py": f"x = 1  {comment}\n", "fine.py": "x = 1  # noqa: E501\ny = 2  # pyright: ignore[reportPrivateUsage]\n"})
    assert blanket_ignores(tmp_path) == [f"a.py:1: x = 1  {comment}"]


def test_a_complex_function_without_match_is_reported(tmp_path: Path) -> None:
    fine = "def kinds(x):  # noqa: C901\n    match x:\n        case 1:\n            return 2\n"
    plant(tmp_path, {"a.py": "def branches(x):  # noqa: C901\n    return x\n", "fine.py": fine})
    assert complex_without_match(tmp_path) == ["a.py: branches"]
