"""Git in a project's folder, with real repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from moot.errors import Refused, UsageError
from moot.features.projects.git import Git

pytestmark = pytest.mark.anyio


def git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "shop"
    place.mkdir()
    git(place, "init", "--quiet", "--initial-branch=main")
    for name, value in (("user.name", "Ada"), ("user.email", "ada@example.org"), ("commit.gpgSign", "false")):
        git(place, "config", name, value)
    for name in ("a.txt", "b.txt", "c d.txt"):
        (place / name).write_text(f"{name}\n" * 9)
    git(place, "add", ".")
    git(place, "commit", "--quiet", "--message=first")
    return place


async def test_status_names_staged_unstaged_and_untracked_files(root: Path) -> None:
    git(root, "mv", "b.txt", "moved é.txt")
    (root / "a.txt").write_text("changed\n")
    (root / "c d.txt").unlink()
    (root / "new" / "deep").mkdir(parents=True)
    (root / "new" / "deep" / "x.txt").write_text("x")
    status = await Git(root).status()
    assert status is not None
    assert (status.branch, status.commit) == ("main", git(root, "rev-parse", "HEAD").strip())
    assert [(file.path, file.change, file.before) for file in status.staged] == [("moved é.txt", "renamed", "b.txt")]
    assert [(file.path, file.change) for file in status.unstaged] == [("a.txt", "modified"), ("c d.txt", "deleted")]
    assert [(file.path, file.change) for file in status.untracked] == [("new/", "untracked")]
    assert (status.staged_count, status.unstaged_count, status.untracked_count) == (1, 2, 1)


async def test_changes_are_staged_unstaged_and_committed(root: Path) -> None:
    repository = Git(root)
    (root / "a.txt").write_text("changed\n")
    (root / "c d.txt").unlink()
    await repository.stage(["a.txt", "c d.txt"])
    diff, cut = await repository.diff("a.txt", staged=True)
    assert "+changed" in diff and not cut
    await repository.unstage(["c d.txt"])
    commit = await repository.commit("fix: change a\n\nand say why")
    assert git(root, "show", "--name-only", "--format=%H %s", "HEAD").split("\n")[0] == f"{commit} fix: change a"
    status = await repository.status()
    assert status is not None
    assert ([file.path for file in status.staged], [file.path for file in status.unstaged]) == ([], ["c d.txt"])
    await repository.stage([])
    assert (await repository.diff("c d.txt", staged=True))[0].startswith("diff --git")
    await repository.unstage([])
    with pytest.raises(UsageError, match="git commit failed"):
        await repository.commit("nothing")


async def test_commits_and_changed_lines_are_those_below_the_folder(root: Path) -> None:
    inner = root / "inner"
    inner.mkdir()
    (inner / "x.txt").write_text("x\n")
    (inner / "x.bin").write_bytes(b"\0")
    repository = Git(inner)
    await repository.stage([])
    await repository.commit("second\twith a tab\n\nand a body")
    (inner / "x.txt").write_text("y\nz\n")
    (inner / "x.bin").write_bytes(b"\0\1")
    (root / "a.txt").write_text("outside\n")
    head = git(root, "rev-parse", "HEAD").strip()
    assert await repository.changed_lines(head) == (2, 1)
    (only,) = await repository.log(9)
    assert (only.hash, only.author, only.subject) == (head, "Ada", "second\twith a tab")
    assert [commit.subject for commit in await Git(root).log(1)] == ["second\twith a tab"]


async def test_reading_runs_no_program_that_the_repository_configures(root: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho ran >> {proof}\ncat\n")
    program.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "core.pager", "pager.status", "pager.diff"):
        git(root, "config", name, str(program))
    for name in ("filter.a=b.clean", "filter.a.process", "filter.b.clean", "diff.seen.textconv", "diff.run.command"):
        git(root, "config", name, str(program))
    git(root, "config", "status.submoduleSummary", "true")
    (root / ".git" / "info" / "attributes").write_text("a.txt filter=a=b diff=seen\nb.txt filter=b diff=run\n'c d.txt' filter=a\n")
    for hook in ("post-index-change", "pre-commit"):
        (root / ".git" / "hooks" / hook).write_text(program.read_text())
        (root / ".git" / "hooks" / hook).chmod(0o755)
    for name in ("a.txt", "b.txt", "c d.txt"):
        (root / name).write_text(f"{name}!\n" * 9)
        os.utime(root / name, (1, 1))
    repository = Git(root)
    status = await repository.status()
    assert status is not None and status.unstaged_count == 3
    for name in ("a.txt", "b.txt", "c d.txt"):
        assert f"+{name}!" in (await repository.diff(name, staged=False))[0]
        await repository.diff(name, staged=True)
    git(root, "config", "log.showSignature", "true")
    git(root, "config", "gpg.program", str(program))
    assert await repository.changed_lines("HEAD") == (27, 27) and len(await repository.log(5)) == 1
    for name, value in (("url", str(tmp_path)), ("promisor", "true"), ("uploadpack", str(program))):
        git(root, "config", f"remote.origin.{name}", value)
    git(root, "config", "extensions.partialClone", "origin")
    blob = git(root, "rev-parse", "HEAD:a.txt").strip()
    (root / ".git" / "objects" / blob[:2] / blob[2:]).rename(tmp_path / "blob")
    with pytest.raises(UsageError, match="git diff failed"):
        await repository.diff("a.txt", staged=False)
    (tmp_path / "blob").rename(root / ".git" / "objects" / blob[:2] / blob[2:])
    assert not proof.exists()
    git(root, "config", "--unset", "core.fsmonitor")
    await repository.stage(["b.txt"])
    assert proof.exists(), "staging runs filters, as `git add` does"
    proof.unlink()
    await repository.commit("with hooks")
    assert proof.exists(), "committing runs hooks, as `git commit` does"


async def test_a_folder_in_a_repository_is_limited_to_what_is_below_it(root: Path) -> None:
    inner = root / "inner"
    inner.mkdir()
    (inner / "x.txt").write_text("x\n")
    (root / "a.txt").write_text("outside\n")
    repository = Git(inner)
    status = await repository.status()
    assert status is not None
    assert ([file.path for file in status.unstaged], [file.path for file in status.untracked]) == ([], ["./"])
    (inner / "y.txt").write_text("y\n")
    git(inner, "add", "y.txt")
    git(inner, "commit", "--quiet", "--message=y")
    status = await repository.status()
    assert status is not None and [file.path for file in status.untracked] == ["x.txt"]
    await repository.stage([])
    assert "a.txt" not in git(root, "diff", "--cached", "--name-only")
    for path in ("../a.txt", str(root / "a.txt"), "", "x/../../a.txt"):
        with pytest.raises(Refused):
            await repository.stage([path])
        with pytest.raises(Refused):
            await repository.diff(path, staged=False)
    git(root, "add", "a.txt")
    with pytest.raises(Refused, match=r"'a\.txt'"):
        await repository.commit("both")
    git(root, "reset", "--quiet", "a.txt")
    await repository.commit("inner only")
    assert git(root, "show", "--name-only", "--format=", "HEAD") == "inner/x.txt\n"


async def test_nothing_is_committed_if_the_list_of_staged_files_is_too_long_to_check(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = root / "inner"
    inner.mkdir()
    (inner / "x.txt").write_text("x\n")
    (root / "outside.txt").write_text("outside\n")  # after inner/x.txt in the list
    git(root, "add", ".")
    before = git(root, "rev-parse", "HEAD")
    monkeypatch.setattr("moot.features.projects.git.STATUS_BYTES", len("inner/x.txt\0"))
    with pytest.raises(UsageError, match="produced too much output"):
        await Git(inner).commit("inner only")
    assert git(root, "rev-parse", "HEAD") == before


async def test_outside_of_a_repository_there_is_no_status(tmp_path: Path) -> None:
    assert await Git(tmp_path).status() is None
    with pytest.raises(UsageError, match="git add failed"):
        await Git(tmp_path).stage([])


async def test_in_a_repository_without_commits_files_are_staged_and_unstaged(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    (tmp_path / "x").write_text("x")
    repository = Git(tmp_path)
    await repository.stage([])
    status = await repository.status()
    assert status is not None and (status.branch, status.commit, status.staged_count) == ("main", None, 1)
    assert await repository.changed_lines(None) == (1, 0)
    with pytest.raises(UsageError, match="git log failed"):
        await repository.log(1)
    await repository.unstage(["x"])
    status = await repository.status()
    assert status is not None and (status.staged_count, status.untracked_count) == (0, 1)
