"""Packages say what they hold and have few entries; each file opens with a docstring."""

from __future__ import annotations

import ast
from pathlib import Path

from style.tree import modules, none_of, plant

SHORTEST = 15
"""Characters of a package's first line."""
ENTRIES = 17
"""Files and folders in a package, apart from its `__init__.py`: a folder reads as a table of contents."""
LISTS = ("types",)
"""Packages with one file per kind of value. They grow with what moot supports."""


def package_faults(root: Path) -> list[str]:
    """Return the packages below root without a docstring, with a wrong `__all__`, and those with too many entries."""
    found: list[str] = []
    for path in sorted(root.glob("*/**/__init__.py")):
        where = path.relative_to(root).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if len((ast.get_docstring(tree) or "").partition("\n")[0]) < SHORTEST:
            found.append(f"{where}: no docstring")
        found += [f"{where}: {fault}" for fault in export_faults(tree)]
        entries = [entry for entry in path.parent.iterdir() if entry.suffix == ".py" or (entry / "__init__.py").exists()]
        if len(entries) - 1 > ENTRIES and path.parent.relative_to(root).as_posix() not in LISTS:
            found.append(f"{where}: {len(entries) - 1} entries")
    return found


def export_faults(tree: ast.Module) -> list[str]:
    """Return what is wrong with `__all__`."""
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and target.id == "__all__" and isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            names = ast.literal_eval(node.value)
            return [] if len(names) == len(set(names)) else ["__all__ names something twice"]
    return []


def without_docstring(root: Path) -> list[str]:
    """Return the files whose docstring is missing or empty."""
    return [name for name, tree in modules(root) if not (ast.get_docstring(tree) or "").strip(" .\n")]


def test_packages_have_a_docstring_and_few_entries(repository: Path) -> None:
    none_of(package_faults(repository / "src" / "moot"))


def test_every_file_opens_with_a_docstring(repository: Path) -> None:
    none_of(without_docstring(repository / "src" / "moot"))


def test_package_faults_are_reported(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "cellar/__init__.py": '"""The wine cellar of the house."""\n__all__ = ["wine", "wine"]',
            "attic/__init__.py": '"""."""\n__all__ = []',
            "hall/__init__.py": '"""The hall, which is far too crowded."""',
            **{f"hall/{number}.py": "" for number in range(ENTRIES + 1)},
        },
    )
    assert package_faults(tmp_path) == [
        "attic/__init__.py: no docstring",
        "cellar/__init__.py: __all__ names something twice",
        f"hall/__init__.py: {ENTRIES + 1} entries",
    ]


def test_a_file_without_a_docstring_is_reported(tmp_path: Path) -> None:
    plant(tmp_path, {"a.py": "x = 1", "b.py": '"""."""', "c.py": '"""A value."""'})
    assert without_docstring(tmp_path) == ["a.py", "b.py"]
