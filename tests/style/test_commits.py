"""Commit subjects follow Conventional Commits, from the commit that added this check on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from style.tree import none_of

LONGEST = 72
TYPES = "build|chore|ci|docs|feat|fix|perf|refactor|revert|style|test"
SUBJECT = re.compile(rf"(?:{TYPES})(?:\([a-z0-9,-]+\))?!?: \S.*[^.]")


def subject_fault(subject: str) -> str | None:
    """Return what is wrong with a commit's subject, or None."""
    if len(subject) > LONGEST:
        return f"{subject}: {len(subject)} characters"
    return None if SUBJECT.fullmatch(subject) else f"{subject}: not of the form 'fix(search): describe the change'"


def _git(repository: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=repository, capture_output=True, text=True, check=True).stdout


def test_commit_subjects_are_conventional(repository: Path) -> None:
    if not (repository / ".git").exists():
        pytest.skip("not a git checkout")
    this = Path(__file__).relative_to(repository).as_posix()
    added = _git(repository, "log", "--diff-filter=A", "--format=%H", "--", this).split()
    if not added:
        pytest.skip("this check is not committed")
    subjects = _git(repository, "log", "--first-parent", "--format=%s", f"{added[-1]}..HEAD").splitlines()
    none_of([fault for fault in map(subject_fault, subjects) if fault])


@pytest.mark.parametrize(
    "subject",
    ["Fix the search", "fix(search) find it", "feature: add it", "fix: ends with a stop.", f"fix(search): {'x' * LONGEST}", "fix: "],
)
def test_other_subjects_are_reported(subject: str) -> None:
    assert subject_fault(subject)


@pytest.mark.parametrize("subject", ["fix(search): find words in other scripts", "feat!: require Python 3.12", "docs: shorten the README"])
def test_conventional_subjects_pass(subject: str) -> None:
    assert subject_fault(subject) is None
