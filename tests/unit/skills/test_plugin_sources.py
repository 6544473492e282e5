"""Sources of plugins: folders, archives, commits and marketplaces, which can't lead Git to private addresses."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from aiohttp.abc import ResolveResult

from moot.errors import MootError, NotFound, Refused, UsageError
from moot.guard import urls
from moot.guard.urls import SystemResolver
from moot.skills.library import find_skills
from moot.skills.plugins import install
from unit.skills.plugin_files import candidate, write

pytestmark = pytest.mark.anyio


async def test_a_marketplace_lists_plugins_and_describes_those_without_a_manifest(home: Path, repository: Path) -> None:
    place = repository / "examples/marketplace"
    with pytest.raises(UsageError, match="lists 2 plugins: house-style, wording"):
        await candidate(place, home)
    with pytest.raises(NotFound, match="no plugin 'wordin'"):
        await candidate(place, home, plugin="wordin")
    with pytest.raises(UsageError, match="is not a marketplace"):
        await candidate(place / "plugins/house-style", home, plugin="x")
    assert (await candidate(place, home, plugin="house-style")).plugin.version == "1.0.0"
    found = await candidate(place, home, plugin="wording")
    assert found.plugin.skills == ("wording",) and not found.plugin.hooks and found.source["plugin"] == "wording"
    install(home, found)
    assert [(skill.name, skill.status, skill.place) for skill in find_skills(home)] == [("wording:wording", "offered", "plugin")]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("../house-style", "outside the marketplace"),
        ("/etc", "outside the marketplace"),
        ({"source": "npm", "package": "x"}, "can't be installed from 'npm'"),
        ({"source": "url", "url": "/etc", "sha": "0" * 40}, "can't be installed from 'url'"),
        ({"source": "url", "url": "ext::sh -c id", "sha": "0" * 40}, "is not the address of a Git repository"),
        ({"source": "github", "repo": "a/b", "sha": "main"}, "is not the full hash of a commit"),
        ({"source": "url", "url": "https://example.org/a.git", "ref": "--upload-pack=id"}, "is not the name of a branch"),
    ],
)
async def test_a_marketplace_cannot_point_anywhere_else(entry: object, reason: str, home: Path, tmp_path: Path) -> None:
    write(tmp_path / "market", {".claude-plugin/marketplace.json": {"name": "m", "plugins": [{"name": "p", "source": entry}]}})
    with pytest.raises(MootError, match=reason):
        await candidate(tmp_path / "market", home)


@pytest.mark.parametrize("more", [{"sha": "0" * 40}, {"ref": "main"}])
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://127.0.0.1/p.git", "127.0.0.1 is this machine"),
        ("https://127.1:8443/p.git", "127.0.0.1 is this machine"),
        ("https://169.254.169.254/p.git", "cloud metadata"),
        ("https://[::1]/p.git", "not on the public network"),
        ("https://localhost/p.git", "not on the public network"),
        ("https://user:key@example.org/p.git", "user name or password"),
        ("https://8.8.8.8:22/p.git", "Port 22"),
        ("http://example.org/p.git", "is not an https URL|not the address"),
        ("ssh://git@example.org/p.git", "is not an https URL"),
        ("git@example.org:p.git", "is not an https URL"),
    ],
)
async def test_git_is_not_started_for_private_addresses_of_a_marketplace(
    url: str, reason: str, more: dict[str, str], home: Path, tmp_path: Path, started: Path
) -> None:
    source = {"source": "url", "url": url, **more}
    write(tmp_path / "market", {".claude-plugin/marketplace.json": {"name": "m", "plugins": [{"name": "p", "source": source}]}})
    with pytest.raises(MootError, match=reason):
        await candidate(tmp_path / "market", home)
    assert not started.exists()


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the arguments of the first Git command that would connect. It doesn't run."""
    path, program = tmp_path / "arguments", tmp_path / "bin/git"
    write(tmp_path, {"bin/git": f'#!/bin/sh\ncase " $* " in *" init "*) exit 0;; esac\nprintf "%s\\n" "$@" > {path}\nexit 1\n'})
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return path


@pytest.mark.parametrize("more", [{"sha": "0" * 40}, {"ref": "main"}])
async def test_git_connects_only_to_the_addresses_that_were_checked(
    more: dict[str, str], home: Path, tmp_path: Path, started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Public(SystemResolver):
        async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
            assert host == "example.org"
            return [*await super().resolve("8.8.8.8", port), *await super().resolve("2606:4700::1111", port)]

    monkeypatch.setattr(urls, "SystemResolver", Public)
    source = {"source": "url", "url": "https://EXAMPLE.org./p.git", **more}
    write(tmp_path / "market", {".claude-plugin/marketplace.json": {"name": "m", "plugins": [{"name": "p", "source": source}]}})
    with pytest.raises(Refused, match=r"git (fetch|ls-remote) failed"):
        await candidate(tmp_path / "market", home)
    words = started.read_text().split("\n")
    for setting in ("http.followRedirects=false", "protocol.allow=never", "http.curloptResolve=example.org:443:8.8.8.8,[2606:4700::1111]"):
        assert words[words.index(setting) - 1] == "-c"
    assert "https://example.org/p.git" in words


async def test_a_file_in_place_of_the_manifests_folder_is_refused(home: Path, tmp_path: Path) -> None:
    entry = {"name": "p", "source": "./p", "description": "d"}
    write(tmp_path / "market", {".claude-plugin/marketplace.json": {"name": "m", "plugins": [entry]}})
    write(tmp_path / "market/p", {".claude-plugin": "x", "commands/a.md": "x"})
    with pytest.raises(Refused, match=r"plugin's '\.claude-plugin' is a file"):
        await candidate(tmp_path / "market", home)


async def test_an_archive_with_one_folder_is_the_folder(home: Path, source: Path, tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, "house-style")
    found = await candidate(tmp_path / "packed.zip", home)
    assert found.digest == (await candidate(source, home)).digest


async def test_a_commit_is_pinned_and_a_marketplace_in_it_is_read(home: Path, repository: Path, tmp_path: Path) -> None:
    place = shutil.copytree(repository / "examples/marketplace", tmp_path / "market")

    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(["git", "-C", str(place), *who, *words], check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    commit = git("rev-parse", "HEAD")
    (place / "plugins/house-style/commands/check.md").write_text("Changed.")
    found = await candidate(place, home, plugin="house-style", commit=commit)
    assert found.source["commit"] == commit and "Changed." not in found.plugin.commands[0].text
    assert (await candidate(place, home, path="plugins/house-style", commit=commit)).digest == found.digest
    with pytest.raises(NotFound, match="no folder 'none'"):
        await candidate(place, home, path="none", commit=commit)
