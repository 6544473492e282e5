"""Every promise in docs/faults.md names a test that exists, and no row is missing."""

from __future__ import annotations

import re
from pathlib import Path

from style.tree import none_of

ROWS = {
    *range(1, 27),
    *range(28, 31),
    *range(31, 40),
    44,
    45,
    49,
    54,
    56,
    57,
    63,
    68,
    *range(70, 77),
    *range(78, 83),
    85,
    *range(86, 96),
    98,
    99,
    100,
    *range(101, 110),
    112,
    113,
    114,
    115,
    117,
    118,
    119,
    120,
}
"""Rows that this version of moot promises."""


def rows(page: Path) -> list[list[str]]:
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def missing_tests(root: Path, page: Path) -> list[str]:
    """Return the rows without a test, and the named tests that do not exist."""
    found: list[str] = []
    for cells in rows(page):
        if cells[0] in ("row", "input"):
            continue
        named = re.findall(r"`(tests/[\w/.]+)::(\w+)`", cells[-1])
        if not named:
            found.append(f"no test for {cells[0]}")
        for path, name in named:
            file = root / path
            if not file.exists() or not re.search(rf"^(async )?def {name}\(", file.read_text(encoding="utf-8"), re.MULTILINE):
                found.append(f"{path}::{name}")
    return found


def test_every_named_test_exists(repository: Path) -> None:
    none_of(missing_tests(repository, repository / "docs" / "faults.md"))


def test_no_row_is_missing(repository: Path) -> None:
    numbers = [int(cells[0]) for cells in rows(repository / "docs" / "faults.md") if cells[0].isdecimal()]
    assert sorted(numbers) == sorted(ROWS)


def test_a_promise_without_a_test_is_reported(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text("async def test_there() -> None: ...\n")
    page = tmp_path / "faults.md"
    page.write_text(
        "| row | promised | shown by |\n|---|---|---|\n| 1 | a | `tests/test_x.py::test_there` |\n| 2 | b | |\n"
        "| 3 | c | `tests/test_x.py::test_gone` `tests/gone.py::test_there` |\n"
    )
    assert missing_tests(tmp_path, page) == ["no test for 2", "tests/test_x.py::test_gone", "tests/gone.py::test_there"]
