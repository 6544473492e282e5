"""Commands in the sandbox, with each mechanism: work that must still be possible, and files that stay protected."""

import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from moot.guard.roots import repositories_around
from moot.guard.sandbox.protected import Watch
from unit.guard.sandbox_stage import EACH, SECRET, Stage, build, check

pytestmark = pytest.mark.anyio


@pytest.fixture(params=EACH)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    await check(request.param)
    with build(request.param, tmp_path) as stage:
        yield stage


async def test_moots_environment_is_not_passed(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("MOOT_TOKEN", SECRET)
    assert SECRET not in await stage.text("env; cat /proc/self/environ /proc/$$/environ")


async def test_a_token_can_not_be_made_for_moots_home(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    database = stage.home / "moot" / "data" / "moot.db"
    line = f"MOOT_HOME={stage.home}/moot {sys.executable} -m moot tokens create evil --scope admin; touch {database}"
    await stage.text(line)
    assert not database.exists()


async def test_resources_are_limited(stage: Stage):
    limits = (await stage.text("ulimit -c; ulimit -u")).split()
    assert limits[0] == "0"
    assert int(limits[1]) <= 8192


async def test_a_command_with_network_can_connect(stage: Stage):
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo connected"
        assert "connected" in await stage.text(connect, network=True)


async def test_a_project_can_be_worked_on(stage: Stage):
    done = await stage.run("echo hello > file && git add file && git -c user.name=a -c user.email=b@c commit -qm one && git log --oneline")
    assert done.code == 0, done.stderr
    assert (stage.project / "file").read_text() == "hello\n"
    assert await stage.text('echo x > "$TMPDIR/kept"') == ""
    assert await stage.text('cat "$TMPDIR/kept"; ls -d ~ >/dev/null && touch ~/.cached && ls -A ~') != ""
    assert not (stage.home / ".cached").exists()


async def test_python_of_moot_runs_inside(stage: Stage):
    done = await stage.run(f"{sys.executable} -c 'print(6 * 7)'")
    assert done.stdout == b"42\n", done.stderr


async def test_exit_codes_are_passed_on(stage: Stage):
    assert (await stage.run("exit 7")).code == 7


async def test_a_worktree_of_a_repository_elsewhere_can_commit(stage: Stage, tmp_path: Path):
    main, tree = tmp_path / "main", tmp_path / "tree"
    git = ["git", "-C", str(main), "-c", "user.name=a", "-c", "user.email=b@c"]
    subprocess.run(["git", "init", "--quiet", str(main)], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "one"], check=True)
    subprocess.run([*git, "worktree", "add", "--quiet", str(tree)], check=True, capture_output=True)
    command = "echo x > x && git add x && git -c user.name=a -c user.email=b@c commit -qm two; git config core.fsmonitor x"
    watch = Watch.start(replace(stage.confinement, directory=tree, writable=(tree,)))
    await stage.text(command, directory=tree, writable=(tree,))
    watch.finish()
    log = subprocess.run(["git", "-C", str(tree), "log", "--format=%s"], check=True, capture_output=True, text=True).stdout
    assert log == "two\none\n"
    assert "fsmonitor" not in (main / ".git" / "config").read_text()


async def test_a_subfolder_of_a_repository_can_commit_and_leaves_the_rest_alone(stage: Stage):
    folder = stage.project / "deep" / "sub"
    folder.mkdir(parents=True)
    (stage.project / "above").write_text("above\n")
    changes = {"directory": folder, "writable": (folder,), "repositories": repositories_around((folder,))}
    watch = Watch.start(replace(stage.confinement, **changes))  # type: ignore[arg-type]
    commit = "git add new && git -c user.name=a -c user.email=b@c commit -qm one"
    text = await stage.text(f"echo x > new && {commit}; git status --short; git log --format=%s; cat ../../above", **changes)
    assert "one\nabove\n" in text
    assert "?? ../../above" in text
    await stage.text(
        "echo x > ../../above; echo x > ../beside; git config core.fsmonitor x; echo x > ../../.git/config.worktree", **changes
    )
    watch.finish()
    assert (stage.project / "above").read_text() == "above\n"
    assert not (stage.project / "deep" / "beside").exists()
    assert "fsmonitor" not in (stage.project / ".git" / "config").read_text()
    assert not (stage.project / ".git" / "config.worktree").exists()


def test_a_repository_that_holds_the_home_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home, project = tmp_path / "home", tmp_path / "home" / "project"
    (project / "sub").mkdir(parents=True)
    (home / ".git").mkdir()
    monkeypatch.setenv("HOME", str(home))
    assert repositories_around((home, project, project / "sub")) == ()
    (project / ".git").mkdir()
    assert repositories_around((project, project / "sub")) == (project,)


async def test_a_forged_worktree_opens_nothing(stage: Stage, tmp_path: Path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {stage.outside}\n")
    assert SECRET not in await stage.text(f"cat {stage.outside}/file", directory=tree, writable=(tree,))


async def test_new_protected_files_go_to_the_quarantine(stage: Stage, tmp_path: Path):
    shutil.rmtree(stage.project / ".git")
    shutil.rmtree(stage.project / ".moot")
    watch = Watch.start(stage.confinement)
    await stage.text("git init -q .; git config core.fsmonitor ./evil; mkdir .moot; echo 'a: 1' > .moot/config.yaml")
    found = watch.finish()
    assert len(found) == 2
    assert not (stage.project / ".moot").exists()
    assert not (stage.project / ".git" / "config").exists()
    moved = [path.read_text() for path in (tmp_path / "quarantine").rglob("config*")]
    assert "a: 1\n" in moved
    assert any("fsmonitor" in text for text in moved)


async def test_a_new_repository_is_kept(stage: Stage):
    shutil.rmtree(stage.project / ".git")
    watch = Watch.start(stage.confinement)
    await stage.text("git init -q .")
    assert watch.finish() == []
    assert (stage.project / ".git" / "config").exists()


async def test_the_changed_version_of_a_protected_file_is_kept_in_the_quarantine(stage: Stage, tmp_path: Path):
    config = stage.project / ".git" / "config"
    config.write_text("[core]\n")
    watch = Watch.start(replace(stage.confinement, mechanism="landlock"))  # which can't keep a command from changing it
    config.write_text("[core]\n\tfsmonitor = ./evil\n")
    (sentence,) = watch.finish()
    assert config.read_text() == "[core]\n"
    (moved,) = (tmp_path / "quarantine").rglob("config")
    assert "fsmonitor" in moved.read_text()
    assert str(moved) in sentence
