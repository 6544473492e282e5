"""What no file of ours may say: a shell string, SQL made of pieces, a database opened behind the store's back."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from style.tree import modules, plant, room_of

_SQL = re.compile(
    r"^\s*(select\s|insert\s+(or\s+\w+\s+)?into\s|update\s+\w+\s+set|delete\s+from|replace\s+into|create\s+(virtual\s+)?(table|index|trigger|view|unique)"
    r"|drop\s+(table|index)|alter\s+table|pragma\s|with\s+\w+.*\bas\b|savepoint\s|release\s|rollback|attach\s)",
    re.IGNORECASE,
)


def _first_text(node: ast.expr) -> str:
    """How a string made of pieces begins."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr) and node.values:
        return _first_text(node.values[0])
    return _first_text(node.left) if isinstance(node, ast.BinOp) else ""


def _is_made(node: ast.AST) -> bool:
    """Whether a string is put together from values: f-string, `%`, `+` with something not literal, `.format(…)`."""
    match node:
        case ast.JoinedStr(values=values):
            return any(isinstance(value, ast.FormattedValue) for value in values) and bool(_SQL.match(_first_text(node)))
        case ast.BinOp(op=ast.Mod() | ast.Add(), right=right):
            return bool(_SQL.match(_first_text(node))) and not isinstance(right, ast.Constant)
        case ast.Call(func=ast.Attribute(attr="format", value=value)):
            return bool(_SQL.match(_first_text(value)))
        case _:
            return False


def made_sql(root: Path) -> list[str]:
    return [
        f"{name}:{node.lineno}" for name, tree in modules(root) for node in ast.walk(tree) if isinstance(node, ast.expr) and _is_made(node)
    ]


def shells(root: Path) -> list[str]:
    """Commands that go through a shell by themselves; the shell tool starts its shell as a program, the command one argument."""
    found: list[str] = []
    for name, tree in modules(root):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called in ("os.system", "os.popen") or called.endswith("create_subprocess_shell"):
                found.append(f"{name}:{node.lineno}: {called}")
            if any(
                keyword.arg == "shell" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
                for keyword in node.keywords
            ):
                found.append(f"{name}:{node.lineno}: shell=")
    return found


def databases(root: Path) -> list[str]:
    """Files outside the store's room that reach for SQLite or for the database's files by name."""
    found: list[str] = []
    for name, tree in modules(root):
        if room_of(name) == "store":
            continue
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=names) if {alias.name.partition(".")[0] for alias in names} & {"sqlite3", "pysqlite3"}:
                    found.append(f"{name}:{node.lineno}: imports SQLite")
                case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in ("sqlite3", "pysqlite3"):
                    found.append(f"{name}:{node.lineno}: imports SQLite")
                case ast.Constant(value=str(value)) if (
                    re.search(r"moot\.db\b", value) and name != "config/settings.py" and " " not in value
                ):
                    found.append(f"{name}:{node.lineno}: names the database's file")
                case _:
                    pass
    return found


def crash_points(root: Path) -> Iterator[tuple[str, str | None]]:
    """Where the process can be told to die: file and line, and the point's name (None when it is no literal)."""
    for name, tree in modules(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("crash.point", "point", "crash_point"):
                first = node.args[0] if node.args else None
                yield f"{name}:{node.lineno}", first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def bad_crash_points(root: Path) -> list[str]:
    points = list(crash_points(root))
    times = Counter(point for _, point in points)
    return [f"{where}: {point or 'not a literal'}" for where, point in points if point is None or times[point] > 1]


def test_sql_is_never_put_together(repository: Path) -> None:
    assert made_sql(repository / "src" / "moot") == []


def test_no_command_goes_through_a_shell_by_itself(repository: Path) -> None:
    assert shells(repository / "src" / "moot") == []


def test_only_the_store_touches_the_database(repository: Path) -> None:
    assert databases(repository / "src" / "moot") == []


def test_crash_points_have_names_of_their_own(repository: Path) -> None:
    assert bad_crash_points(repository / "src" / "moot") == []


@pytest.mark.parametrize(
    "source",
    [
        'f"SELECT * FROM {table}"',
        '"select a from b where c = %s" % value',
        '"INSERT INTO t VALUES (" + marks + ")"',
        '"PRAGMA user_version = {}".format(n)',
        'f"""\n  UPDATE run SET {column} = ?"""',
    ],
)
def test_made_sql_is_named(tmp_path: Path, source: str) -> None:
    plant(tmp_path, {"store/a.py": f"x = {source}\n", "store/fine.py": 'x = "SELECT 1"\ny = f"selected {x}"\nz = "SELECT a " + "FROM b"\n'})
    assert {line.partition(":")[0] for line in made_sql(tmp_path)} == {"store/a.py"}


@pytest.mark.parametrize(
    "source", ["subprocess.run('ls', shell=True)", "os.system('ls')", "asyncio.create_subprocess_shell('ls')", "run('x', shell=on)"]
)
def test_a_shell_is_named(tmp_path: Path, source: str) -> None:
    plant(tmp_path, {"tools/a.py": source, "tools/fine.py": "subprocess.run(['sh', '-c', 'ls'], shell=False)"})
    assert [line.partition(":")[0] for line in shells(tmp_path)] == ["tools/a.py"]


@pytest.mark.parametrize("source", ["import sqlite3", "from pysqlite3 import dbapi2", "path = home / 'data/moot.db'", "x = 'moot.db-wal'"])
def test_a_way_around_the_store_is_named(tmp_path: Path, source: str) -> None:
    plant(tmp_path, {"cli/a.py": source, "store/fine.py": source})
    assert [line.partition(":")[0] for line in databases(tmp_path)] == ["cli/a.py"]


def test_crash_points_of_one_name_are_named(tmp_path: Path) -> None:
    plant(tmp_path, {"a.py": "crash.point('one')", "b.py": "crash.point('one')", "c.py": "crash.point('two')", "d.py": "crash.point(name)"})
    assert bad_crash_points(tmp_path) == ["a.py:1: one", "b.py:1: one", "d.py:1: not a literal"]
