"""Forbidden code: shell strings, SQL built from text, access to the database outside the store."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from style.tree import Function, modules, none_of, plant, room_of

_SQL = re.compile(
    r"^\s*(select\s|insert\s+(or\s+\w+\s+)?into\s|update\s+\w+\s+set|delete\s+from|replace\s+into|create\s+(virtual\s+)?(table|index|trigger|view|unique)"
    r"|drop\s+(table|index)|alter\s+table|pragma\s|with\s+\w+.*\bas\b|savepoint\s|release\s|rollback|attach\s)",
    re.IGNORECASE,
)


Scope = dict[str, list[ast.expr | None]]
"""Names of a function (and of enclosing ones) → the values bound to them; None = a value that can't be determined."""


def _first_text(node: ast.expr) -> str:
    """Yield the constant beginnings of a composed string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr) and node.values:
        return _first_text(node.values[0])
    return _first_text(node.left) if isinstance(node, ast.BinOp) else ""


def _bind(scope: Scope, target: ast.expr, value: ast.expr | None) -> None:
    if isinstance(target, ast.Name):
        scope.setdefault(target.id, []).append(value)
    elif isinstance(target, ast.Tuple):
        pairs = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else [None] * len(target.elts)
        for name, piece in zip(target.elts, pairs, strict=True):
            _bind(scope, name, piece)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a module's own statements without its functions, or all of a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function) and not isinstance(node, Function):
            continue
        yield child
        yield from ast.walk(child) if isinstance(node, Function) else _own(child)


def _rows(source: ast.expr, scope: Scope) -> list[ast.expr | None]:
    """Return the values that a loop over an expression may bind."""
    lists = scope.get(source.id, [None]) if isinstance(source, ast.Name) else [source]
    return [row for value in lists for row in (value.elts if isinstance(value, ast.List | ast.Tuple) else [None])]


def _scope(function: ast.AST, outer: Scope) -> Scope:
    """Return the values bound to a function's names, anywhere in it."""
    scope = {name: list(values) for name, values in outer.items()}
    if isinstance(function, Function):
        arguments = function.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            literal = argument.annotation is not None and ast.unparse(argument.annotation) == "LiteralString"
            scope[argument.arg] = [ast.Constant("")] if literal else [None]
    for node in _own(function):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    _bind(scope, target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
                _bind(scope, target, value)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "insert"), args=[*_, value]):
                scope.setdefault(name, []).append(ast.List([value]))
            case _:
                pass
    for node in _own(function):
        if isinstance(node, ast.For):
            for row in _rows(node.iter, scope):
                _bind(scope, node.target, row)
    return scope


def _inside(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, outer: Scope) -> Scope:
    """Return the values bound to names inside a comprehension, which has its own scope."""
    scope: Scope = {}
    for generator in node.generators:
        for row in _rows(generator.iter, outer):
            _bind(scope, generator.target, row)
    return outer | scope


def _is_fixed(node: ast.expr | None, scope: Scope, seen: frozenset[str] = frozenset()) -> bool:
    """Return True if an expression can only be text from the source, or a number."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            values = scope.get(name, [])
            return name.isupper() or name in seen or (bool(values) and all(_is_fixed(value, scope, seen | {name}) for value in values))
        case ast.JoinedStr(values=pieces) | ast.List(elts=pieces) | ast.Tuple(elts=pieces):
            return all(_is_fixed(piece, scope, seen) for piece in pieces)
        case ast.FormattedValue(value=value) | ast.Starred(value=value):
            return _is_fixed(value, scope, seen)
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, op=ast.Add(), right=other):
            return _is_fixed(one, scope, seen) and _is_fixed(other, scope, seen)
        case ast.BinOp(left=piece, op=ast.Mult()):
            return _is_fixed(piece, scope, seen)
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[pieces]):
            return _is_fixed(pieces, scope, seen)
        case ast.Call(func=ast.Attribute(value=value, attr="replace"), args=pieces):
            return all(_is_fixed(piece, scope, seen) for piece in (value, *pieces))
        case ast.Call(func=ast.Name(id="len" | "int" | "placeholders")):
            return True
        case _:
            return False


def _is_made(node: ast.AST, scope: Scope) -> bool:
    """Return True if a string is SQL that may contain foreign text."""
    match node:
        case ast.JoinedStr() | ast.BinOp(op=ast.Mod() | ast.Add()):
            return bool(_SQL.match(_first_text(node))) and not _is_fixed(node, scope)
        case ast.Call(func=ast.Attribute(attr="format", value=value)):
            return bool(_SQL.match(_first_text(value)))
        case _:
            return False


def made_sql(root: Path) -> list[str]:
    found: list[str] = []

    def look(node: ast.AST, scope: Scope, name: str) -> None:
        if isinstance(node, Function | ast.Module):
            scope = _scope(node, scope)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            scope = _inside(node, scope)
        if _is_made(node, scope):
            found.append(f"{name}:{getattr(node, 'lineno', 0)}: SQL made of what is not in the source")
            return
        for child in ast.iter_child_nodes(node):
            look(child, scope, name)

    for name, tree in modules(root):
        look(tree, {}, name)
    return found


def shells(root: Path) -> list[str]:
    """Return commands that run through a shell implicitly; the shell tool starts its shell as a program with the command as an argument."""
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


KNOW_THE_NAME = ("config/settings.py", "guard/roots.py")
"""Files that contain the database's path or warn about it; neither opens it."""


THEIR_DATABASES = "formats/kit/database.py"
"""It opens private copies of other programs' files, never moot's."""


def databases(root: Path) -> list[str]:
    """Return files outside the store that access SQLite or the database's files by name."""
    found: list[str] = []
    for name, tree in modules(root):
        if room_of(name) == "store" or name == THEIR_DATABASES:
            continue
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=names) if {alias.name.partition(".")[0] for alias in names} & {"sqlite3", "pysqlite3"}:
                    found.append(f"{name}:{node.lineno}: imports SQLite")
                case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in ("sqlite3", "pysqlite3"):
                    found.append(f"{name}:{node.lineno}: imports SQLite")
                case ast.Constant(value=str(value)) if re.search(r"moot\.db\b", value) and name not in KNOW_THE_NAME and " " not in value:
                    found.append(f"{name}:{node.lineno}: names the database's file")
                case _:
                    pass
    return found


def crash_points(root: Path) -> Iterator[tuple[str, str | None]]:
    """Return the crash points: file and line, and the point's name (None if it is not a literal)."""
    for name, tree in modules(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("crash.point", "point", "crash_point"):
                first = node.args[0] if node.args else None
                yield f"{name}:{node.lineno}", first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def bad_crash_points(root: Path) -> list[str]:
    points = list(crash_points(root))
    times = Counter(point for _, point in points)
    return [f"{where}: {point or 'not a literal'}" for where, point in points if point is None or times[point] > 1]


def test_sql_is_never_built_from_text(repository: Path) -> None:
    none_of(made_sql(repository / "src" / "moot"))


def test_no_command_runs_through_a_shell(repository: Path) -> None:
    none_of(shells(repository / "src" / "moot"))


def test_only_the_store_touches_the_database(repository: Path) -> None:
    none_of(databases(repository / "src" / "moot"))


def test_crash_points_have_unique_names(repository: Path) -> None:
    none_of(bad_crash_points(repository / "src" / "moot"))


@pytest.mark.parametrize(
    "source",
    [
        'x = f"SELECT * FROM {table}"',
        'x = "select a from b where c = %s" % value',
        'x = "INSERT INTO t VALUES (" + marks + ")"',
        'x = "PRAGMA user_version = {}".format(n)',
        'x = f"""\n  UPDATE run SET {column} = ?"""',
        'def f(where):\n    return f"SELECT a FROM b WHERE {where}"',
        'def f(name):\n    where = ""\n    where = where + name\n    return f"SELECT a FROM b{where}"',
        'def f(names):\n    for name in names:\n        return f"SELECT {name} FROM b"',
        'def f(more):\n    wheres = ["a = 1"]\n    wheres.append(more)\n    return f"SELECT a FROM b WHERE {str.join(wheres)}"',
    ],
)
def test_sql_built_from_text_is_reported(tmp_path: Path, source: str) -> None:
    plant(tmp_path, {"store/a.py": source})
    assert len(made_sql(tmp_path)) == 1


@pytest.mark.parametrize(
    "source",
    [
        'x = "SELECT 1"\ny = f"selected {x}"\nz = "SELECT a " + "FROM b"',
        'COLUMNS = "a, b"\nx = f"SELECT {COLUMNS} FROM t LIMIT {len(x)}"',
        'def f(on):\n    where = " WHERE a = ?" if on else ""\n    return f"SELECT a FROM b{where}"',
        'def f(on):\n    wheres = ["a = ?"]\n    wheres.append("b = ?")\n    return f"SELECT a FROM b WHERE {\' AND \'.join(wheres)}"',
        'def f(on):\n    tries = [("a = ?", on)]\n    for where, value in tries:\n        run(f"SELECT a FROM b WHERE {where}", value)',
        'def f():\n    where = "a = 1"\n    return f"SELECT a FROM b WHERE {where}"\ndef g(where):\n    pass',
        "def f(rows):\n    return f\"SELECT a FROM b WHERE c IN ({','.join(['?'] * len(rows))})\"",
        'def f(rows):\n    x = [run(f"PRAGMA {name}") for name in ("a", "b")]\n    return {name: 1 for name in rows}',
        'def f(where: LiteralString):\n    return f"SELECT a FROM b WHERE {where} = ?"',
        'def f():\n    for name, value in (("id", 1), ("key", 2)):\n        run(f"SELECT 1 FROM b WHERE {name} = ?", value)',
    ],
)
def test_sql_of_fixed_pieces_is_fine(tmp_path: Path, source: str) -> None:
    plant(tmp_path, {"store/a.py": source})
    none_of(made_sql(tmp_path))


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


def test_duplicate_crash_points_are_reported(tmp_path: Path) -> None:
    plant(tmp_path, {"a.py": "crash.point('one')", "b.py": "crash.point('one')", "c.py": "crash.point('two')", "d.py": "crash.point(name)"})
    assert bad_crash_points(tmp_path) == ["a.py:1: one", "b.py:1: one", "d.py:1: not a literal"]
