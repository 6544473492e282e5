"""Each room tells its story, with a table of its files (STYLE section 4); each file opens with one line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from style.tree import modules, none_of, plant

_TABLE = re.compile(r"^\| (?:file|border)\b.*\n\|[-|]+\n((?:\|.*\n?)*)", re.MULTILINE)
_CELL = re.compile(r"^\|\s*((?:`\w+(?:\.py|/)?`,?\s*)+)\|\s*\S.*\|$", re.MULTILINE)
"""The first cell of a room's table: `log.py`, `log` for short, `migrations/`, or several of them."""
_FILE = re.compile(r"`(\w+)(\.py|/)?`")


def files_of(room: Path) -> set[str]:
    files = {path.name for path in room.glob("*.py")} - {"__init__.py"}
    return files | {f"{path.parent.name}/" for path in room.glob("*/__init__.py")}


def registered(root: Path) -> set[str]:
    """Files that a registry names, as `room/file.py`: the registry is their list, no table repeats it."""
    text = (root / "plugins" / "__init__.py").read_text(encoding="utf-8") if (root / "plugins").exists() else ""
    return {f"{path.replace('.', '/')}.py" for path in re.findall(r'": "moot\.([\w.]+):\w+"', text)}


def untold(root: Path) -> list[str]:
    """What is missing in the docstrings of the rooms below `root`."""
    listed = registered(root)
    found: list[str] = []
    for path in sorted(root.glob("*/**/__init__.py")):
        where = path.relative_to(root).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        story = ast.get_docstring(tree) or ""
        if len(story.partition("\n")[0]) < 20:
            found.append(f"{where}: no story")
        cells = [cell for rows in _TABLE.findall(story) for cell in _CELL.findall(rows)]
        rows = {name + (kind or ".py") for cell in cells for name, kind in _FILE.findall(cell)}
        found += [
            f"{where}: no row for {file}" for file in sorted(files_of(path.parent) - rows) if f"{path.parent.name}/{file}" not in listed
        ]
        found += [f"{where}: a row for {file}, which is not there" for file in sorted(rows - files_of(path.parent))]
        found += [f"{where}: {fault}" for fault in public_faults(tree)]
    return found


def public_faults(tree: ast.Module) -> list[str]:
    """What is wrong with `__all__`."""
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and target.id == "__all__" and isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            names = ast.literal_eval(node.value)
            return [] if len(names) == len(set(names)) else ["__all__ names something twice"]
    return ["no __all__"]


def unopened(root: Path) -> list[str]:
    """Files whose first line says nothing."""
    return [name for name, tree in modules(root) if not (ast.get_docstring(tree) or "").strip(" .\n")]


def test_every_room_tells_its_story(repository: Path) -> None:
    none_of(untold(repository / "src" / "moot"))


def test_every_file_opens_with_a_line(repository: Path) -> None:
    none_of(unopened(repository / "src" / "moot"))


def test_what_a_room_keeps_to_itself_is_named(tmp_path: Path) -> None:
    story = (
        '"""Where cellars are kept.\n\n| file | what it does |\n|---|---|\n| `wine`, `beer.py` | bottles |\n| `gone.py` | was here |\n"""\n'
    )
    plant(
        tmp_path,
        {
            "cellar/__init__.py": story,
            "cellar/wine.py": "",
            "cellar/beer.py": "",
            "cellar/coal.py": "",
            "cellar/deep/__init__.py": '"""."""\n__all__ = []',
        },
    )
    plant(
        tmp_path,
        {
            "plugins/__init__.py": '"""Where all the names are kept."""\nT = Registry({"port": "moot.cellar.port:Port"})',
            "cellar/port.py": "",
        },
    )
    assert untold(tmp_path) == [
        "cellar/__init__.py: no row for coal.py",
        "cellar/__init__.py: no row for deep/",
        "cellar/__init__.py: a row for gone.py, which is not there",
        "cellar/__init__.py: no __all__",
        "cellar/deep/__init__.py: no story",
        "plugins/__init__.py: no __all__",
    ]


def test_a_file_without_a_line_is_named(tmp_path: Path) -> None:
    plant(tmp_path, {"a.py": "x = 1", "b.py": '"""."""', "c.py": '"""What it holds."""'})
    assert unopened(tmp_path) == ["a.py", "b.py"]
