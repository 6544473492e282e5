"""Commands in linked worktrees: they can commit, and can't change the rest of the repository."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moot.guard.sandbox.protected import Watch
from moot.guard.worktrees import create
from unit.guard.sandbox_stage import EACH, Stage, build, check

pytestmark = pytest.mark.anyio

COMMIT = "echo x >> x && git add x && git commit -qm work"


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(params=EACH)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    """A repository with a commit, the branches `main` and `feature/old`, and two worktrees of moot."""
    await check(request.param)
    with build(request.param, tmp_path) as stage:
        git(stage.project, "checkout", "--quiet", "-b", "main")
        for name, value in (("user.name", "me"), ("user.email", "me@example.org")):
            git(stage.project, "config", name, value)
        (stage.project / "file").write_text("old\n")
        git(stage.project, "add", "file")
        git(stage.project, "commit", "--quiet", "--message", "first")
        git(stage.project, "branch", "feature/old")
        for name in ("parser", "other"):
            await create(str(stage.project), name)
        yield stage


def state(stage: Stage) -> dict[str, bytes]:
    """Return the contents of the files of the repository that no command in the worktree `parser` may change."""
    top = stage.project / ".git"
    own = ("objects/", "worktrees/parser/", "refs/heads/moot/parser", "logs/refs/heads/moot/parser")
    files = {str(path.relative_to(top)): path for path in top.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not name.startswith(own)}


async def run(stage: Stage, command: str, tree: Path | None = None) -> tuple[int | None, str]:
    """Run a command in a worktree, by default `parser`. Return its exit code and output."""
    folder = tree or stage.project / ".worktrees" / "parser"
    changes: Any = {"directory": folder, "writable": (folder,)}
    watch = Watch.start(replace(stage.confinement, **changes))
    done = await stage.run(f"cd {folder} && {command}", **changes)
    return done.code, (done.stdout + done.stderr).decode() + "".join(watch.finish())


async def test_a_command_can_commit_in_a_worktree_of_moot(stage: Stage) -> None:
    before = state(stage)
    assert await run(stage, f"{COMMIT} && git log --format=%s && git reflog -1 --format=%gs") == (0, "work\nfirst\ncommit: work\n")
    assert git(stage.project, "log", "--format=%s", "moot/parser") == "work\nfirst\n"
    assert git(stage.project, "reflog", "--format=%gs", "moot/parser").startswith("commit: work\n")
    assert state(stage) == before


async def test_a_command_can_commit_after_git_packed_the_branches(stage: Stage) -> None:
    git(stage.project, "pack-refs", "--all")
    assert not (stage.project / ".git" / "refs" / "heads" / "moot").exists()
    code, text = await run(stage, f"{COMMIT} && git rebase --quiet --root && git switch --quiet -c moot/second && {COMMIT}")
    assert code == 0, text
    assert git(stage.project, "log", "--format=%s", "moot/second") == "work\nwork\nfirst\n"


REFUSED = (
    "git update-ref refs/heads/main HEAD",
    "git update-ref refs/heads/new HEAD",
    "git branch -f feature/old HEAD",
    "git branch -D feature/old",
    "git tag v1",
    "git stash",
    "git worktree remove --force ../other",
    "git worktree add ../third",
    "git pack-refs --all",
    "git gc",
    "git --git-dir=../../.git symbolic-ref HEAD refs/heads/feature/old",
    "git --git-dir=../../.git update-ref HEAD moot/parser",
    "git --git-dir=../../.git reset --mixed",
    "rm ../../.git/index",
    "rm -r ../../.git/worktrees/other",
    "mv ../../.git/refs/heads/moot ../../.git/refs/heads/moved",
    "echo evil >> ../../.git/packed-refs",
    "echo evil > ../../.git/index.lock",
    "echo evil > ../../.git/ORIG_HEAD",
    "git symbolic-ref HEAD refs/heads/main && git commit --quiet --allow-empty -m evil",
    "git commit --quiet --allow-empty -m evil",  # on `main`
    "git symbolic-ref HEAD refs/heads/feature/old && git commit --quiet --allow-empty -m evil",
    "git commit --quiet --allow-empty -m evil",  # on `feature/old`
)
REASONS = (
    "unable to create directory for",
    "validation failed, cannot remove working tree",
    "Cannot save the current status",
    "Read-only file system",
    "Permission denied",
    "Device or resource busy",
    "No such file or directory",
    "Invalid cross-device link",
)


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
async def test_a_command_can_not_change_the_rest_of_the_repository(stage: Stage, packed: bool) -> None:
    if packed:
        git(stage.project, "pack-refs", "--all")
    code, text = await run(stage, f"{COMMIT} && echo y >> x")
    assert code == 0, text
    before = state(stage)
    for command in REFUSED:
        code, text = await run(stage, command)
        assert code and any(reason in text for reason in REASONS), f"{command}: {text}"
        assert state(stage) == before, command
    await run(stage, "echo evil > ../../file")
    assert git(stage.project, "status", "--porcelain", "--untracked-files=no") == ""


async def test_a_command_can_not_redirect_git_to_other_settings(stage: Stage) -> None:
    admin = stage.project / ".git" / "worktrees" / "parser"
    folder = stage.project / ".worktrees" / "parser"
    before = {name: (admin / name).read_text() for name in ("gitdir", "commondir")}
    await run(
        stage, f"mkdir evil; echo {folder}/evil > {admin}/commondir; echo evil > {admin}/gitdir; echo '[core]' > {admin}/config.worktree"
    )
    assert {name: (admin / name).read_text() for name in before} == before
    assert not (admin / "config.worktree").exists()


async def test_a_command_in_another_worktree_can_commit_to_its_branch_only(stage: Stage, tmp_path: Path) -> None:
    for branch in ("top", "feature/new"):
        tree = tmp_path / branch.replace("/", "-")
        git(stage.project, "worktree", "add", "--quiet", "-b", branch, str(tree))
        code, text = await run(stage, COMMIT, tree)
        assert code == 0, text
        assert git(stage.project, "log", "--format=%s", branch) == "work\nfirst\n"
        kept = {"main", "feature/old", "moot/parser"}
        if stage.mechanism == "landlock":  # it can't close files in a writable folder
            kept = {"main", "moot/parser"} if "/" in branch else set()
        for other in kept:
            code, text = await run(stage, f"git update-ref refs/heads/{other} HEAD", tree)
            assert code, f"{branch}: {other}: {text}"
            assert git(stage.project, "log", "--format=%s", other) == "first\n"


@pytest.mark.parametrize(
    "branch", ["refs/heads/main", "refs/heads/main/x", "refs/heads/../../hooks/x", "refs/heads/moot/link/x", "refs/heads/a\0"]
)
async def test_a_forged_branch_opens_nothing(stage: Stage, tmp_path: Path, branch: str) -> None:
    tree, top = tmp_path / "tree", stage.project / ".git"
    git(stage.project, "worktree", "add", "--quiet", "-b", "moot/tree", str(tree))
    (top / "refs" / "heads" / "moot" / "link").symlink_to(top / "hooks")
    (top / "worktrees" / "tree" / "HEAD").write_text(f"ref: {branch}\n")
    await run(stage, f"echo evil > {top}/refs/heads/main; echo evil > {top}/hooks/x; echo evil > {top}/refs/heads/new", tree)
    assert git(stage.project, "log", "--format=%s", "main") == "first\n"
    assert not (top / "hooks" / "x").exists() and not (top / "refs" / "heads" / "new").exists()


async def test_a_worktree_of_a_repository_without_a_checkout_can_commit(stage: Stage, tmp_path: Path) -> None:
    bare, tree = tmp_path / "bare", tmp_path / "tree"
    git(tmp_path, "clone", "--quiet", "--bare", str(stage.project), str(bare))
    git(bare, "worktree", "add", "--quiet", str(tree), "main")
    code, text = await run(
        stage, f"git config user.name me; {COMMIT.replace('git commit', 'git -c user.name=a -c user.email=b@c commit')}", tree
    )
    assert code == 0, text
    assert git(bare, "log", "--format=%s", "main") == "work\nfirst\n"


async def test_a_worktree_next_to_a_writable_checkout_leaves_it_writable(stage: Stage) -> None:
    folder = stage.project / ".worktrees" / "parser"
    done = await stage.run(COMMIT, writable=(stage.project, folder))
    assert done.code == 0, done.stderr
    assert git(stage.project, "log", "--format=%s", "main") == "work\nfirst\n"
