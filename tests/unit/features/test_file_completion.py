from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.features.projects import completion
from moot.features.projects.completion import FileIndex, FileIndexes
from moot.guard.paths import Paths


def test_files_that_fit_best_come_first() -> None:
    files = FileIndex(["src/", "src/app.py", "docs/application.md", "tests/test_app.py", "a/p/plan.txt", "README.md"])
    assert files.matches("app") == ["src/app.py", "docs/application.md", "tests/test_app.py", "a/p/plan.txt"]
    assert files.matches("", limit=2) == ["src/", "README.md"]
    assert files.matches("src/a") == ["src/app.py"]
    assert files.matches("[") == files.matches("zz") == []
    assert FileIndex([]).matches("a") == []


def rank(wanted: str, path: str) -> int | None:
    """Return the group of a match in the simplest way."""
    lowered = path.lower()
    if lowered.startswith(wanted):
        return 0
    if "/" not in wanted and lowered.rstrip("/").rpartition("/")[2].startswith(wanted):
        return 1
    letters = iter(lowered)
    return 2 if wanted in lowered else 3 if all(letter in letters for letter in wanted) else None


NAMES = st.lists(st.text("abA.^]-\\ ", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join)


@given(st.sets(NAMES, max_size=8), st.text("abA.^]-\\", max_size=3), st.integers(1, 9))
def test_matches_are_those_of_a_simple_search(files: set[str], typed: str, limit: int) -> None:
    ranked = sorted((found, len(path), path) for path in files if (found := rank(typed.lower(), path)) is not None)
    assert FileIndex([*files]).matches(typed, limit) == [path for _, _, path in ranked][:limit]


def test_a_folder_that_is_read_quickly_is_read_for_each_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "QUICK", 60.0)
    paths, folder = Paths((tmp_path,), tmp_path), str(tmp_path)
    (tmp_path / "one.txt").write_text("")
    indexes = FileIndexes()
    assert indexes.find(paths, folder)[0].matches("") == ["one.txt"]
    (tmp_path / "two.txt").write_text("")
    assert indexes.find(paths, folder)[0].matches("") == ["one.txt", "two.txt"]


def test_an_old_index_is_used_until_it_is_refreshed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "QUICK", 0.0)
    monkeypatch.setattr(completion, "MAX_AGE", 0.0)
    paths, folder = Paths((tmp_path,), tmp_path), str(tmp_path)
    indexes = FileIndexes()
    assert indexes.find(paths, folder)[0].matches("") == []
    (tmp_path / "one.txt").write_text("")
    index, is_old = indexes.find(paths, folder)
    assert (index.matches(""), is_old) == ([], True)
    indexes.refresh(paths, folder)
    assert indexes.find(paths, folder)[0].matches("") == ["one.txt"]
